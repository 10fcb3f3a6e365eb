# SPDX-License-Identifier: Apache-2.0
"""Shares of time, whatever way a program launches: weights, limits, programs of several processes, requests beside batch work."""

import json
import statistics
import time

from lab import (GIB, MIB, TENANT, Skipped, Stamps, check, longest_gap_ms, rondo, say, slot_of, status, stock, sweep, turns, wait_for,
                 worker_words)

GRAPH = 100  # kernels in a graph of worker.cc


def measure(tenants, programs, warm=1.5, seconds=3.0):
    """tenants: (stamps of its processes, us of a unit). The share of each over the same stretch of time, and each one's longest gap in ms."""
    def settled():
        return all(s.count() for stamps, _ in tenants for s in stamps) or any(p.child.poll() is not None for p in programs)

    wait_for("all tenants", settled, 25)
    for p in programs:
        if p.child.poll() is not None:
            raise RuntimeError(f"{p.label()}: {p.finish(1)} {p.stderr()}")
    if not all(s.count() for stamps, _ in tenants for s in stamps):
        raise RuntimeError("a tenant does nothing")
    time.sleep(warm)
    begin = time.monotonic_ns()
    time.sleep(seconds)
    end = time.monotonic_ns()
    shares, gaps = [], []
    for stamps, us in tenants:
        done = [s.between(begin, end) for s in stamps]
        shares.append(sum(map(len, done)) * us * 1e3 / (end - begin))
        gaps.append(max(longest_gap_ms(d) if len(d) > 1 else float("inf") for d in done))
    return shares, gaps, (begin, end)


def finish(programs):
    for p in programs:
        p.child.terminate()
    return [p.finish(15)[0] for p in programs]


def pair(name, kind, us, depth=3, weights=(3, 1), tolerance=0.02, seconds=3.0, warm=1.5):
    tenants, programs = [], []
    for i, weight in enumerate(weights):
        stamps = Stamps(f"{kind}.{i}")
        unit = us * (GRAPH if kind.startswith("graph") else 1)
        tenants.append(((stamps,), unit))
        programs.append(rondo(*worker_words(stamps, us, kind, depth), weight=weight))
    shares, gaps, window = measure(tenants, programs, warm, seconds)
    codes = finish(programs)
    part = shares[0] / (shares[0] + shares[1])
    want = weights[0] / sum(weights)
    check(name, abs(part - want) <= tolerance and not any(codes),
          f"{kind}, {us} us: first has {part:.4f} of both ({want:.2f} wanted); shares {shares[0]:.4f}, {shares[1]:.4f}; longest "
          f"gaps {gaps[0]:.0f}, {gaps[1]:.0f} ms")
    return tenants, window


def ways_to_launch():
    """Weights 3:1 hold for graphs, big kernels with a wait each, clusters, cooperative launches, many graphs (A1 A3 A6 A7 A14)."""
    for name, kind, us, more in (("A1 shares.graph", "graph", 100, {}),
                                 ("A3 shares.big_kernels", "plain", 20000, {"depth": 1, "tolerance": 0.03, "warm": 5}),
                                 ("A6 shares.cluster", "cluster", 1000, {}),
                                 ("A7 shares.cooperative", "cooperative", 1000, {}),
                                 ("A14 shares.many_graphs", "graphs300", 20, {})):
        try:
            pair(name, kind, us, **more)
        except Skipped as error:
            say(f"SKIP {name}: {error}")
        except RuntimeError as error:
            check(name, False, error)
        sweep()


def steady():
    """Two of equal weight, kernels of 5 ms: no swings from one 100 ms to the next (A5)."""
    tenants, (begin, end) = pair("A5 shares.equal", "plain", 5000, weights=(1, 1), seconds=4)
    step = 100_000_000
    for (stamps,), us in tenants:
        done = stamps.between(begin, end)
        counts = [sum(at <= t < at + step for t in done) * us / 1e5 for at in range(begin, end - step, step)]
        gap = longest_gap_ms(done)
        check("A5 shares.steady", gap < 100 and statistics.pstdev(counts) < 0.15,
              f"share of each 100 ms: {min(counts):.2f} to {max(counts):.2f}, deviation {statistics.pstdev(counts):.3f}; longest "
              f"gap {gap:.0f} ms")


def limits():
    """--limit holds even alone (A2), and the arbiter knows the time of one without (A13)."""
    for limit in (0.25, 0.5):
        stamps = Stamps(f"limit.{limit}")
        p = rondo(*worker_words(stamps, 1000), limit=limit)
        shares, _, _ = measure([((stamps,), 1000)], [p], seconds=4)
        finish([p])
        check("A2 shares.limit", abs(shares[0] - limit) <= 0.03, f"limit {limit}: share {shares[0]:.4f} over 4 s, alone")
    stamps = Stamps("unlimited")
    p = rondo(*worker_words(stamps, 1000))
    q_stamps = Stamps("unlimited.other")
    q = rondo(*worker_words(q_stamps, 1000))
    shares, _, _ = measure([((stamps,), 1000), ((q_stamps,), 1000)], [p, q], warm=2, seconds=2)
    now = status()
    told = [slot_of(now, x)["usedShare"] for x in (p, q)]
    finish([p, q])
    check("A13 shares.known", all(t is not None and abs(t - s) < 0.06 for t, s in zip(told, shares)),
          f"arbiter's figures {told}, true {[round(s, 3) for s in shares]} (source {now['gpus'][0]['activitySource']})")


def several_processes():
    """A program of two processes, and of four, beside one of one: equal shares, one limit for all its memory (A8)."""
    for count in (2, 4):
        many, one = [Stamps(f"pod{count}.{i}") for i in range(count)], Stamps(f"pod{count}.one")
        words = worker_words(one, 1000)
        words[2] = one.path.replace(".one", "")
        p = rondo(*words, "--fork", count)
        q = rondo(*worker_words(one, 1000))
        shares, _, _ = measure([(many, 1000), ((one,), 1000)], [p, q])
        finish([p, q])
        part = shares[0] / sum(shares)
        check("A8 shares.processes", abs(part - 0.5) <= 0.02,
              f"{count} processes beside one, equal weights: {part:.4f} of both; shares {shares[0]:.4f}, {shares[1]:.4f}")
    stamps = [Stamps(f"take.{i}") for i in range(2)]
    words = worker_words(stamps[0], 1000, seconds=5)
    words[2] = stamps[0].path[:-2]
    p = rondo(*words, "--fork", 2, "--take", 8192, memory="4Gi")
    took = [p.line(40).split() for _ in range(2)]
    slot = slot_of(status(), p)
    total = sum(int(t[1]) for t in took)
    finish([p])
    check("memory.processes", all(t[2] == "CUDA_ERROR_OUT_OF_MEMORY" for t in took)
          and 4 * GIB - 8 * MIB <= slot["memoryUsedBytes"] <= 4 * GIB and total < 4 * GIB,
          f"two processes want 8 GiB each under 4: took {[int(t[1]) // MIB for t in took]} MiB, with contexts "
          f"{slot['memoryUsedBytes'] / MIB:.0f} of 4096")


def requests():
    """1 ms requests each 50 ms beside batch kernels of 2 ms (A11): alone, stock, rondo."""
    words = [TENANT, "--turns", turns(), "--kernels", 10, "--kernel-us", 100, "--think-us", 50000, "--seconds", 4, "--warmup", 2]
    us = {}
    for way in ("alone", "stock", "rondo"):
        stamps, beside = Stamps(f"low.{way}"), None
        if way != "alone":
            words_low = worker_words(stamps, 2000)
            beside = stock(*words_low) if way == "stock" else rondo(*words_low, cls="batch")
            wait_for("the batch program", stamps.count, 20)
        p = rondo(*words, cls="latency") if way == "rondo" else stock(*words)
        _, text = p.finish(40)
        us[way] = json.loads(text)["latency_us"]
        if beside:
            finish([beside])
    check("A11 shares.requests", us["rondo"]["p99"] <= us["alone"]["p99"] + 400,
          "; ".join(f"{way} p50 {u['p50']:.0f} p99 {u['p99']:.0f} max {u['max']:.0f} us" for way, u in us.items()))


CASES = [("shares.launches", ways_to_launch, 90), ("shares.steady", steady, 40), ("shares.limits", limits, 60),
         ("shares.processes", several_processes, 60), ("shares.requests", requests, 60)]
PROGRAMS = ["worker"]
