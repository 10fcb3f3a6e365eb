#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that NVML programs that others wrote run on a simulated node.

    test/peers/pynvml_check.py [--rondo build/release/bin/rondo] [--venv DIR]

Installs nvidia-ml-py (NVIDIA's own Python binding: its structures are an independent reading of the ABI), nvitop and
gpustat from PyPI into a virtual environment outside the tree, then, on nodes of several kinds:
  * calls every function of pynvml that reads something, on each GPU and MIG device, and checks the values that the
    profile fixes; "not supported" is an answer, any other error that is not listed here is a failure;
  * runs `nvitop -1` and `gpustat` and looks for what they must show.
Needs PyPI, so it is no part of `make test`. Exit 0 when all is right.
"""

import argparse
import inspect
import os
import subprocess
import sys
import tempfile
import venv

PACKAGES = ["nvidia-ml-py==13.615.71", "nvitop==1.7.2", "gpustat==1.1.1"]
MIB = 1 << 20

# Profile -> (GPUs, name of the first, its MiB, its bus id, MIG devices of the first).
NODES = {
    "2xT4": (2, "Tesla T4", 15360, "00000000:17:00.0", 0),
    "4xA100": (4, "NVIDIA A100-SXM4-80GB", 81920, "00000000:17:00.0", 0),
    "A100+3g.40gb+2g.20gb+1g.10gb+me": (1, "NVIDIA A100-SXM4-80GB", 81920, "00000000:17:00.0", 3),
    "8xH100": (8, "NVIDIA H100 80GB HBM3", 81559, "00000000:17:00.0", 0),
    "H200+MIG": (1, "NVIDIA H200", 143771, "00000000:17:00.0", 7),
    "2xA10": (2, "NVIDIA A10", 23028, "00000000:17:00.0", 0),
    "8xV100": (8, "Tesla V100-SXM2-16GB", 16384, "00000000:17:00.0", 0),
    "RTX-4090": (1, "NVIDIA GeForce RTX 4090", 24564, "00000000:17:00.0", 0),
}

# Not walked: they change something, need a structure that has no default, or are about vGPU and other machinery.
SKIP_WORDS = ["Vgpu", "Set", "Reset", "Clear", "Create", "Destroy", "Remove", "Discover", "Modify", "Freeze", "Gpm",
              "PowerSmoothing", "WorkloadPower", "ConfCompute", "PRM", "CPER", "Unit", "Drain", "PerfMetrics",
              "SystemRegister", "SystemEventSet", "Excluded", "EventSetWait", "EventSetGet", "EventSetFree",
              "EventSetRegister", "RegisterEvents", "Query", "Telemetry"]
SKIP = {"nvmlInit", "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString", "nvmlExceptionClass", "nvmlCheckReturn",
        "nvmlQueryFieldValues", "nvmlStructToFriendlyObject", "nvmlFriendlyObjectToStruct", "nvmlFriendlyObject",
        "nvmlDeviceGetHandleByUUIDV",  # asked with both of its types in values()
        # Their first parameter is called device and is a GPU instance.
        "nvmlGpuInstanceGetComputeInstanceProfileInfo", "nvmlGpuInstanceGetComputeInstanceProfileInfoV"}

# Errors that the call itself promises in this situation.
EXPECTED = {
    "nvmlDeviceGetProcessUtilization": "NotFound",  # an idle GPU has no samples
    "nvmlDeviceGetProcessesUtilizationInfo": "NotFound",
    "nvmlDeviceGetAccountingStats": "NotSupported",
    "nvmlDeviceGetAttributes": "InvalidArgument",  # these four are for MIG devices only
    "nvmlDeviceGetAttributes_v2": "InvalidArgument",
    "nvmlDeviceGetGpuInstanceId": "InvalidArgument",
    "nvmlDeviceGetComputeInstanceId": "InvalidArgument",
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": "InvalidArgument",
    "nvmlDeviceGetMigDeviceHandleByIndex": "NotFound",
    "nvmlDeviceGetGpuInstanceById": "NotFound",
    "nvmlDeviceGetP2PStatus": "InvalidArgument",  # the GPU with itself
}


class Checker:
    def __init__(self):
        self.ok = self.unsupported = 0
        self.failures = []

    def expect(self, what, got, want):
        if got == want:
            self.ok += 1
        else:
            self.failures.append(f"{what}: got {got!r}, want {want!r}")


def arguments(n, function, device, other):
    """A value for each parameter by its name; None where one has no default that makes sense."""
    values = {
        "handle": device, "device": device, "handle1": device, "handle2": other, "device1": device, "device2": other,
        "migDevice": device, "index": 0, "uuid": n.nvmlDeviceGetUUID(device), "type": 0, "id": 0, "fan": 0,
        "pciBusId": n.nvmlDeviceGetPciInfo(device).busId, "sensor": 0, "threshold": 0, "errorType": 1,
        "counterType": 0, "locationType": 2, "timeStamp": 0, "sourceFilter": 1, "apiType": 0, "sampling_type": 1,
        "perfPolicyType": 0, "counter": 0, "cpuNumber": 0, "level": 50, "link": 0, "capability": 0, "p2pIndex": 2,
        "profile": 0, "profileId": 19, "engProfile": 0, "pid": os.getpid(), "fieldIds": [1, 82, 83, 91, 144, 186, 230],
        "mode": 0, "infoRomObject": 1, "clockType": 0, "pstate": 0, "encoderQueryType": 0, "sensorindex": 0,
        "gpuInstanceId": 1, "scope": 0, "nodeSetSize": 1, "cpuSetSize": 1, "eventTypes": 8,
        "memoryClockMHz": None, "serial": None, "version": None,
    }
    out = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            continue
        if values.get(name) is None:
            return None
        out.append(values[name])
    return out


def walk(n, check, device, other):
    """Every reading function of pynvml. A MIG device is asked too: it may refuse, it may not crash."""
    is_mig = n.nvmlDeviceIsMigDeviceHandle(device)
    for name, function in sorted(inspect.getmembers(n, inspect.isfunction)):
        if not name.startswith("nvml") or name in SKIP or any(word in name for word in SKIP_WORDS):
            continue
        args = arguments(n, function, device, other)
        if args is None:
            continue
        try:
            function(*args)
            check.ok += 1
        except n.NVMLError as error:
            kind = type(error).__name__.removeprefix("NVMLError_")
            if kind == "NotSupported":
                check.unsupported += 1
            elif kind == EXPECTED.get(name) or (is_mig and kind in ("InvalidArgument", "NotFound")):
                check.ok += 1
            else:
                check.failures.append(f"{name}: {kind}")


def values(n, check, device, node):
    count, name, mib, bus_id, migs = node
    check.expect("count", n.nvmlDeviceGetCount(), count)
    check.expect("name", n.nvmlDeviceGetName(device), name)
    check.expect("total", n.nvmlDeviceGetMemoryInfo(device).total, mib * MIB)
    v2 = n.nvmlDeviceGetMemoryInfo(device, n.nvmlMemory_v2)
    check.expect("v2 sum", v2.free + v2.used + v2.reserved, mib * MIB)
    check.expect("v1 used", n.nvmlDeviceGetMemoryInfo(device).used, v2.used + v2.reserved)
    check.expect("bus id", n.nvmlDeviceGetPciInfo(device).busId, bus_id)
    uuid = n.nvmlDeviceGetUUID(device)
    check.expect("by UUID", n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(uuid)), 0)
    for kind, value in ((1, uuid.encode()), (2, bytes.fromhex(uuid[4:].replace("-", "")))):
        by_value = n.nvmlDeviceGetHandleByUUIDV(value, kind)
        check.expect(f"by UUID of type {kind}", n.nvmlDeviceGetUUID(by_value), uuid)
    check.expect("by serial", n.nvmlDeviceGetIndex(
        n.nvmlDeviceGetHandleBySerial(n.nvmlDeviceGetSerial(device).encode())), 0)
    check.expect("field 230", n.nvmlDeviceGetFieldValues(device, [230])[0].value.uiVal, 0)
    for clock in n.nvmlDeviceGetSupportedMemoryClocks(device):
        graphics = n.nvmlDeviceGetSupportedGraphicsClocks(device, clock)
        check.expect("clocks fall", graphics, sorted(graphics, reverse=True))
    if migs:
        check.expect("MIG mode", n.nvmlDeviceGetMigMode(device), [1, 1])
        found = []
        for slot in range(n.nvmlDeviceGetMaxMigDeviceCount(device)):
            try:
                found.append(n.nvmlDeviceGetMigDeviceHandleByIndex(device, slot))
            except n.NVMLError_NotFound:
                pass
        check.expect("MIG devices", len(found), migs)
        for mig in found:
            parent = n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
            check.expect("parent", n.nvmlDeviceGetUUID(parent), uuid)
            attributes = n.nvmlDeviceGetAttributes(mig)
            check.expect("MIG memory", n.nvmlDeviceGetMemoryInfo(mig).total, attributes.memorySizeMB * MIB)
            instance = n.nvmlDeviceGetGpuInstanceById(device, n.nvmlDeviceGetGpuInstanceId(mig))
            info = n.nvmlGpuInstanceGetInfo(instance)
            profile = n.nvmlDeviceGetGpuInstanceProfileInfoById(device, info.profileId)
            check.expect("profile", profile.memorySizeMB, attributes.memorySizeMB)
            sizes = [n.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, 0, 0, version).sliceCount
                     for version in (1, 2)]
            check.expect("compute instance of one slice", sizes, [1, 1])
            compute = n.nvmlGpuInstanceGetComputeInstanceById(instance, n.nvmlDeviceGetComputeInstanceId(mig))
            check.expect("slices", n.nvmlComputeInstanceGetInfo(compute).placement.size,
                         attributes.computeInstanceSliceCount)


def faults_and_processes(n, check, rondo, device, migs):
    """What `rondo sim` changes while the program runs is seen at once, through every call."""
    def sim(*words):
        subprocess.run([rondo, "sim", *words], check=True)

    sim("process", "--gpu", "0", "--pid", str(os.getpid()), "--memory", "1GiB", "--sm", "40")
    for lists in (n.nvmlDeviceGetComputeRunningProcesses_v2, n.nvmlDeviceGetComputeRunningProcesses_v3):
        listed = [(p.pid, p.usedGpuMemory) for p in lists(device)]
        check.expect(lists.__name__, listed, [(os.getpid(), 1024 * MIB)])
    if not migs:
        samples = n.nvmlDeviceGetProcessUtilization(device, 0)
        check.expect("sample", [(s.pid, s.smUtil) for s in samples], [(os.getpid(), 40)])
        check.expect("utilisation", n.nvmlDeviceGetUtilizationRates(device).gpu, 40)
    events = n.nvmlEventSetCreate()
    n.nvmlDeviceRegisterEvents(device, n.nvmlEventTypeXidCriticalError, events)
    sim("fault", "--gpu", "0", "xid", "79")
    event = n.nvmlEventSetWait_v2(events, 10000)
    check.expect("Xid", (event.eventType, event.eventData), (n.nvmlEventTypeXidCriticalError, 79))
    check.expect("recovery", n.nvmlDeviceGetFieldValues(device, [230])[0].value.uiVal, 2)
    sim("fault", "--gpu", "0", "lost")
    try:
        n.nvmlDeviceGetTemperature(device, 0)
        check.failures.append("a lost GPU answered")
    except n.NVMLError_GpuIsLost:
        check.ok += 1
    sim("fault", "--gpu", "0", "clear")
    n.nvmlEventSetFree(events)


def inside(rondo, profile):
    import pynvml as n
    n.nvmlInit()
    node, check = NODES[profile], Checker()
    first = n.nvmlDeviceGetHandleByIndex(0)
    last = n.nvmlDeviceGetHandleByIndex(n.nvmlDeviceGetCount() - 1)
    values(n, check, first, node)
    walk(n, check, first, last)
    for slot in range(node[4]):
        walk(n, check, n.nvmlDeviceGetMigDeviceHandleByIndex(first, slot), first)
    faults_and_processes(n, check, rondo, first, node[4])
    n.nvmlShutdown()
    print(f"{profile}: {check.ok} fine, {check.unsupported} not supported, {len(check.failures)} failed")
    for failure in check.failures:
        print("  FAILED", failure)
    return 1 if check.failures else 0


def shows(rondo, python_bin, program, wanted):
    """Runs one of the packages' programs with a process on the first GPU."""
    script = f"{rondo} sim process --gpu 0 --pid $$ --memory 3GiB --sm 25; exec {os.path.join(python_bin, program)}"
    done = subprocess.run([rondo, "sim", "--profile", "A100,T4", "--", "sh", "-c", script], capture_output=True, text=True)
    missing = [word for word in wanted if word not in done.stdout]
    print(f"{program}: {'fine' if not missing and done.returncode == 0 else 'FAILED'}")
    if missing or done.returncode:
        print(f"  exit {done.returncode}, missing {missing}\n{done.stdout}{done.stderr}")
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description="Run NVML programs from PyPI on simulated nodes.")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--rondo", default=os.path.join(root, "build/release/bin/rondo"))
    parser.add_argument("--venv", help="reuse this virtual environment; default: a new one that is removed")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rondo = os.path.abspath(options.rondo)
    if options.inside:
        return inside(options.rondo, options.inside)
    with tempfile.TemporaryDirectory() as scratch:
        where = options.venv or os.path.join(scratch, "venv")
        python_bin = os.path.join(where, "bin")
        if not os.path.exists(os.path.join(python_bin, "python")):
            venv.create(where, with_pip=True)
        subprocess.run([os.path.join(python_bin, "pip"), "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
                       check=True)
        failed = 0
        for profile in NODES:
            failed |= subprocess.run([options.rondo, "sim", "--profile", profile, "--",
                                      os.path.join(python_bin, "python"), os.path.abspath(__file__), "--rondo",
                                      options.rondo, "--inside", profile]).returncode
        failed |= shows(options.rondo, python_bin, "nvitop -1", ["A100-SXM4-80GB", "Tesla T4", "3072MiB", "25%", "580.159.04"])
        failed |= shows(options.rondo, python_bin, "gpustat -a --no-color", ["NVIDIA A100-SXM4-80GB", "3072 / 81920 MB", "25 %"])
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
