#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What librondo.so may ask of a process: it is loaded into every program of a pod, whatever its libc.

usage: elf_test.py librondo.so hooks.inc
"""

import re
import struct
import sys

# Weak, without a version: any libc will do, and none too (tests with musl and static programs prove it).
MAY_USE = {"dlsym", "dlopen", "__errno_location", "environ"}
DT = {"NEEDED": 1, "STRTAB": 5, "SYMTAB": 6, "STRSZ": 10, "INIT": 12, "FINI": 13, "SONAME": 14, "TEXTREL": 22,
      "INIT_ARRAY": 25, "FINI_ARRAY": 26, "FLAGS": 30, "FLAGS_1": 0x6FFFFFFB, "VERNEED": 0x6FFFFFFE}
PT_LOAD, PT_DYNAMIC, PT_TLS, PT_GNU_STACK = 1, 2, 7, 0x6474E551
NODELETE, NOW = 0x8, 0x1

problems = []


def expect(holds, text):
    if not holds:
        problems.append(text)


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        assert self.data[:6] == b"\x7fELF\x02\x01", "64-bit little-endian ELF"
        offset, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.data, offset + i * size) for i in range(count)]
        self.dynamic = self.read_dynamic()

    def offset_of(self, address):
        for kind, _, offset, at, _, size, _, _ in self.segments:
            if kind == PT_LOAD and at <= address < at + size:
                return offset + address - at
        raise ValueError(hex(address))

    def read_dynamic(self):
        entries = []
        for kind, _, offset, _, _, size, _, _ in self.segments:
            if kind == PT_DYNAMIC:
                entries = [struct.unpack_from("<QQ", self.data, offset + i) for i in range(0, size, 16)]
        return [e for e in entries if e[0] != 0]

    def values(self, name):
        return [value for tag, value in self.dynamic if tag == DT[name]]

    def string(self, index):
        start = self.offset_of(self.values("STRTAB")[0]) + index
        return self.data[start:self.data.index(b"\0", start)].decode()

    def symbols(self):
        """(name, binding, section) of every dynamic symbol. The string table follows the symbols."""
        start = self.offset_of(self.values("SYMTAB")[0])
        end = self.offset_of(self.values("STRTAB")[0])
        for at in range(start + 24, end - 23, 24):
            name, info, _, section = struct.unpack_from("<IBBH", self.data, at)
            yield self.string(name), info >> 4, section


def main():
    elf = Elf(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as f:
        hooks = set(re.findall(r"^RONDO_HOOK\((\w+)", f.read(), re.M))
    needed = [elf.string(v) for v in elf.values("NEEDED")]
    expect(not needed, f"NEEDED {needed}: musl's loader, or a slim image, may not have it; use a weak reference")
    expect(not elf.values("VERNEED"), "a versioned reference binds to the build machine's newest glibc")
    expect(not elf.values("SONAME"), "a SONAME could stand in for another library's")
    for name in ("INIT", "FINI", "INIT_ARRAY", "FINI_ARRAY"):
        expect(not elf.values(name), f"{name}: code at start or end runs in processes that never use the driver")
    expect(not elf.values("TEXTREL"), "text relocations are refused by hardened kernels")
    expect(elf.values("FLAGS_1") and elf.values("FLAGS_1")[0] & NODELETE, "dlclose would unload running code: -z nodelete")
    expect(elf.values("FLAGS_1") and elf.values("FLAGS_1")[0] & NOW, "lazy binding inside a hook: -z now")
    kinds = {segment[0]: segment[1] for segment in elf.segments}
    expect(PT_TLS not in kinds, "thread-local storage needs ld-linux's help in old glibc")
    expect(kinds.get(PT_GNU_STACK, 1) & 1 == 0, "executable stack")
    exported = {name for name, _, section in elf.symbols() if section != 0}
    expect(exported == hooks, f"exports {sorted(exported)}, hooks.inc has {sorted(hooks)}")
    for name, binding, section in elf.symbols():
        if section == 0:
            expect(binding == 2, f"{name} is a strong reference: without it the program would not start")
            expect(name in MAY_USE, f"{name} is used; allowed are {sorted(MAY_USE)}")
    for problem in problems:
        print(f"librondo.so: {problem}")
    print(f"{sorted(exported)} exported, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
