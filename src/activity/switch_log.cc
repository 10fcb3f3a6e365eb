// SPDX-License-Identifier: Apache-2.0
#include "activity/switch_log.h"

#include <ctime>
#include <utility>

#include "activity/ring.h"
#include "base/clock.h"
#include "base/status.h"
#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"

namespace rondo::activity {
namespace {

constexpr uint32_t kClassEventMemory = rm::kClassMemoryEventBuffer;
constexpr size_t kHeaderBytes = 4096;
constexpr uint32_t kLevelSimple = 1;
// Every tag: the level already keeps the others out.
constexpr uint32_t kKeepOldest = 1;

uint64_t RealWallClock() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

SwitchLog::SwitchLog(rm::Client& client, const rm::Gpu& gpu, Options options)
    : client_(client),
      gpu_(gpu),
      options_(std::move(options)),
      decoder_(options_.wall_clock()) {}

absl::StatusOr<std::unique_ptr<SwitchLog>> SwitchLog::Open(rm::Client& client,
                                                           const rm::Gpu& gpu,
                                                           Options options) {
  if (!options.wall_clock) options.wall_clock = RealWallClock;
  auto log = std::unique_ptr<SwitchLog>(
      new SwitchLog(client, gpu, std::move(options)));
  RONDO_RETURN_IF_ERROR(Annotate(log->Start(), "context-switch log"));
  return log;
}

SwitchLog::~SwitchLog() {
  header_.reset();
  ring_.reset();
  if (buffer_ != 0) client_.Free(client_.handle(), buffer_).IgnoreError();
}

absl::StatusOr<uint32_t> SwitchLog::EventMemory(size_t bytes) {
  rm::MemoryParams params{};
  params.size = bytes;
  params.attr = rm::kAttrCoherencyCached | rm::kAttrLocationPci;
  params.attr2 = rm::kAttr2UserReadOnly;
  return client_.Alloc(client_.handle(), kClassEventMemory, &params,
                       sizeof(params));
}

absl::Status SwitchLog::Start() {
  const size_t ring_bytes = options_.records * sizeof(rm::SwitchRecord);
  RONDO_ASSIGN_OR_RETURN(const uint32_t header, EventMemory(kHeaderBytes));
  RONDO_ASSIGN_OR_RETURN(const uint32_t ring, EventMemory(ring_bytes));
  rm::EventBufferParams buffer{};
  buffer.record_size = sizeof(rm::SwitchRecord);
  buffer.record_count = options_.records;
  buffer.subdevice = gpu_.subdevice;
  buffer.header_memory = header;
  buffer.record_memory = ring;
  RONDO_ASSIGN_OR_RETURN(
      buffer_, client_.Alloc(client_.handle(), rm::kClassEventBuffer, &buffer,
                             sizeof(buffer)));
  rm::BindFecsParams bind{};
  bind.event_buffer = buffer_;
  bind.record_size = sizeof(rm::SwitchRecord);
  bind.level = kLevelSimple;
  bind.all_users = 1;
  RONDO_RETURN_IF_ERROR(
      client_.Control(gpu_.subdevice, rm::kCtrlBindFecs, &bind, sizeof(bind)));
  rm::EventEnableParams enable{};
  enable.enable = 1;
  enable.flags = kKeepOldest;
  RONDO_RETURN_IF_ERROR(
      client_.Control(buffer_, rm::kCtrlEventEnable, &enable, sizeof(enable)));
  RONDO_ASSIGN_OR_RETURN(auto header_map, client_.Map(header, kHeaderBytes));
  header_.emplace(std::move(header_map));
  RONDO_ASSIGN_OR_RETURN(auto ring_map, client_.Map(ring, ring_bytes));
  ring_.emplace(std::move(ring_map));
  return absl::OkStatus();
}

absl::StatusOr<Report> SwitchLog::Drain() {
  RONDO_RETURN_IF_ERROR(
      client_.Control(buffer_, rm::kCtrlEventFlush, nullptr, 0));
  const uint64_t now_ns = options_.wall_clock();
  const MonotonicTime now = RealClock().Now();
  const RingRead read =
      ReadRing(static_cast<const volatile rm::EventHeader*>(header_->address()),
               static_cast<const volatile rm::SwitchRecord*>(ring_->address()),
               options_.records, get_);
  if (!read.sane)
    return absl::InternalError("context-switch log: the ring makes no sense");
  for (const rm::SwitchRecord& record : read.records) decoder_.Add(record);
  records_ += read.records.size();
  // The oldest are kept, so what is missing came after all that was read.
  if (read.drops != drops_) decoder_.Lost();
  drops_ = read.drops;
  if (read.next_get != get_) {
    rm::EventUpdateGetParams update{read.next_get, 0};
    RONDO_RETURN_IF_ERROR(client_.Control(buffer_, rm::kCtrlEventUpdateGet,
                                          &update, sizeof(update)));
    get_ = read.next_get;
  }
  Report report = decoder_.Take(now_ns);
  report.ended = now;
  return report;
}

}  // namespace rondo::activity
