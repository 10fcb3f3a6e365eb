# SPDX-License-Identifier: Apache-2.0
"""Mixes of real programs: each alone, all on the stock driver, all under `rondo run` without a word about them; and with the classes one
would give them, where RONDO_MIX_WAYS says so.

Both ways' programs stay while the other's run, so that rounds can alternate: a round is a window on stock, then one with Rondo, of the same
cells and pauses. Programs are kept for the mixes that come later. What the host does to a program differs within minutes, so a ratio is
the median of those within rounds; of the eager decoder, what comes after the last launch is judged.

RONDO_MIX_ROUNDS, RONDO_MIX_SECONDS: of each mix. RONDO_MIX_WAYS: of stock, rondo, classes (services latency, others batch), services
(services latency, others nothing); stock,rondo if not said. RONDO_MIX_ALONE: a file with what programs do alone, read and added to;
OUT/mixes_alone.json if not said. OUT/mixes.jsonl gets all answers, OUT/mixes.md the table.
"""

import functools
import importlib.util
import json
import math
import os
import statistics
import sys
import time
import typing

import lab
import shares
from guarantees import Tenant, percentile
from lab import HERE, Skipped, check, note, nvml, rondo, say, stock
from pytorch import START

WORKER = [sys.executable, os.path.join(HERE, "mix_worker.py")]
WARM = 2.0  # seconds before what counts: slices grow while all use all of theirs
ROUNDS = int(os.environ.get("RONDO_MIX_ROUNDS", 3))
SECONDS = float(os.environ.get("RONDO_MIX_SECONDS", 0))
WAYS = os.environ.get("RONDO_MIX_WAYS", "stock,rondo").split(",")
CLASSES = {"stock": (None, None), "rondo": (None, None), "classes": ("latency", "batch"), "services": ("latency", None)}
FILL = 0.985
MIX_BAR, ALL_BAR, SERVICE_BAR = 1.00, 1.05, 1.05


class Torch(typing.NamedTuple):
    """A mix_worker."""
    kind: str
    service: bool = False
    pattern: float = 0
    least: float = 0.95  # of stock

    def name(self):
        return self.kind + (f" {self.pattern:g} s of {2 * self.pattern:g}" if self.pattern else "")

    def judged(self):
        """Of which times: the host launches an eager service, as fast as it likes."""
        return "after_ms" if self.kind == "decoder" else "request_ms"


class Worker(typing.NamedTuple):
    """The C++ worker: it begins at once and ends with its window."""
    us: int
    kernels: int = 1
    think: int = 0
    service: bool = False
    least: float = 0.95

    def name(self):
        return f"{self.kernels} x {self.us} us, think {self.think / 1000:g} ms" if self.think else f"{self.us} us kernels"

    def judged(self):
        return "request_ms"


class Mix(typing.NamedTuple):
    name: str
    programs: list
    seconds: float = 6
    fill: bool = False


decoder, graph, fps30 = Torch("decoder", True), Torch("graph", True), Torch("fps30", True)
train, saturate, long_kernels, notebook = (Torch(kind) for kind in ("train", "saturate", "long_kernels", "notebook"))
request, one = Worker(100, 20, 10000, True), Worker(100, 1, 2000, True)
busy = Worker(1000, least=0.90)  # it loses what the quicker requester rightly takes

MIXES = [
    Mix("decoder_2train", [decoder, train, train]),
    Mix("service_comes", [Torch("decoder", True, 2), train, train], 8),
    Mix("services_2train", [graph, decoder, train, train]),
    Mix("fps30_3", [fps30, saturate, train, long_kernels]),
    Mix("fill2", [saturate, train], fill=True),
    Mix("fill4", [saturate, saturate, train, long_kernels], fill=True),
    Mix("small_saturate", [Torch("small_train"), saturate]),
    Mix("notebooks4_train", [notebook] * 4 + [train], 14),
    Mix("notebooks8", [notebook] * 8, 14),
    Mix("data3", [Torch("data_train")] * 3),
    *(Mix(f"requests_{n}", [request] + [busy] * n) for n in (1, 3, 7)),
    Mix("one_kernel_3", [one] + [busy] * 3),
]

rows = []  # mix, program, alone, stock, rondo, ratio
geometric = {}  # mix: ratios


class Pool:
    """Programs that stay from mix to mix. After a mix that failed, none does."""

    def __init__(self):
        self.programs = {}
        self.all = []  # also those that ended: Program names its stderr by its place in lab.programs

    def enter(self):
        lab.programs[:0] = self.all

    def leave(self, mix):
        """lab.sweep() ends what is in lab.programs."""
        later = {p.kind for m in MIXES[MIXES.index(mix) + 1:] for p in m.programs if isinstance(p, Torch)}
        ended = [self.programs.pop(key) for key in list(self.programs) if key[0] not in later]
        for p in ended:
            p.send("quit")
        for p in ended:
            p.finish(30)
        lab.programs.clear()

    def lose(self):
        """All are in lab.programs: lab.sweep() ends them."""
        self.programs.clear()
        self.all.clear()

    def end(self):
        self.enter()
        lab.sweep()
        self.lose()

    def get(self, keys):
        """One program a key: kind, number of its kind, stock or rondo, class. All start at once."""
        new = [key for key in keys if key not in self.programs]
        for key in new:
            kind, number, way, cls = key
            words = [*WORKER, kind, "--seed", number]
            self.programs[key] = rondo(*words, cls=cls) if way == "rondo" else stock(*words)
            self.all.append(self.programs[key])
        begin = time.monotonic()
        took = [heard(self.programs[key], START)["mib"] for key in new]
        if new:
            note(f"{len(new)} programs started", f"{time.monotonic() - begin:.1f} s, {sum(took)} MiB by PyTorch, "
                 f"{nvml().used() >> 20} MiB of the card in use")
        return [self.programs[key] for key in keys]


pool = Pool()


def heard(program, seconds):
    got = json.loads(program.line(seconds))
    if "failed" in got:
        raise RuntimeError(f"{program.label()}: {got['failed']}")
    return got


def keys_of(mix, way):
    """Keys of the pool: a class that is none is the same program as without a class."""
    keys, numbers = [], {}
    for p in mix.programs:
        number = numbers[p.kind] = numbers.get(p.kind, -1) + 1
        keys.append((p.kind, number, "stock" if way == "stock" else "rondo", CLASSES[way][0 if p.service else 1]))
    return keys


@functools.lru_cache(maxsize=None)
def cores():
    """The processors of each core: two programs on one core would slow each other's launches down, whoever shares the GPU."""
    ours, found = sorted(os.sched_getaffinity(0)), []
    while ours:
        try:
            with open(f"/sys/devices/system/cpu/cpu{ours[0]}/topology/thread_siblings_list") as f:
                words = f.read().strip().replace("-", ",").split(",")
            group = sorted({int(w) for w in words} & set(ours))
        except (OSError, ValueError):
            group = ours[:1]
        if len(group) < 2:
            group = ours[:2]  # what a virtual machine does not tell
        found.append(group)
        ours = [c for c in ours if c not in group]
    return found


def core(i):
    """Of the i-th program, as a word: a core of its own where there are enough."""
    return ",".join(map(str, cores()[-1 - i])) if i < len(cores()) - 1 else "-"


def torch_window(programs, found, seconds, number):
    begin = time.monotonic_ns() + int(5e7)
    t0 = begin + int(WARM * 1e9)
    t1 = t0 + int(seconds * 1e9)
    for i, (p, child) in enumerate(zip(programs, found)):
        child.send(f"go {begin} {t0} {t1} {number} {p.pattern} {core(i)}")
    return [heard(child, WARM + seconds + 30) for child in found]


def worker_window(mix_programs, way, seconds):
    tenants = [Tenant(p.us, p.kernels, think=p.think, **options(way, p)) for p in mix_programs]
    children = [t.start("stock" if way == "stock" else "rondo", f"mix.{way}.{i}", seconds + 60, lab.processor(i)) for i, t in enumerate(tenants)]
    counted = [((t.stamps,), t.us * t.kernels) for t in tenants]
    part, _, (begin, end) = shares.measure(counted, children, 2 * WARM, seconds)
    answers = []
    for t, share in zip(tenants, part):
        if not t.think:
            answers.append({"speed": share, "unit": "of the card"})
            continue
        requests = t.stamps.with_requests(t.requests, begin, end)
        if not requests:
            raise RuntimeError(f"{way}: no request done")
        total = [round(r.total / 1e3, 3) for r in requests]
        answers.append({"speed": 1e3 / statistics.median(total), "unit": "/s by p50", "request_ms": total,
                        "after_ms": [round((r.total - r.launch) / 1e3, 3) for r in requests]})
    if any(shares.finish(children)):
        raise RuntimeError(f"{way}: a worker failed")
    return answers


def options(way, program):
    cls = CLASSES[way][0 if program.service else 1]
    return {"cls": cls} if cls else {}


def seconds_of(mix):
    return SECONDS or mix.seconds


def record(**what):
    with open(os.path.join(lab.out_dir, "mixes.jsonl"), "a") as f:
        f.write(json.dumps(what) + "\n")


def alone(programs, window):
    """What each does alone on stock: measured once a kind. window: (program, seconds) to its answer."""
    path = os.environ.get("RONDO_MIX_ALONE") or os.path.join(lab.out_dir, "mixes_alone.json")
    kept = {}
    if os.path.exists(path):
        with open(path) as f:
            kept = json.load(f)
    for p in programs:
        if p.name() not in kept:
            # A notebook's window has to have whole cells in it, a decoder's whole requests.
            kept[p.name()] = window(p, 8 if p.name() == "notebook" else 4 if isinstance(p, Torch) else 3)
            with open(path, "w") as f:
                json.dump(kept, f)
    return [kept[p.name()] for p in programs]


def points(answers, name):
    """p50 and p99 of all rounds' times together, or None."""
    values = sorted(v for a in answers for v in a.get(name, ()))
    return [percentile(values, q) for q in (0.5, 0.99)] if values else None


def ratio(a, b):
    """Of speeds; one that never came to anything counts as a hundredth."""
    return min(100.0, max(0.01, a / b if b > 0 else 100.0))


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def run(mix):
    needs_torch = isinstance(mix.programs[0], Torch)
    ways = [w for w in WAYS if w in ("stock", "rondo") or any(p.service for p in mix.programs)]
    if needs_torch:
        if any(importlib.util.find_spec(name) is None for name in ("torch", "torchvision", "transformers")):
            raise Skipped("no PyTorch, torchvision or transformers")
        keys = {way: keys_of(mix, way) for way in ways}
        wanted = list(dict.fromkeys(key for way in ways for key in keys[way]))
        children = dict(zip(wanted, pool.get(wanted)))

        def lone(p, seconds):
            child, = pool.get([(p.kind, 0, "stock", None)])
            return torch_window([p], [child], seconds, 0)[0]

        def window(way, i):
            return torch_window(mix.programs, [children[key] for key in keys[way]], seconds_of(mix), i)
    else:
        def lone(p, seconds):
            return worker_window([p], "stock", seconds)[0]

        def window(way, _):
            return worker_window(mix.programs, way, seconds_of(mix))

    base = alone(mix.programs, lone)
    found = {way: [] for way in ways}
    for i in range(ROUNDS):
        for way in ways:
            found[way].append(window(way, i))
            record(mix=mix.name, way=way, round=i, seconds=seconds_of(mix), programs=[p.name() for p in mix.programs], answers=found[way][-1])
    judge(mix, base, found)


def judge(mix, base, found):
    """found: way -> rounds -> programs -> answer."""
    name = f"mixes.{mix.name}"
    for i, p in enumerate(mix.programs):
        for way, rounds in found.items():
            show(p, way, base[i], [r[i] for r in rounds])
    for way in found:
        if way == "stock" or "stock" not in found:
            continue
        label = name if way == "rondo" else f"{name}.{way}"
        row_name = mix.name if way == "rondo" else f"{mix.name}, {way}"
        ratios = []
        for i, p in enumerate(mix.programs):
            pairs = [(mine[i]["speed"], theirs[i]["speed"]) for mine, theirs in zip(found[way], found["stock"])]
            each = [ratio(a, b) for a, b in pairs]
            ratios.append(statistics.median(each))
            words = f"{p.name()}: of stock {ratios[-1]:.3f}; rounds {', '.join(f'{r:.3f}' for r in each)}"
            mine, theirs = (statistics.median(v) for v in zip(*pairs))
            rows.append((row_name, p.name(), f"{number(base[i]['speed'])} {base[i]['unit']}",
                         of_alone(theirs, base[i]), of_alone(mine, base[i]), f"{ratios[-1]:.3f}"))
            if way == "rondo" or p.service:
                check(f"{label}.{i}.speed", ratios[-1] >= p.least, f"{words} (at least {p.least})")
            else:
                note(f"{label}.{i}", words)
            if p.service:
                times(label, row_name, i, p, base[i], [r[i] for r in found["stock"]], [r[i] for r in found[way]])
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        if way == "rondo":
            geometric[mix.name] = mean
            check(f"{label}.mean", mean >= MIX_BAR, f"geometric mean of the programs, of stock: {mean:.3f} (at least {MIX_BAR})")
        else:
            note(label, f"geometric mean of the programs, of stock: {mean:.3f}")
    for way, rounds in found.items():
        sums = [sum(a["speed"] / b["speed"] for a, b in zip(answers, base)) for answers in rounds]
        words = f"each one's work of what it does alone, added up: {statistics.median(sums):.4f}; rounds {', '.join(f'{s:.4f}' for s in sums)}"
        if mix.fill and way == "rondo":
            check(f"{name}.sum", statistics.median(sums) >= FILL, f"{way}: {words} (at least {FILL})")
        else:
            note(f"{name} {way}", words)


def of_alone(speed, base):
    return f"{ratio(speed, base['speed']):.3f}"


def show(p, way, base, answers):
    speeds = [a["speed"] for a in answers]
    words = f"{number(statistics.median(speeds))} {answers[0]['unit']}, of alone {of_alone(statistics.median(speeds), base)}; rounds " \
            f"{', '.join(map(number, speeds))}"
    for what in ("token_ms", "prompt_ms", "request_ms", "after_ms", "first_ms"):
        if mine := points(answers, what):
            words += f"; {what[:-3]} p50 {mine[0]:.2f} p99 {mine[1]:.2f} ms"
            if theirs := points([base], what):
                words += f" (alone {theirs[0]:.2f}, {theirs[1]:.2f})"
    lost = sum(a.get("lost", 0) for a in answers)
    if lost:
        words += f"; {lost} given up"
    note(f"{p.name()}, {way}", words)


def times(label, mix_name, i, p, base, theirs, mine):
    """A service's own times, against stock's."""
    alone_at, stock_at, rondo_at = (points(a, p.judged()) for a in ([base], theirs, mine))
    if stock_at is None or rondo_at is None:
        check(f"{label}.{i}.times", False, f"{p.name()}: nothing was served: stock {stock_at}, here {rondo_at}")
        return
    what = "after the last launch" if p.judged() == "after_ms" else "a request"
    for j, q in enumerate(("p50", "p99")):
        check(f"{label}.{i}.{q}", rondo_at[j] <= SERVICE_BAR * stock_at[j],
              f"{p.name()}, {what}: alone {alone_at[j] if alone_at else math.nan:.2f}, stock {stock_at[j]:.2f}, here {rondo_at[j]:.2f} ms "
              f"(at most {SERVICE_BAR} of stock)")
        rows.append((mix_name, f"… {what}, {q}, ms", f"{alone_at[j] if alone_at else math.nan:.2f}", f"{stock_at[j]:.2f}",
                     f"{rondo_at[j]:.2f}", f"{ratio(rondo_at[j], stock_at[j]) if stock_at[j] else math.nan:.3f}"))


def table():
    """What was measured, as Markdown; also in OUT/mixes.md. Speeds are of alone."""
    pool.end()
    if not rows:
        return
    lines = [f"{nvml().card()}:", "", "| mix | program | alone | stock | Rondo | of stock |", "|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    if geometric:
        mean = math.exp(statistics.fmean(map(math.log, geometric.values())))
        lines += ["", "geometric means: " + ", ".join(f"{name} {value:.3f}" for name, value in geometric.items())]
        check("mixes.mean", mean >= ALL_BAR, f"geometric mean of {len(geometric)} of {len(MIXES)} mixes, of stock: {mean:.3f} (at least {ALL_BAR})")
    say("\n".join(["", *lines, ""]))
    with open(os.path.join(lab.out_dir, "mixes.md"), "w") as f:
        f.write("\n".join(lines) + "\n")


def case(mix):
    def function():
        pool.enter()
        try:
            run(mix)
            pool.leave(mix)
        except BaseException:
            pool.lose()
            raise

    function.__doc__ = f"{', '.join(p.name() for p in mix.programs)}: alone, on stock, with Rondo, in rounds."
    # Starts, windows of ten kinds alone at most, rounds.
    seconds = START + 40 + ROUNDS * len(WAYS) * (seconds_of(mix) + 6)
    return f"mixes.{mix.name}", function, int(seconds)


CASES = [case(mix) for mix in MIXES]
PROGRAMS = ["worker"]
