# SPDX-License-Identifier: Apache-2.0
"""PyTorch: allocators at the limit, shares of time, an inference service beside a training job."""

import importlib.util
import json
import os
import sys

from lab import GIB, HERE, Skipped, check, compare, note, rondo, slot_of, status, stock

WORDS = [sys.executable, os.path.join(HERE, "torch_worker.py")]
START = 120  # importing it the first time reads gigabytes


def need_torch():
    if importlib.util.find_spec("torch") is None:
        raise Skipped("no PyTorch")


def ask(p, words, seconds=60):
    p.send(words)
    return answer(p, seconds)


def answer(p, seconds=60):
    got = json.loads(p.line(seconds))
    if "failed" in got:
        note(p.label(), got["failed"])
    return got


def both(programs, words, seconds=60):
    """All at once; their answers."""
    for p, w in zip(programs, words if isinstance(words, list) else [words] * len(programs)):
        p.send(w)
    return [answer(p, seconds) for p in programs]


def quit_all(programs):
    for p in programs:
        p.send("quit")
    for p in programs:
        p.finish(30)


def allocators():
    """matmul, training, CUDA graphs and filling to the limit of 8 GiB, with each of PyTorch's allocators."""
    need_torch()
    ways = {"native": "", "expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}
    programs = {name: rondo(*WORDS, env={"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else None, memory="8Gi")
                for name, conf in ways.items()}
    for p in programs.values():
        answer(p, START)
    loops = {name: [] for name in ways}
    for words in ("matmul 0.5 0.3", "train 0.5 0.3", "graph 0.5 0.3"):
        for name, got in zip(programs, both(list(programs.values()), words)):
            loops[name].append(got)
    for name, p in programs.items():
        filled = ask(p, "fill")
        slot = slot_of(status(), p)
        apart = compare(slot)
        p.send("")
        after = answer(p)
        rates = [round(g.get("rate", 0), 1) for g in loops[name]]
        loss = loops[name][1]
        check(f"torch.fill.{name}", filled["error"] is not None and 6000 <= filled["held_mib"] < 8192
              and slot["memoryUsedBytes"] <= 8 * GIB and apart == 0 and after.get("goes_on", 99) < 10 and min(rates) > 0
              and loss.get("loss", 1) < loss.get("first_loss", 0),
              f"held {filled['held_mib']} MiB of 8192, then {filled['error']!r}; slot {slot['memoryUsedBytes'] >> 20} MiB, ledger - "
              f"driver {apart}; goes on, loss {after.get('goes_on')}; matmul, train, graph per second {rates}")
    quit_all(programs.values())


def shares():
    """Weights 3:1 for matmul, CUDA graphs and training, each against itself alone."""
    need_torch()
    programs = [rondo(*WORDS, weight=w) for w in (3, 1)]
    for p in programs:
        answer(p, START)
    for word in ("matmul", "graph", "train"):
        ask(programs[1], f"{word} 0.5 0")  # what it does once only, so that both begin together then
        alone = ask(programs[0], f"{word} 2 0.7").get("rate")
        got = [g.get("rate") for g in both(programs, f"{word} 5 1.5")]
        if not alone or None in got:
            check(f"torch.shares.{word}", False, f"alone {alone}, beside each other {got}")
            continue
        part = [rate / alone for rate in got]
        ratio = part[0] / sum(part)
        check(f"torch.shares.{word}", abs(ratio - 0.75) <= 0.02 and 0.93 < sum(part) < 1.05,
              f"3:1, of alone ({alone:.1f}/s): {part[0]:.4f}, {part[1]:.4f}; first has {ratio:.4f} of both, sum {sum(part):.4f}")
    quit_all(programs)


def service():
    """A transformer that serves a request each 20 ms, alone, beside another's training on stock, beside it with rondo.

    p99: as a CUDA graph, 1.15 of alone or the two changes of context that a request cannot be spared. Eagerly, launching takes the host
    most of the time, and as long as it likes; judged is what comes after the last launch, where a queue that others have held up shows:
    two changes and their slice, and less than on stock.
    The training may lose the time in which a request is served, beside it or alone, whichever lasts longer, and 5 % of the rest: those
    changes, and what repeats of the training alone differ by.
    """
    need_torch()
    programs = [stock(*WORDS), stock(*WORDS), rondo(*WORDS, cls="latency", memory="16Gi"), rondo(*WORDS, cls="batch")]
    for p in programs:
        answer(p, START)
    lm_alone = [ask(programs[1], "lm 3 1")["rate"] for _ in range(2)]
    note("training alone, steps a second", f"{lm_alone[0]:.2f}, {lm_alone[1]:.2f}")
    for kind, by_graph in (("graph", 1), ("eager", 0)):
        alone = ask(programs[0], f"serve 8 1 {by_graph}")
        rows = {"alone": (alone, 1.0)}
        for way, (server, trainer) in (("stock", programs[:2]), ("rondo", programs[2:])):
            got, job = both([server, trainer], [f"serve 12 2 {by_graph}", "lm 12 2"])
            rows[way] = got, job["rate"] / max(lm_alone)
        for way, (got, kept) in rows.items():
            note(f"{kind} {way}", f"p50 {got['p50_ms']:.2f} p99 {got['p99_ms']:.2f} max {got['max_ms']:.2f} ms over "
                 f"{got['requests']} requests; after the last launch p50 {got['after_p50_ms']:.2f} p99 {got['after_p99_ms']:.2f}; served "
                 f"{got['busy']:.3f} of the time; training keeps {kept:.3f}")
            note(f"{kind} {way}", "slowest, ms (woken late, launching): "
                 + ", ".join(f"{total:.2f} ({late:.2f}, {launch:.2f})" for total, late, launch in got["slowest"]))
        (theirs, kept_stock), (mine, kept) = rows["stock"], rows["rondo"]
        judged = "p99_ms" if by_graph else "after_p99_ms"
        p99 = alone[judged]
        most = max(1.15 * p99, p99 + 0.25) if by_graph else min(p99 + 0.5, theirs[judged])
        least = 0.95 * (1 - max(mine["busy"], alone["busy"]))
        check(f"torch.service.{kind}.p99", mine[judged] <= most,
              f"{'' if by_graph else 'after the last launch: '}alone {p99:.2f}, stock {theirs[judged]:.2f}, rondo {mine[judged]:.2f} ms "
              f"(at most {most:.2f})")
        check(f"torch.service.{kind}.training", kept >= least,
              f"keeps, of alone: stock {kept_stock:.3f}, rondo {kept:.3f} (at least {least:.3f})")
    quit_all(programs)


CASES = [("torch.allocators", allocators, 200), ("torch.shares", shares, 180), ("torch.service", service, 200)]
PROGRAMS = []
