# SPDX-License-Identifier: Apache-2.0
"""What the device cases share: programs with bounded waits, `rondo run` and its status, the driver's own memory figures,
and one line a finding. One case at a time; a case that hangs is ended, said to have failed, and the next one begins."""

import atexit
import ctypes
import json
import mmap
import os
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
import typing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DEVICE = os.path.join(ROOT, "build", "device")
HERE = os.path.dirname(os.path.abspath(__file__))
RONDO = os.path.join(DEVICE, "rondo")
TENANT = os.path.join(DEVICE, "rondo-tenant")
RUN_DIR = "/tmp/rondo-cases"
MIB = 1 << 20
GIB = 1 << 30
SKIPPED = 77  # a program of cases/ that asks for what this driver lacks

out_dir = os.path.join(DEVICE, "out")
scratch = tempfile.mkdtemp(prefix="rondo-stamps-")  # megabytes that nobody wants to keep
atexit.register(shutil.rmtree, scratch, ignore_errors=True)
findings = []
programs = []


class Skipped(Exception):
    """What a case needs is not on this machine."""


def say(line):
    print(line, flush=True)


def check(name, ok, numbers):
    findings.append((name, ok))
    say(f"{'PASS' if ok else 'FAIL'} {name}: {numbers}")
    return ok


def note(name, numbers):
    say(f"     {name}: {numbers}")


def program(name):
    return os.path.join(DEVICE, "cases", name)


def build(names):
    """The programs of cases/, by this machine's compiler and cuda.h. Those that are newer than their sources stay."""
    os.makedirs(os.path.join(DEVICE, "cases"), exist_ok=True)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    places = [os.environ.get("CUDA_INCLUDE", ""),
              os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "include"),
              "/usr/local/cuda/include"]
    jobs = []
    for name in names:
        sources = [os.path.join(HERE, name + ".cc"), os.path.join(HERE, "gpu.h")]
        target = program(name)
        if os.path.exists(target) and all(os.path.getmtime(s) <= os.path.getmtime(target) for s in sources):
            continue
        include = next((p for p in places if p and os.path.exists(os.path.join(p, "cuda.h"))), None)
        if include is None:
            raise RuntimeError("no cuda.h: set CUDA_INCLUDE")
        jobs.append((name, subprocess.Popen(["g++", "-std=c++17", "-O2", "-I" + include, sources[0], "-o", target, "-ldl",
                                             "-pthread"])))
    for name, job in jobs:
        if job.wait(120) != 0:
            raise RuntimeError(f"{name}.cc does not compile")


class Program:
    """A child in a session of its own; lines of its standard output are read with a deadline."""

    def __init__(self, words, env=None, **more):
        self.words = [str(w) for w in words]
        self.errors = open(os.path.join(out_dir, f"stderr.{len(programs)}"), "w+")
        self.child = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                      start_new_session=True, env={**os.environ, **(env or {})}, **more)
        self.buffer = b""
        programs.append(self)

    @property
    def pid(self):
        return self.child.pid

    def send(self, line):
        self.child.stdin.write(line.encode() + b"\n")
        self.child.stdin.flush()

    def no_more(self):
        self.child.stdin.close()
        self.child.stdin = None  # else communicate() flushes it

    def line(self, seconds=30):
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            ready = select.select([self.child.stdout], [], [], max(0, left))[0] if left > 0 else []
            data = os.read(self.child.stdout.fileno(), 65536) if ready else None
            if not data:
                why = "ended" if data == b"" else f"says nothing for {seconds} s"
                raise RuntimeError(f"{self.label()} {why}: {self.buffer.decode()!r} {self.stderr()!r}")
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\n")
        text = text.decode()
        if text.startswith("SKIP"):
            raise Skipped(text[5:])
        return text

    def finish(self, seconds=30):
        """Its exit code and what it had still to say."""
        try:
            rest, _ = self.child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.label()} does not end within {seconds} s")
        text = (self.buffer + rest).decode()
        self.buffer = b""
        if text.startswith("SKIP"):
            raise Skipped(text[5:].strip())
        return self.child.returncode, text

    def end(self, seconds=10):
        self.child.send_signal(signal.SIGTERM)
        return self.finish(seconds)

    def stderr(self):
        self.errors.flush()
        with open(self.errors.name) as f:
            return f.read()[-600:]

    def label(self):
        return " ".join(os.path.basename(w) for w in self.words if not w.startswith("--run-dir"))[:120]


def run_words(words, memory=None, weight=None, cls=None, limit=None):
    """`rondo run` with the options, before the words of a program."""
    options = [RONDO, "run", "--run-dir", RUN_DIR]
    for name, value in (("--memory", memory), ("--weight", weight), ("--class", cls), ("--limit", limit)):
        if value is not None:
            options += [name, str(value)]
    return options + ["--"] + [str(w) for w in words]


def rondo(*words, env=None, **options):
    return Program(run_words(words, **options), env=env)


def stock(*words, env=None):
    return Program(words, env=env)


def status():
    """The arbiter's own view, or None where none answers just now."""
    done = subprocess.run([RONDO, "run", "--run-dir", RUN_DIR, "--status"], capture_output=True, text=True, timeout=20)
    return json.loads(done.stdout) if done.returncode == 0 else None


def pids_below(pid):
    """The process and its descendants."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    parent = int(f.read().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def slot_of(now, a_program):
    """The slot that holds a process of the program."""
    ours = set(pids_below(a_program.pid))
    for slot in (now or {}).get("slots", []):
        if any(p["pid"] in ours for p in slot["processes"]):
            return slot
    return None


def wait_for(what, predicate, seconds, pause=0.01):
    """Seconds until the predicate gave something, and what; (None, None) after the deadline."""
    begin = time.monotonic()
    while True:
        value = predicate()
        if value:
            return time.monotonic() - begin, value
        if time.monotonic() - begin > seconds:
            note("gave up waiting for", what)
            return None, None
        time.sleep(pause)


class Nvml:
    """The driver's own figures: bytes by pid, bytes of the card."""

    class _Process(ctypes.Structure):
        _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]

    class _Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    def __init__(self):
        self.lib = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        if self.lib.nvmlInit_v2() or self.lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)):
            raise RuntimeError("NVML does not start")

    def by_pid(self):
        for size in (64, 1024):
            count = ctypes.c_uint(size)
            array = (self._Process * size)()
            code = self.lib.nvmlDeviceGetComputeRunningProcesses_v3(self.device, ctypes.byref(count), array)
            if code == 0:
                return {p.pid: p.used for p in array[:count.value] if p.used != 2**64 - 1}
        raise RuntimeError(f"NVML's list of processes: error {code}")

    def text(self, call, *before):
        buffer = ctypes.create_string_buffer(96)
        return buffer.value.decode() if getattr(self.lib, call)(*before, buffer, 96) == 0 else "unknown"

    def card(self):
        """Name of the card and version of its driver."""
        return f"{self.text('nvmlDeviceGetName', self.device)}, driver {self.text('nvmlSystemGetDriverVersion')}"

    def used(self):
        memory = self._Memory()
        self.lib.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory))
        return memory.used


_nvml = None


def nvml():
    global _nvml
    _nvml = _nvml or Nvml()
    return _nvml


def compare(slot):
    """Ledger minus the driver's own bytes, over the processes of one slot; None where NVML shows none of them."""
    driver = nvml().by_pid()
    known = [p for p in slot["processes"] if p["pid"] in driver]
    if not known:
        return None
    return slot["memoryUsedBytes"] - sum(driver[p["pid"]] for p in known)


class Request(typing.NamedTuple):
    """Microseconds of a worker's request; at: CLOCK_MONOTONIC ns of its end."""
    total: float
    launch: float  # until the last launch returned
    wait: float  # from the first launch until the GPU began, more than the least of the requests around it
    gpu: float  # from the start of its first kernel to the end of its last, by the GPU's clock
    starved: float  # its thread had no processor; below 0: unknown
    stall: float  # longest between two looks whether it is done: the machine stood still
    at: int


class Stamps:
    """The units of work of a worker, read while it runs."""

    def __init__(self, name):
        self.path = os.path.join(scratch, name)
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.map = None

    def count(self):
        if self.map is None:
            try:
                with open(self.path, "r+b") as f:
                    self.map = mmap.mmap(f.fileno(), 0)
            except (OSError, ValueError):
                return 0
        return struct.unpack_from("Q", self.map, 0)[0]

    def all(self):
        n = self.count()
        return list(struct.unpack_from(f"{n}q", self.map, 8)) if n else []

    def between(self, begin, end):
        return [t for t in self.all() if begin <= t < end]

    def with_requests(self, requests, begin, end):
        """What is known of each request that was done then: when, and microseconds (Request), the fastest first."""
        values = requests.all()
        rows = list(zip(self.all(), *(values[i::6] for i in range(6))))
        # The GPU's clock against the host's: drifts, but not within a second.
        ahead = [began - (at - total) for at, total, _, began, _, _, _ in rows]
        found = []
        for i, (at, total, launch, _, gpu, starved, stall) in enumerate(rows):
            wait = ahead[i] - min(ahead[max(0, i - 40):i + 41])
            if begin <= at < end:
                found.append(Request(*(v / 1e3 for v in (total, launch, wait, gpu, starved, stall)), at))
        return sorted(found)

    def first_after(self, ns):
        """Looks from the end: it was a moment ago."""
        n, best = self.count(), None
        while n > 0:
            n -= 1
            at = struct.unpack_from("q", self.map, 8 + 8 * n)[0]
            if at < ns:
                break
            best = at
        return best


def longest_gap_ms(stamps):
    return max(((b - a) / 1e6 for a, b in zip(stamps, stamps[1:])), default=float("nan"))


class Sampler:
    """Calls a function again and again in a thread; keeps (ns, value)."""

    def __init__(self, function, pause=0.02):
        self.samples, self.stop = [], threading.Event()

        def loop():
            while not self.stop.is_set():
                try:
                    self.samples.append((time.monotonic_ns(), function()))
                except Exception as error:  # the sampler must not end with a restarting arbiter
                    self.samples.append((time.monotonic_ns(), error))
                self.stop.wait(pause)

        self.thread = threading.Thread(target=loop, daemon=True)
        self.thread.start()

    def end(self):
        self.stop.set()
        self.thread.join(10)
        return [(t, v) for t, v in self.samples if not isinstance(v, Exception)]


_turns = None


def turns():
    """Loop turns of a microsecond, measured once a machine on an idle GPU."""
    global _turns
    kept = os.path.join(out_dir, "turns")
    if _turns is None and os.path.exists(kept):
        with open(kept) as f:
            _turns = f.read()
    if _turns is None:
        code, text = stock(TENANT, "--seconds", "0.5").finish(60)
        _turns = str(json.loads(text)["turns_per_us"])
        with open(kept, "w") as f:
            f.write(_turns)
    return _turns


def processor(i):
    """A processor of its own for the launching thread of the i-th worker, where there are enough for everybody."""
    ours = sorted(os.sched_getaffinity(0))
    return ours[-1 - i] if len(ours) >= 8 and i < len(ours) // 2 else -1


def worker_words(stamps, us=1000, kind="plain", depth=3, seconds=60, more=()):
    return [program("worker"), "--stamps", stamps.path, "--turns", turns(), "--kind", kind, "--kernel-us", us, "--depth", depth,
            "--seconds", seconds, *more]


def diagnose():
    """What every process of ours waits for."""
    for p in programs:
        if p.child.poll() is not None:
            continue
        for pid in pids_below(p.pid):
            try:
                with open(f"/proc/{pid}/cmdline") as f:
                    say(f"  == {pid} {f.read().replace(chr(0), ' ')[:150]}")
                for task in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{task}/wchan") as f:
                        where = f.read()
                    say(f"  -- {task} {where}")
            except OSError:
                pass
    log = os.path.join(RUN_DIR, "arbiter.log")
    if os.path.exists(log):
        with open(log) as f:
            say("  arbiter: " + "  arbiter: ".join(f.readlines()[-8:]))


def sweep():
    """Ends what a case left."""
    for p in programs:
        if p.child.poll() is None:
            for pid in reversed(pids_below(p.pid)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            try:
                p.child.wait(10)
            except subprocess.TimeoutExpired:
                say(f"  does not die: {p.label()}")
        p.errors.close()
    programs.clear()


def run_case(name, function, seconds):
    def on_alarm(*_):
        raise TimeoutError(f"not done after {seconds} s")

    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(seconds)
    begin = time.monotonic()
    say(f"== {name}")
    try:
        function()
    except Skipped as error:
        say(f"SKIP {name}: {error}")
    except Exception as error:
        signal.alarm(0)
        check(name, False, f"{type(error).__name__}: {error}")
        diagnose()
    finally:
        signal.alarm(0)
        sweep()
    say(f"   ({time.monotonic() - begin:.1f} s)")
