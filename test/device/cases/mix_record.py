#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program of mix_worker.py does to the GPU while it is alone, as a text from which a simulator can replay it.

mix_record.py KIND|all OUTDIR   writes OUTDIR/KIND.model, of one kind or of all, one after the other.

L CPU GPU: the processor works for so many us from the return of the call before, then a launch is queued that takes the GPU so long. S: waits
until the queue is empty. W US: the program sleeps. U: a unit is done (token, request, chunk, step, frame). The first lines begin with #.
flight: so many units are under way at once; the end of a unit that is older is waited for. A graph is one launch.

The profiler makes calls slower. So the processor's times are scaled until a unit of a replay takes as long as one of the program without
it, pauses left out: one after the other, or as many under way as the program has. Where the GPU alone takes longer than that, its times
are scaled and the processor's are left to what a unit's launches take while the GPU is idle.
"""

import collections
import gc
import json
import os
import random
import statistics
import sys
import tempfile
import time

import torch
import mix_worker as worker

QUEUE = 1024
UNITS = 12  # profiled
MAX_OPS = 4000  # of a file
MOST_SCALE = 1.2  # the profiler makes calls slower, not quicker
NEAR_US = 5  # between two kernels of a queue that is not empty
GPU_PARTS = ("kernel", "gpu_memcpy", "gpu_memset")
WAITS = ("StreamSynchronize", "EventSynchronize", "CtxSynchronize")
BETWEEN = "cudaDeviceSynchronize"  # record() calls it between units; no program of mix_worker does


# A unit is a list of ("L", cpu, gpu), ("S",), ("W", us).

def replay(units, flight=1, cpu_scale=1.0, gpu_scale=1.0, passes=3):
    """Microseconds a unit: the processor issues, the GPU works in order. The first pass does not count."""
    at = free = 0.0
    queue, ends, marks = collections.deque(), collections.deque(), []
    for _ in range(passes):
        for unit in units:
            for op in unit:
                if op[0] == "L":
                    at += op[1] * cpu_scale
                    while queue and queue[0] <= at:
                        queue.popleft()
                    if len(queue) >= QUEUE:
                        at = queue.popleft()
                    free = max(free, at) + op[2] * gpu_scale
                    queue.append(free)
                elif op[0] == "S":
                    at = max(at, free)
                else:
                    at += op[1]
            ends.append(free)
            if flight > 1 and len(ends) > flight:
                at = max(at, ends.popleft())
        marks.append(max(at, free) if flight == 1 else free)
    return (marks[-1] - marks[0]) / (len(units) * (passes - 1))


def scales(units, flight, step_us, issue_us):
    """Those of the processor and of the GPU with which a unit takes step_us."""
    gpu = statistics.fmean(sum(op[2] for op in unit if op[0] == "L") for unit in units)
    cpu = statistics.fmean(sum(op[1] for op in unit if op[0] == "L") for unit in units)
    given = min(1.0, issue_us / cpu) if cpu else 1.0
    if flight > 1 and replay(units, flight, given) <= 1.02 * gpu:  # the GPU is what it waits for
        return given, step_us / replay(units, flight, given)
    if replay(units, flight, 0.0) >= step_us:
        return 0.0, step_us / replay(units, flight, 0.0)
    if replay(units, flight, MOST_SCALE) < step_us:  # a wait that takes its time to return: nothing of the processor's launches
        return 1.0, solve(lambda scale: replay(units, flight, 1.0, scale), step_us, 4.0)
    return solve(lambda scale: replay(units, flight, scale), step_us, MOST_SCALE), 1.0


def solve(function, wanted, high):
    """Where a rising function has a value, from 0 to high."""
    low = 0.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > wanted else (middle, high)
    return low


def units_of(events):
    """The units of a trace, from its events: what the GPU did, launch by launch, and where the processor waited for it."""
    on_gpu = collections.defaultdict(list)
    calls = []
    for e in events:
        if e.get("ph") != "X":
            continue
        begin, end = float(e["ts"]), float(e["ts"]) + float(e["dur"])
        correlation = e.get("args", {}).get("correlation")
        if e.get("cat") in GPU_PARTS:
            on_gpu[correlation].append((begin, end))
        elif e.get("cat") in ("cuda_runtime", "cuda_driver"):
            calls.append((begin, end, e["name"], correlation))
    calls.sort()
    units, unit, returned, gpu_end = [], [], None, 0.0
    for begin, end, name, correlation in calls:
        if name == BETWEEN:
            if any(op[0] == "L" for op in unit):
                units.append(unit)
            unit, returned = [], end
            continue
        if returned is None:
            continue
        parts = on_gpu.pop(correlation, None)
        if parts:
            first, last = min(p[0] for p in parts), max(p[1] for p in parts)
            # Queued behind another: the step from one to the next is the GPU's time too.
            start = gpu_end if end <= gpu_end and first - gpu_end <= NEAR_US else max(first, gpu_end)
            unit.append(("L", max(0.0, end - returned), max(0.1, last - start)))
            gpu_end, returned = max(gpu_end, last), end
        elif any(w in name for w in WAITS):
            if unit and unit[-1][0] != "S":
                unit.append(("S",))
            returned = max(end, returned)
    return units


class Recorded:
    """A program, unit by unit, without its pauses."""
    count = UNITS

    def __init__(self, kind):
        self.name = kind
        self.kind = worker.ready(worker.parse([kind]))

    def prepare(self):
        pass

    def unit(self):
        self.kind.work()

    def with_pauses(self, units, unit_us):
        """The units as the program goes on with them."""
        if self.kind.period:
            return [unit + [("W", max(0.0, self.kind.period / 1e3 - unit_us))] for unit in units]
        return units


class Tokens(Recorded):
    count = 7

    def prepare(self):
        """The prompt of a new request: its unit is left out, for it would be one of few here."""
        self.kind.left = 0
        self.kind.work()


class Cells(Recorded):
    def with_pauses(self, units, unit_us):
        dice, found, ops = random.Random(1), [], 0
        for chunks, pause in self.kind.cells(dice):
            ops += chunks * len(units[0])
            if found and ops > MAX_OPS:
                return found
            found += [list(units[i % len(units)]) for i in range(chunks)]
            found[-1].append(("W", pause / 1e3))


class WaitsForData(Recorded):
    def with_pauses(self, units, unit_us):
        dice = random.Random(1)
        return [[("W", 1e6 * dice.uniform(0.03, 0.06))] + unit for unit in units]


class Steps(Recorded):
    """A unit is a step; after the tenth the program asks for the loss."""
    count = worker.SmallTrain.STEPS

    def __init__(self, kind):
        super().__init__(kind)
        self.done = 0

    def unit(self):
        loss = self.kind.step()
        self.done += 1
        if self.done % self.count == 0:
            loss.item()


RECORDED = {"decoder": Tokens, "notebook": Cells, "data_train": WaitsForData, "small_train": Steps}


def timed(program):
    """Of a unit without the profiler, in us: as the program runs; until unit() returns, on an idle GPU."""
    issue, stamps, flights = [], [], collections.deque()
    program.prepare()
    for _ in range(program.count):
        torch.cuda.synchronize()
        begin = time.monotonic_ns()
        program.unit()
        issue.append((time.monotonic_ns() - begin) / 1e3)
    program.prepare()
    torch.cuda.synchronize()
    flight, count = program.kind.flight, program.count * (1 if program.kind.flight == 1 else 3)
    begin = time.monotonic_ns()
    for _ in range(count):
        program.unit()
        if flight > 1:
            flights.append(torch.cuda.Event())
            flights[-1].record()
            if len(flights) > flight:
                flights.popleft().synchronize()
                stamps.append(time.monotonic_ns())
    torch.cuda.synchronize()
    if flight > 1:
        return (stamps[-1] - stamps[0]) / 1e3 / (len(stamps) - 1), statistics.median(issue)
    return (time.monotonic_ns() - begin) / 1e3 / count, statistics.median(issue)


def profiled(program):
    """Units, or an empty list where the profiler sees no kernels."""
    from torch.profiler import ProfilerActivity, profile

    def once(count):
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            for _ in range(count):
                torch.cuda.synchronize()
                program.unit()
            torch.cuda.synchronize()
        return profiler

    once(program.count)  # what attaching costs once
    program.prepare()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        once(program.count).export_chrome_trace(path)
        with open(path) as f:
            return units_of(json.load(f)["traceEvents"])


def fewer(units):
    """As many as fit, the last one among them: it may be the one with a wait."""
    most = max(1, MAX_OPS // max(map(len, units)))
    return units if len(units) <= most else units[len(units) - most:]


def text(x):
    return f"{x:.1f}".removesuffix(".0")


def model(program, units, step_us, issue_us, how):
    """The file's text."""
    flight = program.kind.flight
    units = fewer(units)
    cpu_scale, gpu_scale = scales(units, flight, step_us, issue_us)
    unit_us = replay(units, flight, cpu_scale, gpu_scale)
    gpu_us = statistics.fmean(sum(op[2] * gpu_scale for op in unit if op[0] == "L") for unit in units)
    whole = program.with_pauses(units, unit_us)
    lines = [f"# kind={program.name} step_us={step_us:.1f} replay_us={unit_us:.1f} gpu_us={gpu_us:.1f} ops={sum(map(len, whole))}",
             f"# units={len(whole)} flight={flight} period_us={program.kind.period / 1e3:.0f} issue_us={issue_us:.1f} cpu_scale={cpu_scale:.3f} "
             f"gpu_scale={gpu_scale:.3f} from={how}"]
    for unit in whole:
        for op in unit:
            if op[0] == "L":
                lines.append(f"L {text(op[1] * cpu_scale)} {text(op[2] * gpu_scale)}")
            else:
                lines.append(" ".join([op[0], *map(text, op[1:])]))
        lines.append("U")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("all", *worker.KINDS):
        print(__doc__)
        return 2
    kinds = list(worker.KINDS) if sys.argv[1] == "all" else [sys.argv[1]]
    os.makedirs(sys.argv[2], exist_ok=True)
    times, programs, failed = {}, {}, 0
    for kind in kinds:  # all of them before the profiler attaches: it may stay
        try:
            programs[kind] = RECORDED.get(kind, Recorded)(kind)
            times[kind] = timed(programs[kind])
            print(f"{kind}: {times[kind][0]:.1f} us a unit, {times[kind][1]:.1f} us until it has been launched", flush=True)
        except Exception as error:
            failed += 1
            print(f"{kind}: {type(error).__name__}: {error}", flush=True)
    for kind in times:
        program, (step_us, issue_us) = programs[kind], times[kind]
        try:
            units, how = profiled(program), "trace"
        except Exception as error:
            print(f"{kind}: no trace: {type(error).__name__}: {error}", flush=True)
            units = []
        if not units:
            wait = [("S",)] if program.kind.flight == 1 else []
            units, how = [[("L", 1.0, step_us)] + wait], "time"
        written = model(program, units, step_us, issue_us, how)
        with open(os.path.join(sys.argv[2], kind + ".model"), "w") as f:
            f.write(written)
        print("\n".join(written.split("\n", 2)[:2]), flush=True)
        programs[kind] = None
        del program
        gc.collect()
        torch.cuda.empty_cache()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
