# SPDX-License-Identifier: Apache-2.0
"""What the image tool needs to know of an ELF file: its machine, its loader, and the libraries it names.

Reads 64-bit little-endian files (all that Rondo is built for) by their program headers, so that it needs neither
binutils' text output nor `ldd`, which would run the loader of the build machine with that machine's ld.so.cache.
"""

import struct
from dataclasses import dataclass

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NULL, DT_NEEDED, DT_STRTAB = 0, 1, 5

# e_machine -> (architecture in the words of the OCI image specification, Debian's multiarch folder).
MACHINES = {62: ("amd64", "x86_64-linux-gnu"), 183: ("arm64", "aarch64-linux-gnu")}


class ElfError(Exception):
    """The file is not an ELF file of a supported machine."""


@dataclass(frozen=True)
class Elf:
    architecture: str
    multiarch: str
    interpreter: str  # "" in a library or a static executable
    needed: tuple  # DT_NEEDED in file order


def read(path):
    """The Elf of the file at path; ElfError where it is none."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:4] != b"\x7fELF" or len(data) < 64 or data[4:6] != b"\x02\x01":
        raise ElfError(f"{path}: not a 64-bit little-endian ELF file")
    machine = struct.unpack_from("<H", data, 18)[0]
    if machine not in MACHINES:
        raise ElfError(f"{path}: machine {machine} is not supported, only amd64 and arm64")
    try:
        headers = _program_headers(data)
        interpreter = "".join(_text(data, offset) for kind, offset, _, _ in headers if kind == PT_INTERP)
        return Elf(*MACHINES[machine], interpreter, _needed(data, headers))
    except (struct.error, ValueError) as error:
        raise ElfError(f"{path}: damaged ELF file: {error}") from None


def _program_headers(data):
    """(type, offset in the file, virtual address, size in the file) of each program header."""
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = []
    for i in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, start + i * size)
        headers.append((kind, offset, address, length))
    return headers


def _needed(data, headers):
    dynamic = [(offset, length) for kind, offset, _, length in headers if kind == PT_DYNAMIC]
    if not dynamic:
        return ()
    names, strings = [], None
    for tag, value in struct.iter_unpack("<qQ", data[dynamic[0][0]:dynamic[0][0] + dynamic[0][1]]):
        if tag == DT_NULL:
            break
        if tag == DT_NEEDED:
            names.append(value)
        elif tag == DT_STRTAB:
            strings = value
    if names and strings is None:
        raise ValueError("no string table")
    # DT_STRTAB is an address in memory; the segment that holds it tells where that is in the file.
    for kind, offset, address, length in headers:
        if kind == PT_LOAD and strings is not None and address <= strings < address + length:
            return tuple(_text(data, offset + strings - address + name) for name in names)
    if names:
        raise ValueError("string table outside every segment")
    return ()


def _text(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()
