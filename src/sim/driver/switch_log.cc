// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/switch_log.h"

#include <atomic>

namespace rondo::sim::driver {
namespace {

constexpr uint16_t kRecordV2 = 2;
constexpr uint8_t kTagStarts = 6;
constexpr uint8_t kTagLeaves = 7;

// The other end maps the header and polls it.
template <typename T>
void Publish(T* at, T value) {
  std::atomic_ref<T>(*at).store(value, std::memory_order_release);
}

}  // namespace

void SwitchLog::Add(const Switch& s) {
  if (!bound_ || !enabled_) return;
  rm::SwitchRecord record{};
  record.type = kRecordV2;
  record.tag = s.starts ? kTagStarts : kTagLeaves;
  record.seqno = seqno_++;
  if (admin_ || s.uid == uid_) {
    record.context = s.context;
    record.pid = s.pid;
  }
  record.ns = s.wall_ns;
  pending_.push_back(record);
}

void SwitchLog::Drain() {
  auto* const header = header_->As<rm::EventHeader>();
  auto* const records = records_->As<rm::SwitchRecord>();
  for (const rm::SwitchRecord& record : pending_) {
    const uint32_t next = (put_ + 1) % count_;
    if (next == get_) {
      ++drops_;
      continue;
    }
    records[put_] = record;
    put_ = next;
    ++written_;
  }
  pending_.clear();
  Publish(&header->count, written_);
  Publish(&header->drops, drops_);
  Publish(&header->put, put_);
}

void SwitchLog::SetGet(uint32_t get) {
  if (get >= count_) return;
  get_ = get;
  Publish(&header_->As<rm::EventHeader>()->get, get);
}

}  // namespace rondo::sim::driver
