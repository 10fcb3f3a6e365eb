# SPDX-License-Identifier: Apache-2.0
"""What is promised of time, stock and rondo in one run, as a table for docs/benchmarks.md. All tenants of a row run during the
whole of one window, and only what is done within it counts: shares of one window can be added up."""

import collections
import functools
import math
import os
import statistics
import time
import typing

import lab
from lab import Stamps, check, note, nvml, rondo, say, slot_of, status, stock, worker_words
from shares import finish, measure

HELD_UP_US = 50  # a thread that got no processor for so long: the host's doing, whoever shares the GPU
ROUNDS = 3
IDLE_MS = 20 + 4 + 12 + 10  # a latency slice, a rotation of the others, until the next request, reports and the change itself


class Use(typing.NamedTuple):
    """What all tenants have of the card."""
    nominal: float  # kernels done x their length
    of_alone: float  # each one's work, of what it does in that time alone
    told: float  # time, by the card's own log, or None


rows = []  # what, must, alone, stock, rondo


class Tenant:
    """A worker: units of kernels of so many us, always `depth` of them queued, or a request after each pause of think us."""

    def __init__(self, us, kernels=1, depth=3, think=0, **options):
        self.us, self.kernels, self.depth, self.think, self.options = us, kernels, depth, think, options

    def start(self, way, name, seconds, cpu):
        self.stamps, self.requests = Stamps(name), Stamps(name + ".requests")
        more = ["--kernels", self.kernels, "--cpu", cpu]
        if self.think:
            more += ["--think-us", self.think, "--requests", self.requests.path]
        words = worker_words(self.stamps, self.us, depth=self.depth, seconds=seconds, more=more)
        return rondo(*words, **self.options) if way == "rondo" else stock(*words)


def together(way, tenants, seconds, warm=2.0):
    """Each one's share of the card in one window, the requests of the first, and what the arbiter says of them all."""
    programs = [t.start(way, f"{way}.{i}", seconds + warm + 40, lab.processor(i)) for i, t in enumerate(tenants)]
    counted = [((t.stamps,), t.us * t.kernels) for t in tenants]
    measure(counted, programs, warm, 0.1)  # all of them run
    before = gpu_time(programs) if way == "rondo" else None
    shares, _, window = measure(counted, programs, 0.1, seconds)
    told = None
    if before and None not in (after := gpu_time(programs)) and None not in before:
        span = after[1] - before[1]
        told = (after[0] - before[0]) / span
        note(f"{len(tenants)} tenants", f"the arbiter used {(after[2] - before[2]) / span:.3f} of a processor")
    requests = tenants[0].stamps.with_requests(tenants[0].requests, *window) if tenants[0].think else []
    if requests:
        slowest(way, requests)
    codes = finish(programs)
    if any(codes):
        raise RuntimeError(f"{way}: exit codes {codes}")
    return shares, requests, told


def gpu_time(programs):
    """What the card's own log gives them all, when it was asked, and what processor time the arbiter has used; in us."""
    now = status()
    slots = [slot_of(now, p) for p in programs]
    times = [s["gpuTimeMicroseconds"] if s else None for s in slots]
    with open(f"/proc/{now['arbiterPid']}/stat") as f:
        words = f.read().rpartition(")")[2].split()
    used = sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK") * 1e6  # proc(5): utime, stime
    return (None if None in times else sum(times)), time.monotonic() * 1e6, used


def slowest(way, requests):
    """Where their time went, and when it was, for a look at the arbiter's log."""
    wall = time.time_ns() - time.monotonic_ns()
    for r in requests[:-7:-1]:
        at = (r.at + wall) // 1000000
        note(f"slow, {way}", f"{r.total:.0f} us at {time.strftime('%T', time.gmtime(at // 1000))}.{at % 1000:03d}: launched in {r.launch:.0f}, "
             f"waited for the GPU {r.wait:.0f}, from first to last kernel {r.gpu:.0f}; thread without a processor {r.starved:.0f}, "
             f"longest between two looks {r.stall:.0f}")


def percentile(ordered, q):
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


@functools.lru_cache(maxsize=None)
def alone(us, kernels=1, depth=3):
    """The share of the card of one that has it for itself: below 1 by the gaps between kernels."""
    return together("stock", [Tenant(us, kernels, depth)], 3, warm=1)[0][0]


def throughput():
    """2 tenants of 100 us kernels, 4 of 1 ms kernels: all together, of one alone."""
    for count, us, kernels in ((2, 100, 20), (4, 1000, 1)):
        base = alone(us, kernels)
        parts = {way: sum(together(way, [Tenant(us, kernels) for _ in range(count)], 5)[0]) / base for way in ("stock", "rondo")}
        check(f"guarantee.throughput.{count}x{us}us", parts["rondo"] >= 0.985,
              f"of alone ({base:.4f} of the card): stock {parts['stock']:.4f}, rondo {parts['rondo']:.4f}")
        rows.append((f"throughput of {count} tenants, {us} µs kernels, of one alone", "≥ 0.985", "1", f"{parts['stock']:.3f}",
                     f"{parts['rondo']:.3f}"))


def weights():
    """3:1 and 4:2:1:1 over 5 s."""
    for of in ((3, 1), (4, 2, 1, 1)):
        shares, _, _ = together("rondo", [Tenant(1000, weight=w) for w in of], 5)
        got = [s / sum(shares) for s in shares]
        worst = max(abs(g - w / sum(of)) for g, w in zip(got, of))
        name = ":".join(map(str, of))
        check(f"guarantee.weights.{name}", worst <= 0.01,
              f"of the sum {', '.join(f'{g:.4f}' for g in got)}; largest error {worst:.4f}; sum {sum(shares):.4f} of the card")
        rows.append((f"weights {name} over 5 s: largest error of a share", "≤ 0.01", "", "none", f"{worst:.4f}"))


def requests(name, what, first, beside, seconds):
    """The first tenant's requests alone and beside the others with rondo, in rounds: what the machine itself does to requests changes within
    minutes, so a round has its own time alone. On stock once. Gives percentiles by way and round, and all tenants' Use by way: medians."""
    points, use = collections.defaultdict(list), collections.defaultdict(list)
    for i in range(ROUNDS):
        for way in ("alone", "stock", "rondo") if i == 0 else ("alone", "rondo"):
            one_round(name, i, way, first, beside, seconds, points, use)
    medians = {way: [statistics.median(p[q] for p in rounds) for q in range(3)] for way, rounds in points.items()}
    rows.append((f"{what}: p50 / p99 / p99.9, µs", "", *(" / ".join(f"{v:.0f}" for v in medians[way]) for way in ("alone", "stock", "rondo"))))
    return points, {way: Use(*(middle(u[i] for u in uses) for i in range(3))) for way, uses in use.items()}


def middle(values):
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def one_round(name, i, way, first, beside, seconds, points, use):
    label = f"{name} {way}"
    if way == "alone":
        found = lone((name, i), first.us, first.kernels, first.think, seconds / 2)
    else:
        span = seconds if way == "rondo" else seconds / 2
        tenants = [first] + beside
        needs = statistics.median(r.gpu for r in lone((name, i), first.us, first.kernels, first.think, seconds / 2)) / (first.us * first.kernels)
        shares, found, told = together(way, tenants, span, warm=3)
        of_alone = shares[0] * needs + sum(s / alone(t.us, t.kernels, t.depth) for s, t in zip(shares[1:], beside))
        use[way].append(Use(sum(shares), of_alone, told))
        unit = sum(t.us * t.kernels for t in tenants) / 1e6 / span
        note(label, f"shares {', '.join(f'{s:.4f}' for s in shares)}, counted to ± {unit:.4f} at most; all {sum(shares):.4f}, of alone {of_alone:.4f}"
             + (f"; {told:.4f} of the card's time by its own log" if told is not None else ""))
    points[way].append([percentile([r.total for r in found], q) for q in (0.5, 0.99, 0.999)])
    p50, p99, p999 = points[way][-1]
    held = [r for r in found if max(r.starved, r.stall) >= HELD_UP_US]
    note(label, f"p50 {p50:.0f} p99 {p99:.0f} p99.9 {p999:.0f} max {found[-1].total:.0f} us over {len(found)} requests; "
         f"the host held {len(held)} up for {HELD_UP_US} us or more")


@functools.lru_cache(maxsize=None)
def lone(_, us, kernels, think, seconds):
    return together("stock", [Tenant(us, kernels, think=think)], seconds, warm=1)[1]


def latency():
    """Requests of 20 x 100 us after pauses of 10 ms, beside 3 batch tenants of 1 ms and of 20 ms kernels."""
    for us, depth in ((1000, 3), (20000, 2)):
        name = f"guarantee.latency.{us // 1000}ms"
        points, use = requests(name, f"requests of 20 × 100 µs, beside 3 batch tenants of {us // 1000} ms kernels",
                                 Tenant(100, 20, think=10000, cls="latency"), [Tenant(us, depth=depth, cls="batch") for _ in range(3)], 20)
        for i, q, most in ((1, "p99", 1.15), (2, "p99.9", 1.20)):
            ratios = {way: [p[i] / alone[i] for p, alone in zip(points[way], points["alone"])] for way in ("stock", "rondo")}
            ratio = {way: statistics.median(of) for way, of in ratios.items()}
            check(f"{name}.{q}", ratio["rondo"] <= most,
                  f"of alone: stock {ratio['stock']:.3f}, rondo {ratio['rondo']:.3f}; rounds {', '.join(f'{r:.3f}' for r in ratios['rondo'])}")
            rows.append((f"… {q}, of alone", f"≤ {most:.2f}", "1", f"{ratio['stock']:.2f}", f"{ratio['rondo']:.2f}"))
        summed(name, use)


def summed(name, use):
    """All tenants together. A card that is shared without any loss has 1 of alone; of itself it has less, by the gaps between launches."""
    stock_use, rondo_use = use["stock"], use["rondo"]
    words = "all tenants together, each one's work of what it does alone"
    check(f"{name}.sum", rondo_use.of_alone >= 0.97, f"{words}: stock {stock_use.of_alone:.4f}, rondo {rondo_use.of_alone:.4f}")
    rows.append((f"… {words}", "≥ 0.97", "1", f"{stock_use.of_alone:.3f}", f"{rondo_use.of_alone:.3f}"))
    rows.append(("… kernels done × their length", "", "", f"{stock_use.nominal:.3f}", f"{rondo_use.nominal:.3f}"))
    if rondo_use.told is not None:
        rows.append(("… time on the card by its own log", "", "", "", f"{rondo_use.told:.3f}"))


def one_kernel():
    """Requests of one kernel of 100 us after pauses of 2 ms, beside 3 batch tenants of 1 ms kernels."""
    name = "guarantee.one_kernel"
    points, use = requests(name, "requests of one 100 µs kernel, 2 ms pauses, beside 3 batch tenants of 1 ms kernels",
                             Tenant(100, 1, think=2000, cls="latency"), [Tenant(1000, cls="batch") for _ in range(3)], 10)
    added = {way: statistics.median(p[1] - alone[1] for p, alone in zip(points[way], points["alone"])) for way in ("stock", "rondo")}
    check(f"{name}.p99", added["rondo"] <= 250, f"added to p99: stock {added['stock']:.0f}, rondo {added['rondo']:.0f} us")
    rows.append(("… p99 added, µs", "≤ 250", "0", f"{added['stock']:.0f}", f"{added['rondo']:.0f}"))
    summed(name, use)


def never_pausing():
    """A latency tenant that always has work, beside one batch tenant of equal weight."""
    shares = {}
    for way in ("stock", "rondo"):
        shares[way] = together(way, [Tenant(100, 20, cls="latency"), Tenant(1000, cls="batch")], 5, warm=3)[0]
    check("guarantee.never_pausing", shares["rondo"][1] >= 0.45,
          "; ".join(f"{way}: latency tenant {s[0]:.4f}, batch tenant {s[1]:.4f} of the card" for way, s in shares.items()))
    rows.append(("latency tenant that never pauses: share of the batch tenant beside it", "≥ 0.45", "",
                 *(f"{s[1]:.3f}" for s in shares.values())))


def two_latency():
    """A latency tenant with requests beside another one that never pauses."""
    name = "guarantee.two_latency"
    found = lone((name, 0), 100, 20, 10000, 5)
    shares, beside, _ = together("rondo", [Tenant(100, 20, think=10000, cls="latency"), Tenant(1000, cls="latency")], 10, warm=3)
    p99 = [percentile([r.total for r in of], 0.99) for of in (found, beside)]
    check(name, p99[1] <= 1.15 * p99[0] and shares[1] >= 0.75,
          f"p99 of the one with requests {p99[1]:.0f} us, alone {p99[0]:.0f}; the other has {shares[1]:.4f} of the card")
    rows.append(("requests of 20 × 100 µs beside a latency tenant that never pauses: p99, of alone", "≤ 1.15", "1", "", f"{p99[1] / p99[0]:.2f}"))


def outsider():
    """A batch tenant beside a latency tenant and a program without Rondo that always has work."""
    tenants = [Tenant(100, 20, think=10000, cls="latency"), Tenant(1000, cls="batch"), Tenant(1000)]
    programs = [t.start("stock" if i == 2 else "rondo", f"outsider.{i}", 60, lab.processor(i)) for i, t in enumerate(tenants)]
    shares, _, window = measure([((t.stamps,), t.us * t.kernels) for t in tenants], programs, 4, 8)
    found = tenants[0].stamps.with_requests(tenants[0].requests, *window)
    if any(finish(programs)):
        raise RuntimeError("a tenant failed")
    p99 = percentile([r.total for r in found], 0.99)
    check("guarantee.outsider", shares[1] >= 0.3 and p99 <= 8000,
          f"batch tenant {shares[1]:.4f}, the program without Rondo {shares[2]:.4f} of the card; p99 of the latency tenant {p99:.0f} us")
    rows.append(("a batch tenant beside a latency tenant and a busy program without Rondo: its share; the program's", "≥ 0.3", "", "",
                 f"{shares[1]:.3f}; {shares[2]:.3f}"))


def idle_turn():
    """A batch tenant that pauses, beside one that always works and a latency tenant: how soon the other one runs. A pause that is no longer
    than a rotation is part of its work, and a context without work is seen to leave only when the next request comes."""
    tenants = [Tenant(100, 20, think=10000, cls="latency"), Tenant(1000, cls="batch"), Tenant(1000, 50, think=700000, cls="batch")]
    programs = [t.start("rondo", f"idle.{i}", 60, lab.processor(i)) for i, t in enumerate(tenants)]
    _, _, (begin, end) = measure([((t.stamps,), t.us * t.kernels) for t in tenants], programs, 3, 24)
    works = tenants[1].stamps.all()
    gaps = []
    for paused in tenants[2].stamps.between(begin, end):
        after = next((t for t in works if t > paused), None)
        if after:
            gaps.append((after - paused) / 1e6 - 1)  # less its own kernel
    if any(finish(programs)):
        raise RuntimeError("a tenant failed")
    gaps.sort()
    check("guarantee.idle_turn", len(gaps) >= 20 and gaps[-1] <= IDLE_MS,
          f"the other batch tenant runs again {statistics.median(gaps):.1f} ms after the holder of the turn paused (median of {len(gaps)}; "
          f"least {gaps[0]:.1f}, most {gaps[-1]:.1f})")
    rows.append(("a batch tenant's turn ends so long after its work, ms: median (most)", f"≤ {IDLE_MS}", "", "none",
                 f"{statistics.median(gaps):.1f} ({gaps[-1]:.1f})"))


def limited():
    """--limit 0.5, alone."""
    share = together("rondo", [Tenant(1000, limit=0.5)], 4)[0][0]
    check("guarantee.limit", 0.47 <= share <= 0.51, f"--limit 0.5, alone: {share:.4f} of the card")
    rows.append(("`--limit 0.5`, alone: share of the card", "≤ 0.51", "", "none", f"{share:.3f}"))


def table():
    """What was measured, as Markdown; also in OUT/guarantees.md."""
    if not rows:
        return
    lines = [f"{nvml().card()}:", "", "| what | must | alone | stock | Rondo |", "|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row[:4]) + f" | **{row[4]}** |" for row in rows]
    say("\n".join(["", *lines, ""]))
    with open(os.path.join(lab.out_dir, "guarantees.md"), "w") as f:
        f.write("\n".join(lines) + "\n")


CASES = [("guarantee.throughput", throughput, 90), ("guarantee.weights", weights, 60), ("guarantee.latency", latency, 330),
         ("guarantee.one_kernel", one_kernel, 140), ("guarantee.never_pausing", never_pausing, 60), ("guarantee.two_latency", two_latency, 60),
         ("guarantee.outsider", outsider, 60),
         ("guarantee.idle_turn", idle_turn, 60),
         ("guarantee.limit", limited, 45)]
PROGRAMS = ["worker"]
