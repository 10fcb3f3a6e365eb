# SPDX-License-Identifier: Apache-2.0
"""What a program pays, stock and rondo in turns in one run."""

import json
import statistics

from lab import check, note, program, rondo, stock


def calls():
    """12 runs each way, one after the other; medians of the runs' medians."""
    runs = {"stock": [], "rondo": []}
    for way, start in (("stock", stock), ("rondo", rondo)):
        start(program("cost"), "--batches", 20).finish(30)  # caches warm, arbiter there
    for k in range(12):
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
    check("costs.launch", abs(launch) < max(0.005, 2 * spread),
          f"empty launch: median difference of 12 pairs {launch * 100:+.2f} % (its error {spread * 100:.2f} %), "
          f"between the fastest of each {best * 100:+.2f} %; stock {middle('stock', 'launch_ns'):.0f} ns")


def many_starts():
    """32 processes that start at one moment."""
    rows = {}
    for way in ("stock", "rondo", "stock", "rondo"):
        words = program("cost"), "--procs", 32
        p = stock(*words) if way == "stock" else rondo(*words, memory="64Gi")
        _, text = p.finish(60)
        rows.setdefault(way, []).append(json.loads(text))
    best = {way: min(r["max_ms"] for r in found) for way, found in rows.items()}
    failed = sum(r["failed"] for found in rows.values() for r in found)
    check("D4 costs.many_starts", failed == 0 and best["rondo"] <= best["stock"] * 1.15 + 20,
          f"32 processes, slowest: stock {best['stock']:.0f} ms, rondo {best['rondo']:.0f} ms; failed {failed}")


CASES = [("costs.calls", calls, 90), ("costs.many_starts", many_starts, 60)]
PROGRAMS = ["cost"]
