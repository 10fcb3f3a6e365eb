// SPDX-License-Identifier: Apache-2.0
//
// nvmlDeviceGetFieldValues: one call, many numbered values. Each field succeeds
// or fails on its own; numbers are those of NVML_FI_DEV_*.

#include "sim/libnvml/library.h"
#include "sim/libnvml/sensors.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::GpuState;
using rondo::sim::kHasEcc;
using rondo::sim::kHasHbm;
using rondo::sim::kHasRowRemap;
using rondo::sim::LinkPeer;
using rondo::sim::LinkState;

namespace {

void PutU32(FieldValue* field, uint32_t value) {
  field->value_type = kValueUnsigned;
  field->value.u64 = 0;
  field->value.u32 = value;
  field->result = kSuccess;
}

void PutU64(FieldValue* field, uint64_t value) {
  field->value_type = kValueUnsignedLongLong;
  field->value.u64 = value;
  field->result = kSuccess;
}

uint32_t LinkCount(const GpuState& g) {
  uint32_t count = 0;
  for (const LinkState& link : g.links) count += link.peer != LinkPeer::kNone;
  return count;
}

bool ReadEcc(const Target& t, FieldValue* field) {
  const GpuState& g = *t.gpu;
  if (!t.has(kHasEcc)) return false;
  switch (field->field) {
    case 1:  // ECC_CURRENT
    case 2:  // ECC_PENDING
      PutU32(field, 1);
      return true;
    case 3:   // single-bit, since the reset
    case 11:  // ... in device memory
      PutU64(field, g.ecc_corrected);
      return true;
    case 4:   // double-bit
    case 12:  // ... in device memory
      PutU64(field, g.ecc_uncorrected);
      return true;
    case 5:   // single-bit, ever
    case 22:  // ... in device memory
      PutU64(field, g.ecc_corrected_ever);
      return true;
    case 6:   // double-bit, ever
    case 23:  // ... in device memory
      PutU64(field, g.ecc_uncorrected_ever);
      return true;
    default:
      return false;
  }
}

bool ReadRepair(const Target& t, FieldValue* field) {
  const GpuState& g = *t.gpu;
  const bool remaps = t.has(kHasRowRemap);
  switch (field->field) {
    case 29:  // RETIRED_SBE
    case 30:  // RETIRED_DBE
    case 31:  // RETIRED_PENDING
      if (remaps || !t.has(kHasEcc)) return false;
      PutU64(field, field->field == 30   ? g.ecc_uncorrected_ever.load()
                    : field->field == 31 ? g.ecc_uncorrected != 0
                                         : 0);
      return true;
    case 142:  // REMAPPED_COR
    case 143:  // REMAPPED_UNC
    case 144:  // REMAPPED_PENDING
    case 145:  // REMAPPED_FAILURE
      if (!remaps) return false;
      PutU32(field, field->field == 143   ? g.rows_remapped.load()
                    : field->field == 144 ? g.rows_pending.load()
                    : field->field == 145 ? g.rows_failed.load()
                                          : 0);
      return true;
    case kFieldRecoveryAction:
      PutU32(field, g.recovery_action);
      return true;
    default:
      return false;
  }
}

bool ReadSensor(const Target& t, FieldValue* field) {
  const GpuState& g = *t.gpu;
  switch (field->field) {
    case 82:  // MEMORY_TEMP
      if (!t.has(kHasHbm)) return false;
      PutU32(field, Celsius(g) + 6);
      return true;
    case 83:   // TOTAL_ENERGY_CONSUMPTION
    case 191:  // ENERGY
      PutU64(field, EnergyMillijoule(*t.node, g));
      return true;
    case 94:  // PCIE_REPLAY_COUNTER
      PutU32(field, 0);
      return true;
    case 185:  // POWER_AVERAGE
    case 186:  // POWER_INSTANT
      PutU32(field, PowerMilliwatt(g));
      return true;
    case 187:  // POWER_MIN_LIMIT
      PutU32(field, g.power_min_mw);
      return true;
    case 188:  // POWER_MAX_LIMIT
      PutU32(field, g.power_max_mw);
      return true;
    case 189:  // POWER_DEFAULT_LIMIT
    case 190:  // POWER_CURRENT_LIMIT
    case 192:  // POWER_REQUESTED_LIMIT
      PutU32(field, g.power_default_mw);
      return true;
    default:
      return false;
  }
}

bool ReadLink(const Target& t, FieldValue* field) {
  const GpuState& g = *t.gpu;
  if (g.nvlink_version == 0) return false;
  const uint32_t number = field->field;
  if (number == 91) {  // NVLINK_LINK_COUNT
    PutU32(field, LinkCount(g));
    return true;
  }
  if (number == 147) {  // NVSWITCH_CONNECTED_LINK_COUNT
    PutU32(field, g.links[0].peer == LinkPeer::kSwitch ? LinkCount(g) : 0);
    return true;
  }
  if (number == 90) {  // NVLINK_SPEED_MBPS_COMMON
    PutU32(field, g.nvlink_mbps);
    return true;
  }
  // Error counters of single links and their totals; throughput in KiB with
  // the link as scope. Simulated links are idle and without fault.
  if ((number >= 32 && number <= 59) || (number >= 138 && number <= 141) ||
      number == 160) {
    PutU64(field, 0);
    return true;
  }
  return false;
}

}  // namespace

NVML_EXPORT(nvmlDeviceGetFieldValues)
(Device device, int count, FieldValue* values) {
  NVML_FIND(Find, device, target);
  NVML_REQUIRE(count > 0 && values != nullptr);
  for (int i = 0; i < count; ++i) {
    FieldValue& field = values[i];
    field.timestamp_us = static_cast<int64_t>(NowUs());
    field.latency_us = 1;
    const bool whole = target.mig == nullptr;
    if (!whole || !(ReadEcc(target, &field) || ReadRepair(target, &field) ||
                    ReadSensor(target, &field) || ReadLink(target, &field)))
      field.result = kNotSupported;
  }
  return kSuccess;
}
