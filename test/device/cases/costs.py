# SPDX-License-Identifier: Apache-2.0
"""What a program pays, stock and rondo in turns in one run."""

import json
import os
import statistics
import time

from lab import RUN_DIR, check, note, program, rondo, stock


def of_calls():
    """24 runs each way, one after the other; medians of the runs' medians."""
    runs = {"stock": [], "rondo": []}
    for way, start in (("stock", stock), ("rondo", rondo)):
        start(program("cost"), "--batches", 20).finish(30)  # caches warm, arbiter there
    for k in range(24):
        # Who is first changes: what drifts must not look like a difference.
        for way in ("stock", "rondo") if k % 2 else ("rondo", "stock"):
            words = program("cost"), "--batches", 400
            p = stock(*words) if way == "stock" else rondo(*words, memory="8Gi")
            code, text = p.finish(30)
            if code != 0:
                raise RuntimeError(f"cost: {text} {p.stderr()}")
            runs[way].append(json.loads(text))

    def middle(way, key):
        return statistics.median(r[key] for r in runs[way])

    for key in runs["stock"][0]:
        note(key, f"stock {middle('stock', key):.2f} (best {min(r[key] for r in runs['stock']):.2f}), "
             f"rondo {middle('rondo', key):.2f} (best {min(r[key] for r in runs['rondo']):.2f})")
    start = [middle(way, "init_ms") + middle(way, "context_ms") for way in ("stock", "rondo")]
    check("costs.start", start[1] - start[0] <= 5, f"cuInit + first context: stock {start[0]:.1f} ms, rondo {start[1]:.1f} ms")
    alloc = [middle(way, "alloc_us") for way in ("stock", "rondo")]
    check("costs.alloc", alloc[1] - alloc[0] <= 30, f"cuMemAlloc of 2 MiB: stock {alloc[0]:.1f} us, rondo {alloc[1]:.1f} us")
    # Pairs of neighbours in time: the machine's own drift drops out.
    pairs = [r["launch_ns"] / s["launch_ns"] - 1 for s, r in zip(runs["stock"], runs["rondo"])]
    launch = statistics.median(pairs)
    spread = statistics.median(abs(p - launch) for p in pairs) / len(pairs) ** 0.5 * 1.86
    best = min(r["launch_min_ns"] for r in runs["rondo"]) / min(r["launch_min_ns"] for r in runs["stock"]) - 1
    # The hooks are ioctl, mmap and munmap: where none is called, the code that runs is the same.
    calls = sum(r["calls_launching"] for r in runs["rondo"])
    check("costs.launch", calls == 0 and abs(launch) < max(0.005, 2 * spread),
          f"{calls} system calls that Rondo could see in {len(pairs) * 360 * 250} launches; empty launch: median difference of {len(pairs)} pairs "
          f"{launch * 100:+.2f} % (its error {spread * 100:.2f} %), between the fastest of each {best * 100:+.2f} %; "
          f"stock {middle('stock', 'launch_ns'):.0f} ns")


def slices_set():
    """How often a slice was set, if the arbiter logs it (RONDO_LOG_LEVEL=debug)."""
    try:
        with open(os.path.join(RUN_DIR, "arbiter.log")) as f:
            return sum(" groups on " in line for line in f)
    except OSError:
        return 0


def many_starts():
    """32 processes of one program that start at one moment."""
    rows, before = {}, slices_set()
    for way in ("stock", "rondo", "stock", "rondo"):
        words = program("cost"), "--procs", 32
        p = stock(*words) if way == "stock" else rondo(*words, memory="64Gi")
        _, text = p.finish(60)
        rows.setdefault(way, []).append(json.loads(text))
    best = {way: min(r["max_ms"] for r in found) for way, found in rows.items()}
    failed = sum(r["failed"] for found in rows.values() for r in found)
    note("all runs, slowest and median of 32, ms", {way: [(r["max_ms"], r["p50_ms"]) for r in found] for way, found in rows.items()})
    if slices_set() > before:
        note("slices set in both runs with rondo", slices_set() - before)
    check("D4 costs.many_starts", failed == 0 and best["rondo"] <= best["stock"] * 1.15 + 20,
          f"32 processes, slowest: stock {best['stock']:.0f} ms, rondo {best['rondo']:.0f} ms; failed {failed}")


def many_runs():
    """32 programs of one process that are started at one moment, from the start of the first to the end of the last."""
    took = {}
    for way in ("stock", "rondo", "stock", "rondo"):
        begin = time.monotonic()
        started = [stock(program("cost"), "--procs", 1) if way == "stock" else rondo(program("cost"), "--procs", 1, memory="2Gi")
                   for _ in range(32)]
        for p in started:
            code, text = p.finish(60)
            if code != 0 or json.loads(text)["failed"]:
                raise RuntimeError(f"{way}: exit {code} {text} {p.stderr()}")
        took.setdefault(way, []).append(time.monotonic() - begin)
    best = {way: min(found) * 1e3 for way, found in took.items()}
    check("D4 costs.many_runs", best["rondo"] <= best["stock"] * 1.15 + 100,
          f"32 programs, until the last has ended: stock {best['stock']:.0f} ms, rondo {best['rondo']:.0f} ms")


CASES = [("costs.calls", of_calls, 120), ("costs.many_starts", many_starts, 60), ("costs.many_runs", many_runs, 75)]
PROGRAMS = ["cost"]
