// SPDX-License-Identifier: Apache-2.0
//
// What the board and its firmware are set to.

#include <stdio.h>

#include "sim/libnvml/library.h"
#include "sim/libnvml/sensors.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::kHasEcc;

NVML_EXPORT(nvmlDeviceGetPersistenceMode)(Device device, unsigned* mode) {
  return Put(device, mode, [](const Target&) { return 1; });
}
NVML_EXPORT(nvmlDeviceGetComputeMode)(Device device, unsigned* mode) {
  return Put(device, mode, [](const Target&) { return 0; });
}
NVML_EXPORT(nvmlDeviceGetDisplayMode)(Device device, unsigned* mode) {
  return Put(device, mode, [](const Target&) { return 0; });
}
NVML_EXPORT(nvmlDeviceGetDisplayActive)(Device device, unsigned* mode) {
  return Put(device, mode, [](const Target&) { return 0; });
}
NVML_EXPORT(nvmlDeviceGetVirtualizationMode)(Device device, unsigned* mode) {
  return Put(device, mode, [](const Target&) { return 0; });
}
NVML_EXPORT(nvmlDeviceGetBusType)(Device device, unsigned* type) {
  return Put(device, type, [](const Target&) { return 2; });  // PCIe
}

namespace {

// From Turing on the GPU's own processor runs the driver.
bool HasGsp(const Target& t) { return t.gpu->architecture >= 6; }

Return NeedEccBoard(Device device, Target* target) {
  const Return found = FindGpu(device, target);
  if (found != kSuccess) return found;
  return target->has(kHasEcc) ? kSuccess : kNotSupported;
}

}  // namespace

NVML_EXPORT(nvmlDeviceGetGspFirmwareVersion)(Device device, char* version) {
  NVML_FIND(FindGpu, device, target);
  if (!HasGsp(target)) return kNotSupported;
  return CopyText(target.node->driver_version, version, 64);
}

NVML_EXPORT(nvmlDeviceGetGspFirmwareMode)
(Device device, unsigned* enabled, unsigned* by_default) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(enabled != nullptr && by_default != nullptr);
  *enabled = *by_default = HasGsp(target);
  return kSuccess;
}

// object: 0 OEM, 1 ECC, 2 power. Boards without ECC have no InfoROM for it.
NVML_EXPORT(nvmlDeviceGetInforomVersion)
(Device device, unsigned object, char* version, unsigned length) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(object < 4);
  if (object == 0) return CopyText("2.1", version, length);
  if (object != 1 || !target.has(kHasEcc)) return kNotSupported;
  return CopyText("7.16", version, length);
}

NVML_EXPORT(nvmlDeviceGetInforomImageVersion)
(Device device, char* version, unsigned length) {
  NVML_FIND(NeedEccBoard, device, target);
  char text[32];
  snprintf(text, sizeof(text), "G%03u.0200.00.04", target.gpu->device_id >> 20);
  return CopyText(text, version, length);
}

NVML_EXPORT(nvmlDeviceGetInforomConfigurationChecksum)
(Device device, unsigned* checksum) {
  NVML_FIND(NeedEccBoard, device, target);
  NVML_REQUIRE(checksum != nullptr);
  *checksum = target.gpu->device_id * 2654435761u;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceValidateInforom)(Device device) {
  NVML_FIND(NeedEccBoard, device, target);
  return kSuccess;
}

// The socket on a baseboard; only SXM boards have one.
NVML_EXPORT(nvmlDeviceGetModuleId)(Device device, unsigned* id) {
  NVML_FIND(FindGpu, device, target);
  if (target.gpu->nvlink_version == 0) return kNotSupported;
  NVML_REQUIRE(id != nullptr);
  *id = target.index + 1;
  return kSuccess;
}

NVML_EXPORT(nvmlDeviceGetIrqNum)(Device device, unsigned* irq) {
  return Put(device, irq, [](const Target& t) { return 200 + t.index; });
}

// MB/s of one lane's generation times the width, as NVML counts it.
NVML_EXPORT(nvmlDeviceGetPcieSpeed)(Device device, unsigned* speed) {
  return Put(device, speed, [](const Target& t) {
    return 2500u << (t.gpu->pcie_generation - 1);
  });
}

// 1 = 2.5 GT/s, 2 = 5, ... one a generation.
NVML_EXPORT(nvmlDeviceGetPcieLinkMaxSpeed)(Device device, unsigned* speed) {
  return Put(device, speed,
             [](const Target& t) { return t.gpu->pcie_generation; });
}

// Accounting mode is off, as it is unless an administrator turns it on.
NVML_EXPORT(nvmlDeviceGetAccountingMode)(Device device, unsigned* mode) {
  return Put(device, mode, [](const Target&) { return 0; });
}
NVML_EXPORT(nvmlDeviceGetAccountingBufferSize)(Device device, unsigned* size) {
  return Put(device, size, [](const Target&) { return 4000; });
}
NVML_EXPORT(nvmlDeviceGetAccountingPids)
(Device device, unsigned* count, unsigned*) {
  return Put(device, count, [](const Target&) { return 0; });
}

NVML_EXPORT(nvmlDeviceGetEncoderStats)
(Device device, unsigned* sessions, unsigned* fps, unsigned* latency_us) {
  NVML_FIND(FindGpu, device, target);
  NVML_REQUIRE(sessions && fps && latency_us);
  *sessions = *fps = *latency_us = 0;
  return kSuccess;
}
NVML_EXPORT(nvmlDeviceGetEncoderSessions)
(Device device, unsigned* count, void*) {
  return Put(device, count, [](const Target&) { return 0; });
}
