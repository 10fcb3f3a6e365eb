# SPDX-License-Identifier: Apache-2.0
"""Limits and ledger against the driver's own figures: racing allocations, processes killed at any instant."""

import json
import time

from lab import (GIB, MIB, TENANT, Sampler, Stamps, check, compare, longest_gap_ms, note, nvml, program, rondo, slot_of, status, stock,
                 turns, wait_for, worker_words)

STORM = 24 * GIB  # room for ten contexts and what their programs hold; no other slot of a case has this limit


def race():
    """10 000 racing allocations of 16 processes: the limit holds to the byte, ledger and driver agree."""
    limit, procs, rounds = 14 * GIB, 16, 10
    before = nvml().used()
    churn = rondo(program("churn"), "--procs", procs, "--allocations", 10_000, "--rounds", rounds, memory="14Gi")
    ours = set()

    def sample():
        by_pid = nvml().by_pid()
        return sum(by_pid.get(p, 0) for p in ours), nvml().used()

    sampler, contexts, worst, apart, words = None, 0, 0, [], {}
    for k in range(rounds + 1):
        text = churn.line(60).split()
        words = dict(zip(text[::2], map(int, text[1::2])))
        slot = slot_of(status(), churn)
        by_pid = nvml().by_pid()
        charged = sum(by_pid.get(p["pid"], 0) for p in slot["processes"])
        worst = max(worst, charged)
        apart.append(compare(slot))
        if k == 0:
            contexts = charged
            ours.update(p["pid"] for p in slot["processes"])
            sampler = Sampler(sample, 0.002)
        if k < rounds:
            churn.send("")
    samples = sampler.end()
    time.sleep(2.3)  # two audits, one a second
    slot = slot_of(status(), churn)
    tried, got, denied, errors, peak = (words[w] for w in ("tried", "got", "denied", "errors", "peak"))
    check("memory.race.limit", tried >= 10_000 and denied > 0 and errors == 0 and 0 < worst <= limit and contexts + peak <= limit,
          f"over-run {max(0, worst - limit, contexts + peak - limit)} bytes; {tried} tried, {got} got, {denied} denied, "
          f"{errors} errors; driver's sum at marks at most {worst}, contexts + held at one instant at most {contexts + peak}, "
          f"limit {limit}")
    check("memory.race.ledger", all(a == 0 for a in apart), f"ledger - driver at {len(apart)} marks: {apart}")
    check("memory.race.audit", slot["auditDifferenceBytes"] == 0 and slot["auditAlarms"] == 0,
          f"difference {slot['auditDifferenceBytes']}, alarms {slot['auditAlarms']}, degraded {slot['degraded']}")
    if samples:
        note("sampled while racing", f"{len(samples)} samples; sum over processes (read one after the other) - limit at most "
             f"{(max(v[0] for _, v in samples) - limit) / MIB:.0f} MiB; card's own growth - limit at most "
             f"{(max(v[1] for _, v in samples) - before - limit) / MIB:.0f} MiB (page tables and the like are in no limit)")
    churn.no_more()
    churn.finish(20)


def storm_rounds(storm, count, kids, ms, under_rondo):
    """Rounds of kills: (times killed, ms until the ledger was right, children that ended early)."""
    kills, delays, early = [], [], 0
    for k in range(count):
        storm.send(f"{kids} {ms} {1000 + 100 * k}")
        dead = None
        while dead is None:
            words = storm.line(60).split()
            if words[0] == "killed":
                kills.append(int(words[1]))
            else:
                dead, early = int(words[1]), early + int(words[3])
                if under_rondo:
                    wait_for("an empty ledger", empty, 5)
                    delays.append((time.monotonic_ns() - dead) / 1e6)
    return kills, delays, early


def storms_slot(now):
    """By its limit: the processes of a storm may be dead to us and alive in the ledger, which is what is to be seen."""
    return next((s for s in (now or {}).get("slots", []) if s["memoryLimitBytes"] == STORM), None)


def empty():
    slot = storms_slot(status())
    return slot is not None and not slot["processes"] and slot["memoryUsedBytes"] == 0


def neighbour(stamps, begin, end, us):
    done = stamps.between(begin, end)
    return len(done) * us * 1e3 / (end - begin), longest_gap_ms(done)


def kill_allocating():
    """100 processes killed while they start, allocate, free and launch; a neighbour beside them, on stock too."""
    results = {}
    for way, rounds in (("stock", 3), ("rondo", 10)):
        stamps = Stamps(f"neighbour.{way}")
        under = way == "rondo"
        beside = (rondo if under else stock)(*worker_words(stamps, 1000, seconds=100))
        words = [program("storm"), "--turns", turns()]
        storm = rondo(*words, memory=STORM) if under else stock(*words)
        wait_for("the neighbour", stamps.count, 20)
        held = Sampler(lambda: storms_slot(status())["memoryUsedBytes"], 0.1) if under else None
        begin = time.monotonic_ns()
        kills, delays, early = storm_rounds(storm, rounds, 10, 1500, under)
        end = time.monotonic_ns()
        share, gap = neighbour(stamps, begin, end, 1000)
        code, _ = beside.end()
        results[way] = share, gap, code
        storm.no_more()
        storm.finish(20)
        if under:
            most = max(v for _, v in held.end())
            check("memory.kill_allocating.ledger", len(kills) + early >= 100 and early == 0 and max(delays) < 1000 and most > GIB,
                  f"{len(kills)} kills, {early} ended early; ledger empty after at most {max(delays):.0f} ms; "
                  f"most held {most / GIB:.1f} GiB")
    (share, gap, code), (old_share, old_gap, _) = results["rondo"], results["stock"]
    check("memory.kill_allocating.neighbour", code == 0 and share >= 0.45 and gap <= max(old_gap * 1.5, 250),
          f"no error {code == 0}; share {share:.3f} (stock {old_share:.3f}), longest gap {gap:.0f} ms (stock {old_gap:.0f})")


def kill_suspended():
    """100 processes of a batch program killed while a latency program makes it take turns with another batch program."""
    stamps = Stamps("neighbour.batch")
    latency_words = [TENANT, "--turns", turns(), "--kernels", 10, "--kernel-us", 100, "--think-us", 10000]
    _, alone = stock(*latency_words, "--seconds", 2).finish(30)
    latency = rondo(*latency_words, "--seconds", 26, "--warmup", 4, cls="latency")
    beside = rondo(*worker_words(stamps, 1000, seconds=100), cls="batch")
    storm = rondo(program("storm"), "--turns", turns(), memory=STORM, cls="batch")
    wait_for("the neighbour", stamps.count, 20)

    def suspended():
        slot = storms_slot(status())
        return slot is not None and slot["suspended"]

    sampler = Sampler(suspended, 0.01)
    begin = time.monotonic_ns()
    kills, delays, early = storm_rounds(storm, 10, 10, 2500, True)
    end = time.monotonic_ns()
    samples = sampler.end()
    share, gap = neighbour(stamps, begin, end, 1000)
    while_off = 0
    for at in kills:
        before = [v for t, v in samples if t <= at]
        while_off += bool(before and before[-1])
    check("memory.kill_suspended.ledger", len(kills) == 100 and early == 0 and max(delays) < 1000 and while_off >= 10,
          f"{len(kills)} kills, {while_off} of them while suspended, {early} ended early; ledger empty after at most "
          f"{max(delays):.0f} ms")
    storm.no_more()
    storm.finish(20)
    code, text = latency.finish(60)
    us, us_alone = (json.loads(t)["latency_us"] for t in (text, alone))
    beside_code, _ = beside.end()
    check("memory.kill_suspended.neighbours", code == 0 and beside_code == 0 and gap < 1500 and share > 0.3,
          f"errors none: {code == 0 and beside_code == 0}; other batch program: share {share:.3f}, longest gap {gap:.0f} ms (a "
          f"turn is 500); latency p50 {us['p50']:.0f} p99 {us['p99']:.0f} max {us['max']:.0f} us (alone p50 {us_alone['p50']:.0f} "
          f"p99 {us_alone['p99']:.0f} max {us_alone['max']:.0f})")


CASES = [("memory.race", race, 80), ("memory.kill_allocating", kill_allocating, 90), ("memory.kill_suspended", kill_suspended, 90)]
PROGRAMS = ["churn", "worker", "storm"]
