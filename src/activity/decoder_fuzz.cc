// SPDX-License-Identifier: Apache-2.0
//
// Any header and any records: no crash, no read outside, no time out of
// nothing.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "activity/decoder.h"
#include "activity/ring.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rondo;
  rm::EventHeader header{};
  if (size < sizeof(header) + sizeof(uint32_t)) return 0;
  memcpy(&header, data, sizeof(header));
  uint32_t get;
  memcpy(&get, data + sizeof(header), sizeof(get));
  data += sizeof(header) + sizeof(get);
  size -= sizeof(header) + sizeof(get);
  std::vector<rm::SwitchRecord> records(size / sizeof(rm::SwitchRecord));
  if (!records.empty())
    memcpy(records.data(), data, records.size() * sizeof(rm::SwitchRecord));
  const activity::RingRead read = activity::ReadRing(
      &header, records.data(), static_cast<uint32_t>(records.size()), get);
  activity::Decoder decoder(0);
  uint64_t now = 0, busy = 0, latest = 0;
  for (const rm::SwitchRecord& record : read.records) {
    decoder.Add(record);
    latest = std::max(latest, record.ns);
    now += record.vardata;
    const activity::Report report = decoder.Take(now);
    busy += report.other_ns;
    for (const auto& process : report.processes) busy += process.busy_ns;
    if (busy > std::max(now, latest)) abort();
  }
  return 0;
}
