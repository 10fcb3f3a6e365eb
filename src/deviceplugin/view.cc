// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/view.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rondo::deviceplugin {
namespace {

// Protobuf wire format (protobuf.dev/programming-guides/encoding): a tag byte
// is field number << 3 | wire type; type 2 is a length and bytes, type 0 a
// varint.
constexpr char kListDevices = 1 << 3 | 2;
constexpr char kDeviceId = 1 << 3 | 2;
constexpr char kDeviceHealth = 2 << 3 | 2;
constexpr char kDeviceTopology = 3 << 3 | 2;
constexpr char kTopologyNodes = 1 << 3 | 2;
constexpr char kNodeId = 1 << 3 | 0;

void AppendVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

void AppendField(std::string& out, char tag, absl::string_view bytes) {
  out.push_back(tag);
  AppendVarint(out, bytes.size());
  out.append(bytes.data(), bytes.size());
}

size_t FieldSize(size_t bytes) { return 1 + VarintSize(bytes) + bytes; }

size_t Digits(uint32_t value) {
  size_t digits = 1;
  for (; value >= 10; value /= 10) ++digits;
  return digits;
}

// Fields 2 and 3 of a Device: the same for all ids of a run.
std::string EncodeTail(const Device& device, const Run& run) {
  std::string tail;
  AppendField(tail, kDeviceHealth, run.healthy ? "Healthy" : "Unhealthy");
  if (device.numa_node.has_value()) {
    std::string node;
    // proto3 leaves out a zero.
    if (*device.numa_node != 0) {
      node.push_back(kNodeId);
      AppendVarint(node, static_cast<uint64_t>(*device.numa_node));
    }
    std::string nodes;
    AppendField(nodes, kTopologyNodes, node);
    AppendField(tail, kDeviceTopology, nodes);
  }
  return tail;
}

}  // namespace

View::View(std::string name, std::vector<Device> devices, std::vector<Run> runs)
    : name_(std::move(name)),
      devices_(std::move(devices)),
      runs_(std::move(runs)),
      totals_(devices_.size(), 0),
      first_run_(devices_.size(), runs_.size()) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    by_uuid_.emplace(devices_[i].uuid, static_cast<int>(i));
    any_mig_ |= devices_[i].mig;
  }
  for (size_t i = 0; i < runs_.size(); ++i) {
    totals_[runs_[i].device] += runs_[i].size();
    first_run_[runs_[i].device] = std::min(first_run_[runs_[i].device], i);
  }
}

int View::Find(const DeviceId& id) const {
  const auto device = by_uuid_.find(id.uuid);
  if (device == by_uuid_.end()) return -1;
  for (size_t i = first_run_[device->second];
       i < runs_.size() && runs_[i].device == device->second; ++i) {
    const Run& run = runs_[i];
    if (run.is_replica == id.is_replica && id.replica >= run.begin &&
        id.replica < run.end)
      return device->second;
  }
  return -1;
}

bool View::SameList(const View& other) const {
  return runs_ == other.runs_ && devices_.size() == other.devices_.size() &&
         std::equal(devices_.begin(), devices_.end(), other.devices_.begin(),
                    [](const Device& a, const Device& b) {
                      return a.uuid == b.uuid && a.numa_node == b.numa_node;
                    });
}

std::string View::EncodeList() const {
  std::string out;
  out.reserve(EncodedSize());
  std::string id;
  for (const Run& run : runs_) {
    const Device& device = devices_[run.device];
    const std::string tail = EncodeTail(device, run);
    for (uint32_t n = run.begin; n < run.end; ++n) {
      id.assign(device.uuid);
      if (run.is_replica) absl::StrAppend(&id, "::", n);
      out.push_back(kListDevices);
      AppendVarint(out, FieldSize(id.size()) + tail.size());
      AppendField(out, kDeviceId, id);
      out.append(tail);
    }
  }
  return out;
}

size_t View::EncodedSize() const {
  size_t total = 0;
  for (const Run& run : runs_) {
    const Device& device = devices_[run.device];
    const size_t tail = EncodeTail(device, run).size();
    for (uint32_t n = run.begin; n < run.end; ++n) {
      const size_t id =
          device.uuid.size() + (run.is_replica ? 2 + Digits(n) : 0);
      total += FieldSize(FieldSize(id) + tail);
    }
  }
  return total;
}

View MakeView(const Resource& resource, const std::vector<bool>& healthy,
              const std::map<std::string, Device>& retired) {
  std::vector<Device> devices = resource.devices;
  std::vector<Run> runs;
  for (size_t i = 0; i < devices.size(); ++i) {
    Run run;
    run.device = static_cast<int>(i);
    run.is_replica = devices[i].replicas > 0;
    run.end = run.is_replica ? devices[i].replicas : 1;
    run.healthy = healthy[i];
    runs.push_back(run);
  }
  for (const auto& [id, device] : retired) {
    const std::optional<DeviceId> parsed = ParseDeviceId(id);
    if (!parsed.has_value()) continue;
    const auto known = std::find_if(
        devices.begin(), devices.end(),
        [&uuid = device.uuid](const Device& d) { return d.uuid == uuid; });
    Run run;
    run.device = static_cast<int>(known - devices.begin());
    if (known == devices.end()) devices.push_back(device);
    run.begin = parsed->replica;
    run.end = run.begin + 1;
    run.is_replica = parsed->is_replica;
    run.healthy = false;
    run.retired = true;
    runs.push_back(run);
  }
  // By device, then number, so that one change moves nothing else.
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::make_tuple(a.device, !a.retired ? 0 : 1, a.is_replica,
                           a.begin) <
           std::make_tuple(b.device, !b.retired ? 0 : 1, b.is_replica, b.begin);
  });
  std::vector<Run> merged;
  for (const Run& run : runs) {
    if (run.retired && run.is_replica && !merged.empty()) {
      Run& last = merged.back();
      if (last.retired && last.is_replica && last.device == run.device &&
          last.end == run.begin) {
        last.end = run.end;
        continue;
      }
    }
    merged.push_back(run);
  }
  return View(resource.name, std::move(devices), std::move(merged));
}

}  // namespace rondo::deviceplugin
