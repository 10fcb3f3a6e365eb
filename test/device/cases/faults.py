# SPDX-License-Identifier: Apache-2.0
"""One program commits a fault: who fails, how long its neighbours stall, what the ledger and the arbiter say after. Stock and rondo in one
run, as a table for docs/faults.md.

A setting is a victim's class and the neighbours beside it; they stay from one fault to the next. Stock first: it is what the others are
judged by. RONDO_FAULT_KINDS: those only. RONDO_FAULT_ROUNDS: how often each, medians count; one if not said.
"""

import os
import re
import signal
import statistics
import time
import typing

import lab
from lab import Sampler, Stamps, check, compare, note, nvml, program, rondo, say, slot_of, status, stock, turns, wait_for, worker_words

BEFORE, AFTER = 0.5, 2.0  # seconds of the window
TOLERANCE_MS = 1 + 2  # stamps come with the ends of kernels of 1 ms; what the host adds to one
THINK_MS, KERNELS = 10, 20
TURN_MS = 500 + 100 + 60  # a turn, the patience for a gap, and two looks of the sampler at each end
TRUTH_S = 1.0
VICTIMS_LIMIT = "4Gi"
FAULTED = 3
ROUNDS = int(os.environ.get("RONDO_FAULT_ROUNDS", 1))

TEXT = {"illegal": "illegal address", "misaligned": "misaligned access", "assert": "`assert` in a kernel", "trap": "`trap` in a kernel",
        "stack": "stack overflow in a kernel (endless recursion)", "endless": "a kernel that never ends", "killed": "SIGKILL within a kernel",
        "exit": "`exit()` within a kernel", "destroyed": "`cuCtxDestroy` with kernels queued", "storm": "allocation storm (4 threads)",
        "fork": "`fork()` with a context"}
KINDS = [k for k in os.environ.get("RONDO_FAULT_KINDS", ",".join(TEXT)).split(",") if k in TEXT]
BY_CUDA = {"illegal", "misaligned", "assert", "trap", "stack"}  # those of which CUDA tells the program
EXIT_CODE = {"killed": 128 + signal.SIGKILL, "endless": 128 + signal.SIGKILL, **{k: FAULTED for k in BY_CUDA}}


class Setting(typing.NamedTuple):
    """A victim and its neighbours; classes None: the stock driver."""
    text: str
    victim: str = None
    requests: str = None  # the class of the neighbour with requests
    worker: str = None  # of the one that always has work
    judged_by: str = None
    suspended: bool = None  # the victim, when it commits its fault
    without: tuple = ()
    has_requests: bool = False
    serves: bool = False  # the victim has requests, instead of always having work


SETTINGS = {
    "stock": Setting("stock", has_requests=True),
    "stock_serves": Setting("stock (requests)", serves=True, without=("destroyed", "trap")),
    "standard": Setting("standard", "standard", worker="standard", judged_by="stock", without=("destroyed",)),
    "latency": Setting("latency", "latency", worker="batch", judged_by="stock_serves", serves=True, without=("destroyed", "trap")),
    "turn": Setting("batch, its turn", "batch", "latency", "batch", "stock", False, ("trap",), True),
    "suspended": Setting("batch, suspended", "batch", "latency", "batch", "stock", True, ("trap",), True),
}


class Row(typing.NamedTuple):
    """One fault, done."""
    got: str  # what the program's owner sees
    stall: dict  # neighbour -> ms
    right_ms: float  # until ledger and arbiter were right


rows = {}  # (setting, kind) -> [Row]


class Neighbour:
    def __init__(self, setting, name, serves, cls, place):
        self.name, self.serves, self.stamps = name, serves, Stamps(f"faults.{setting}.{name}")
        more = ["--cpu", lab.processor(place)]
        if serves:
            more += ["--think-us", THINK_MS * 1000, "--kernels", KERNELS]
        words = worker_words(self.stamps, 100 if serves else 1000, seconds=200, more=more)
        self.program = rondo(*words, cls=cls) if cls else stock(*words)
        self.slot = None

    def gaps(self, begin, end):
        """(begin, end) of each gap between stamps, ns; the one under way at each edge too."""
        stamps = [t for t in self.stamps.all() if t < end]
        first = next((i for i, t in enumerate(stamps) if t >= begin), len(stamps))
        within = stamps[max(0, first - 1):] + [end]
        return list(zip(within, within[1:]))

    def beyond(self, begin, end, off):
        """The longest gap less the time for which the arbiter had it suspended, ms."""
        return max(((b - a - sum(max(0, min(b, d) - max(a, c)) for c, d in off)) / 1e6 for a, b in self.gaps(begin, end)), default=0.0)

    def stall(self, settled, at, off):
        """(ms beyond what was due, ms that were due). A request is due when the pause is over; work, as soon as it was before the fault."""
        begin, end = at - int(BEFORE * 1e9), at + int(AFTER * 1e9)
        due = THINK_MS if self.serves else self.beyond(settled, at, off)
        return max(0.0, self.beyond(begin, end, off) - due), due


def spans(samples, slot):
    """From the last look that did not see the slot suspended to the first that did not again: (begin, end) ns."""
    found, since, clear = [], None, None
    for asked, (off, answered) in samples:
        if slot in off:
            since = since or clear or asked
        elif since:
            found.append((since, answered))
            since = None
        if slot not in off:
            clear = asked
    return found + ([(since, samples[-1][1][1])] if since else [])


def suspended_slots():
    now = status()
    if now is None:
        raise RuntimeError("no arbiter")
    return {s["slot"] for s in now["slots"] if s["suspended"]}, time.monotonic_ns()


def by_name(now, name):
    return next((s for s in (now or {}).get("slots", []) if s["slot"] == name), None)


def is_suspended(name):
    slot = by_name(status(), name)
    return slot is not None and slot["suspended"]


def right(neighbours, slot, pid):
    """None, or what is not yet as it was before the victim came."""
    now = status()
    if now is None:
        return "no arbiter"
    gone = by_name(now, slot)
    if gone and (gone["processes"] or gone["memoryUsedBytes"]):
        return f"the victim's slot holds {gone['memoryUsedBytes']} bytes of {len(gone['processes'])} processes"
    if pid in nvml().by_pid():
        return "the driver still knows the victim"
    for n in neighbours:
        s = slot_of(now, n.program)
        if s is None:
            return f"{n.name} has no slot"
        if s["suspended"] or not s["governed"]:
            return f"{n.name}: suspended {s['suspended']}, governed {s['governed']} {s['reason']}"
        if compare(s) != 0:
            return f"{n.name}: ledger - driver {compare(s)}"
    return None


def start(key, setting):
    workers = [Neighbour(key, "worker", False, setting.worker, 0)]
    if setting.has_requests:
        workers.append(Neighbour(key, "requests", True, setting.requests, 1))
    for n in workers:
        if wait_for(n.name, n.stamps.count, 20)[0] is None:
            raise RuntimeError(f"{n.program.label()} does nothing: {n.program.stderr()}")
        if setting.victim:
            n.slot = slot_of(status(), n.program)["slot"]
    return workers


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # its exit code tells


def ended(victim, pid, kind, at):
    """Waits for the victim's end, or sees to it: its exit code as a shell has it, its last words, when the fault was."""
    if kind == "killed":
        time.sleep(0.1)  # its kernel runs
        at = time.monotonic_ns()
        kill(pid)
    if kind == "endless":
        time.sleep(max(0, AFTER - (time.monotonic_ns() - at) / 1e9))
        kill(pid)
    code, text = victim.finish(15)
    return (128 - code if code < 0 else code), text, at


def owner_sees(code, text, errors):
    """What CUDA said, the exit code, and what stands on standard error."""
    result = re.search(r"^result (\w+) ([\d.]+)", text, re.M)
    children = re.search(r"^children (\w+)", text, re.M)
    parts = [f"child {children[1]}"] if children else []
    parts += [result[1] if result else "no answer", f"exit {code}"]
    took = float(result[2]) if result else None
    return ", ".join(parts) + "".join(f"; “{line.strip()[:100]}”" for line in errors.splitlines()[:1]), took


def warnings(since):
    """What the arbiter's log has beyond information since then."""
    path = os.path.join(lab.RUN_DIR, "arbiter.log")
    if not os.path.exists(path):
        return []
    with open(path) as f:
        f.seek(since)
        return [line.strip() for line in f if " I " not in line]


def log_size():
    path = os.path.join(lab.RUN_DIR, "arbiter.log")
    return os.path.getsize(path) if os.path.exists(path) else 0


def commit(key, setting, kind, neighbours):
    """One fault. Gives a Row, and the first thing that was not as it should be."""
    under = setting.victim is not None
    words = [program("faults"), kind, "--turns", turns()]
    if setting.serves:
        words += ["--kernel-us", 100, "--kernels", KERNELS, "--think-us", THINK_MS * 1000]
    logged = log_size()
    victim = rondo(*words, cls=setting.victim, memory=VICTIMS_LIMIT) if under else stock(*words)
    pid = int(victim.line().split()[1])
    sampler, slot = None, None
    if under:
        slot = slot_of(status(), victim)["slot"]
        sampler = Sampler(suspended_slots, 0.005)
    time.sleep(0.4)  # slices wait for 0.2 s after a start
    settled = time.monotonic_ns()
    time.sleep(BEFORE)
    if setting.suspended is not None:  # at the beginning of a turn, most of which is still to come
        for wanted in (not setting.suspended, setting.suspended):
            wait_for(f"suspended: {wanted}", lambda w=wanted: is_suspended(slot) == w, 4)
        time.sleep(0.06)  # the sampler has seen it too
    victim.send("go")
    at = int(victim.line().split()[1])
    middle = 0
    if kind == "fork" and under:
        children = victim.line(20)
        middle = compare(by_name(status(), slot))
        victim.buffer = children.encode() + b"\n" + victim.buffer
    code, text, at = ended(victim, pid, kind, at)
    gone = time.monotonic()
    wrong = None
    if under and wait_for("a right ledger", lambda: right(neighbours, slot, pid) is None, TRUTH_S + 2, 0.02)[0] is None:
        wrong = right(neighbours, slot, pid)
    right_ms = (time.monotonic() - gone) * 1e3 if under else float("nan")
    time.sleep(max(0, at / 1e9 + AFTER - time.monotonic()))
    samples = sampler.end() if sampler else []
    got, took = owner_sees(code, text, victim.stderr())
    stalls, told, longest_off = {}, [], 0
    for n in neighbours:
        off = [] if not under else spans(samples, n.slot)
        longest_off = max([longest_off] + [(d - c) / 1e6 for c, d in off])
        stalls[n.name], due = n.stall(settled, at, off)
        told.append(f"{n.name} {stalls[n.name]:.1f} ms beyond {due:.1f}")
        if n.program.child.poll() is not None:
            wrong = f"{n.name} ended: {n.program.finish(1)}"
    was_off = any(a <= at < b for a, b in spans(samples, slot)) if under else None
    now = status() if under else None
    for n in neighbours if under and not wrong else []:
        s = slot_of(now, n.program)
        if s is None or s["auditDifferenceBytes"] not in (0, None) or s["auditAlarms"]:
            wrong = f"{n.name}: audit difference {s and s['auditDifferenceBytes']}, alarms {s and s['auditAlarms']}"
    if not wrong and code != EXIT_CODE.get(kind, 0):
        wrong = f"the victim ends with {code}"
    if not wrong and under and right_ms > TRUTH_S * 1e3:
        wrong = f"ledger right after {right_ms:.0f} ms"
    if not wrong and middle != 0:
        wrong = f"a child gone, ledger - driver {middle}"
    if not wrong and longest_off > TURN_MS:
        wrong = f"a neighbour suspended for {longest_off:.0f} ms"
    if not wrong and setting.suspended is not None and was_off != setting.suspended:
        wrong = f"the victim was {'' if was_off else 'not '}suspended"
    note(f"faults.{key}.{kind}", f"{got}" + (f" after {took:.0f} ms" if took is not None else "") + f"; {', '.join(told)}"
         + (f"; ledger right {right_ms:.0f} ms after its end; a neighbour suspended for {longest_off:.0f} ms at most" if under else ""))
    for line in warnings(logged)[:3] if under else []:
        note("the arbiter", line[-150:])
    return Row(got, stalls, right_ms), wrong


def judge(key, setting, kind, wrong):
    done = rows[key, kind]
    said, ok = [], not wrong
    for name in done[0].stall:
        ours = statistics.median(r.stall[name] for r in done)
        theirs = [r.stall[name] for r in rows.get((setting.judged_by, kind), []) if name in r.stall]
        if setting.judged_by is None:
            said.append(f"{name} {ours:.1f} ms")
        elif not theirs:
            ok = False
            said.append(f"{name} {ours:.1f} ms, stock unknown")
        else:
            ok = ok and ours <= statistics.median(theirs) + TOLERANCE_MS
            said.append(f"{name} {ours:.1f} ms, stock {statistics.median(theirs):.1f}")
    check(f"faults.{key}.{kind}", ok, f"{done[0].got}; longest stall: {'; '.join(said)}" + (f"; WRONG: {wrong}" if wrong else ""))


def setting_case(key):
    setting = SETTINGS[key]

    def case():
        neighbours = start(key, setting)
        for kind in KINDS:
            if kind in setting.without:
                continue
            wrong = None
            for _ in range(ROUNDS):
                if any(n.program.child.poll() is not None for n in neighbours):
                    lab.sweep()
                    neighbours = start(key, setting)
                row, found = commit(key, setting, kind, neighbours)
                rows.setdefault((key, kind), []).append(row)
                wrong = wrong or found
            judge(key, setting, kind, wrong)
        codes = [n.program.end()[0] for n in neighbours]
        check(f"faults.{key}.neighbours", not any(codes), f"exit codes {codes}")

    case.__doc__ = f"One fault after the other, the victim {setting.text}: neighbours, ledger, arbiter."
    return case


def cell(kind, key, name):
    """Rondo's stall and that of stock."""
    setting = SETTINGS[key]
    pair = [[r.stall[name] for r in rows.get((k, kind), []) if name in r.stall] for k in (setting.judged_by, key)]
    return " → ".join(f"{statistics.median(v):.0f}" if v else "–" for v in pair)


def program_gets(kind):
    """On stock, and in each setting under Rondo where that differs."""
    by_text = {}
    for key, setting in SETTINGS.items():
        if (key, kind) in rows:
            text = rows[key, kind][0].got.replace("|", "/")
            by_text.setdefault(text, []).append(setting.text)
    return next(iter(by_text), "–") if len(by_text) <= 1 else "; ".join(f"{', '.join(who)}: {text}" for text, who in by_text.items())


def table():
    """What was measured, as Markdown; also in OUT/faults.md."""
    if not rows:
        return
    columns = [("standard", "worker"), ("latency", "worker"), ("turn", "requests"), ("turn", "worker"), ("suspended", "requests"),
               ("suspended", "worker")]
    lines = [f"{nvml().card()}:", "",
             "| fault | the program's owner sees | standard: other standard | latency: batch | batch, its turn: requests | … other batch "
             "| batch, suspended: requests | … other batch | ledger right after, at most |", "|---|---|---|---|---|---|---|---|---|"]
    for kind in KINDS:
        took = [r.right_ms for key, s in SETTINGS.items() if s.victim for r in rows.get((key, kind), [])]
        lines.append(f"| {TEXT[kind]} | {program_gets(kind)} | " + " | ".join(cell(kind, *c) for c in columns)
                     + f" | {max(took):.0f} ms |" if took else f"| {TEXT[kind]} | {program_gets(kind)} |" + " – |" * 7)
    say("\n".join(["", *lines, ""]))
    with open(os.path.join(lab.out_dir, "faults.md"), "w") as f:
        f.write("\n".join(lines) + "\n")


CASES = [(f"faults.{key}", setting_case(key), 90 * max(1, ROUNDS)) for key in SETTINGS]
PROGRAMS = ["worker", "faults"]
