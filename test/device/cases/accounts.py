# SPDX-License-Identifier: Apache-2.0
"""Each way to memory, one case of accounts.cc or handover.cc: refused at the limit, counted, answered as the driver does."""

import os
import re
import shutil
import time

from lab import MIB, Skipped, check, compare, note, program, rondo, slot_of, status, stock, wait_for

LIMITS = {"B14": "2Gi", "C15": None}


def one(name, env=None):
    """Judged by the program itself where it gives a result, and by the stock driver where it gives answers."""
    words = program("accounts"), name
    try:
        p = rondo(*(("env", "CUDA_VISIBLE_DEVICES=") if name == "C15" else ()), *words, memory=LIMITS.get(name, "4Gi"))
        lines, apart = [], None
        while True:
            try:
                line = p.line(40)
            except RuntimeError:
                break
            if line == "HOLD":
                apart = compare(slot_of(status(), p))
                p.send("")
            else:
                lines.append(line)
        code, _ = p.finish(10)
        answers = [line for line in lines if line.startswith("=")]
        same = True
        if answers:
            _, text = stock(*words, env={"CUDA_VISIBLE_DEVICES": ""} if name == "C15" else None).finish(40)
            expected = [line for line in text.splitlines() if line.startswith("=")]
            same = answers == expected
            if not same:
                note("stock", expected)
        results = [line.split(" ", 2) for line in lines if line.startswith("RESULT")]
        ok = code == 0 and same and bool(results or answers) and all(r[1] == "1" for r in results) and apart in (None, 0)
        text = "; ".join(r[2] for r in results) or f"{len(answers)} answers, as stock: {answers[:3]}"
        check(name, ok, text + ("" if apart is None else f"; ledger - driver {apart}") +
              ("" if code == 0 else f"; exit {code} {lines[-1:]} {p.stderr()}"))
    except Skipped as error:
        print(f"SKIP {name}: {error}", flush=True)


def accounts():
    """B1 B2 B5 B6 B7 B10 B11 B14 B16 C9 C15, a program each under a limit."""
    for name in ("B1", "B2", "B5", "B6", "B7", "B10", "B11", "B14", "B16", "C9", "C15"):
        one(name)


def view():
    """nvidia-smi in a slot: the slot's size and use, beside the same outside."""
    if shutil.which("nvidia-smi") is None:
        raise Skipped("no nvidia-smi")
    hold = rondo(program("handover"), memory="6Gi")
    hold.line(30)
    query = ["nvidia-smi", "--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader,nounits"]
    p = rondo(*query, memory="4Gi")
    code, text = p.finish(30)
    _, outside = stock(*query).finish(30)
    inside, card = ([int(v) for v in re.findall(r"\d+", t.splitlines()[0])] for t in (text, outside))
    check("B17 memory.view", code == 0 and abs(inside[0] - 4096) <= 1 and inside[1] <= 16 and card[0] > inside[0],
          f"total, used, free MiB in a slot of 4096 with nothing in it: {inside}; outside: {card}")
    hold.no_more()
    hold.finish(20)


def handover(name="memory.handover", words=()):
    """cuMemCreate, exported to another process of the slot: charged once, freed when the last one goes."""
    for order in ("importer goes first", "exporter goes first"):
        p = rondo(program("handover"), *words, memory="8Gi")
        p.line(30)
        start = slot_of(status(), p)["memoryUsedBytes"]
        seen = []

        def step(word):
            if word:
                p.send(word)
                p.line(30)
            slot = slot_of(status(), p)
            used = (slot["memoryUsedBytes"] - start) // MIB if slot else None
            seen.append((word, used, compare(slot) if slot else None))

        for word in ("create", "import"):
            step(word)
        once = [s[1] for s in seen]
        first, second = ("B", "A") if order.startswith("importer") else ("A", "B")
        step(f"exit {first}")
        time.sleep(0.1)
        kept = slot_of(status(), p)
        context = start // 2
        kept_mib = (kept["memoryUsedBytes"] - context) / MIB if kept else -1
        apart = compare(kept) if kept else None
        p.send(f"release {second}")
        p.line(30)

        def gone():
            slot = slot_of(status(), p)
            return slot if slot and slot["memoryUsedBytes"] - context < 16 * MIB else None

        wait_for("the release", gone, 1.5)
        step("")
        freed = slot_of(status(), p)
        freed_mib = (freed["memoryUsedBytes"] - context) / MIB if freed else -1
        p.no_more()
        p.finish(20)
        # An exporter's own release comes with its exit in the second order; the memory lives on with the importer.
        check(f"{name}.{order.split()[0]}", once[0] >= 512 and once[1] - once[0] < 16 and kept_mib >= 512 and apart == 0 and freed_mib < 16,
              f"MiB above the contexts: made {once[0]}, imported {once[1]}; {order}: {kept_mib:.0f} (ledger - driver {apart}); "
              f"released by the other: {freed_mib:.0f}")
        note("steps (word, MiB, ledger - driver)", seen)


def ipc():
    """The same by cuIpcGetMemHandle."""
    handover("memory.ipc", ["ipc"])


def another_user():
    """uid 65534 runs it all, with a folder of its own (D5)."""
    if os.getuid() != 0:
        raise Skipped("not root")
    import lab
    folder, nobody = "/tmp/rondo-cases-nobody", {"user": 65534, "group": 65534, "extra_groups": []}
    try:
        code, _ = lab.Program([lab.RONDO, "version"], **nobody).finish(10)
    except PermissionError:
        code = 126
    if code != 0 or not os.access(lab.out_dir, os.X_OK):
        raise Skipped("another user cannot read build/device here")
    words = [lab.RONDO, "run", "--run-dir", folder, "--memory", "2Gi", "--", program("accounts"), "B16"]
    p = lab.Program(words, **nobody)
    code, text = p.finish(40)
    check("D5 memory.another_user", code == 0 and "RESULT 1" in text, f"exit {code}: {text[-300:]!r} {p.stderr()!r}")


def pid_namespace():
    """In a private pid namespace with a /proc of its own, as containers have it (A10): the limit holds. Where not even the stock driver
    starts there, it is skipped: nothing of Rondo's could show."""
    for way in (["--mount-proc"], []):
        words = ["unshare", "--pid", "--fork", *way, program("accounts"), "B16"]
        _, own = (p := stock(*words)).finish(40)
        note("stock, " + " ".join(words[:-2]), f"{own.strip()[-120:]!r} {p.stderr().strip()[-120:]!r}")
        if "CUDA_SUCCESS" not in own:  # without a limit it gets what it asks for
            continue
        p = rondo(*words, memory="4Gi")
        code, text = p.finish(40)
        check("A10 memory.pid_namespace", code == 0 and "RESULT 1" in text, f"exit {code}: {text[-200:]!r} {p.stderr()[-120:]!r}")
        return
    raise Skipped("the stock driver does not start in a private pid namespace here")


CASES = [("memory.accounts", accounts, 90), ("memory.view", view, 30), ("memory.handover", handover, 60), ("memory.ipc", ipc, 60),
         ("memory.another_user", another_user, 45), ("memory.pid_namespace", pid_namespace, 45)]
PROGRAMS = ["accounts", "handover"]
