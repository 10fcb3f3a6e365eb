# SPDX-License-Identifier: Apache-2.0
"""The arbiter killed while a tenant is suspended: the tenant runs, is taken over by the next arbiter, the ledger is right."""

import os
import signal
import time

from lab import (MIB, TENANT, Stamps, check, compare, note, rondo, slot_of, status, turns, wait_for, worker_words)

ROUNDS = 20


def taken_over(old_pid, tenants):
    """The new arbiter's view once it has every tenant with its channels, and none of the ledgers is off."""
    now = status()
    if now is None or now["arbiterPid"] == old_pid:
        return None
    slots = [slot_of(now, t) for t in tenants]
    if not all(s and s["sliceMicroseconds"] is not None for s in slots):
        return None
    return slots


def kill():
    """Half of the time nobody restarts it (the runs are stopped), so that the shim alone has to free the tenant."""
    batch = {}
    for name in ("a", "b"):
        stamps = Stamps(f"batch.{name}")
        batch[name] = stamps, rondo(*worker_words(stamps, 1000, depth=1, seconds=200, more=["--take", 64]), cls="batch",
                                    memory="4Gi")
    latency = rondo(TENANT, "--turns", turns(), "--kernels", 5, "--kernel-us", 100, "--think-us", 10000, "--seconds", 150,
                    cls="latency", memory="4Gi")
    tenants = [latency] + [p for _, p in batch.values()]
    wait_for("the tenants", lambda: all(s.count() for s, _ in batch.values()), 20)

    def one_off():
        now = status()
        for name, (_, p) in batch.items():
            slot = slot_of(now, p)
            if slot and slot["suspended"]:
                return name, now["arbiterPid"]
        return None

    freed_ms, back_ms, natural_ms, wrong, missed = [], [], [], [], 0
    for k in range(ROUNDS):
        took, found = wait_for("a suspended tenant", one_off, 8, 0.005)
        if took is None:
            missed += 1
            continue
        name, pid = found
        stamps = batch[name][0]
        alone = k % 2 == 0
        if alone:
            for t in tenants:
                os.kill(t.pid, signal.SIGSTOP)
        # It may have been resumed between the look and the kill: then it has stamps of just now.
        at = time.monotonic_ns()
        os.kill(pid, signal.SIGKILL)
        _, first = wait_for("its next kernel", lambda: stamps.first_after(at), 3, 0.002)
        quiet_before = not stamps.between(at - 5_000_000, at)
        if first is None or not quiet_before:
            missed += 1
        elif alone:
            freed_ms.append((first - at) / 1e6)
        else:
            natural_ms.append((first - at) / 1e6)
        again = time.monotonic()
        if alone:
            for t in tenants:
                os.kill(t.pid, signal.SIGCONT)
        took, slots = wait_for("the next arbiter", lambda: taken_over(pid, tenants), 8, 0.02)
        back_ms.append((time.monotonic() - again) * 1e3 if took is not None else float("inf"))
        if slots:
            apart = [compare(s) for s in slots]
            if any(apart) or None in apart or any(s["memoryUsedBytes"] < 64 * MIB for s in slots):
                wrong.append((k, apart, [s["memoryUsedBytes"] for s in slots]))
    check("arbiter.kill.runs", len(freed_ms) >= ROUNDS // 2 - 3 and max(freed_ms) <= 100,
          f"{len(freed_ms)} kills without a restart: the suspended tenant's next kernel was done after "
          f"{sorted(round(m) for m in freed_ms)} ms")
    note("with a restart at once", f"next kernel after {sorted(round(m) for m in natural_ms)} ms (the new arbiter may give the "
         f"other one the first turn); not measured {missed}")
    check("arbiter.kill.back", max(back_ms, default=float("inf")) <= 3000 and not wrong,
          f"{len(back_ms)} restarts: all attached after at most {max(back_ms):.0f} ms; ledgers that differ from the driver: "
          f"{wrong or 'none'}")
    codes = [t.end(15)[0] if t is not latency else 0 for t in tenants]
    check("arbiter.kill.errors", not any(codes) and latency.child.poll() is None, f"exit codes {codes}")


CASES = [("arbiter.kill", kill, 90)]
PROGRAMS = ["worker"]
