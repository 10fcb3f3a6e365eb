// SPDX-License-Identifier: Apache-2.0
//
// One GPU's context-switch log, opened through the driver: who was on the GPU
// and how long. Anybody may open it, but without CAP_SYS_ADMIN the records of
// other users' processes carry no pid: those look like work of the driver's
// own. One thread at a time. Errors as rm::Client; the caller falls back to
// NVML's samples and says so.

#ifndef RONDO_ACTIVITY_SWITCH_LOG_H_
#define RONDO_ACTIVITY_SWITCH_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "activity/decoder.h"
#include "rm/client.h"
#include "rm/gpu.h"

namespace rondo::activity {

class SwitchLog {
 public:
  // Reads CLOCK_REALTIME in production: records carry the wall clock.
  using WallClock = std::function<uint64_t()>;  // ns since the epoch

  struct Options {
    // 32 bytes each; at 12 000 switches a second, seconds of room.
    uint32_t records = 1 << 16;
    WallClock wall_clock;  // empty: the real one
  };

  // client must outlive the log.
  static absl::StatusOr<std::unique_ptr<SwitchLog>> Open(rm::Client& client,
                                                         const rm::Gpu& gpu,
                                                         Options options);
  ~SwitchLog();

  // Everything up to now. Cheap enough for 500 times a second.
  absl::StatusOr<Report> Drain();

  uint64_t drops() const { return drops_; }      // records lost for good
  uint64_t records() const { return records_; }  // read

 private:
  SwitchLog(rm::Client& client, const rm::Gpu& gpu, Options options);

  absl::Status Start();
  absl::StatusOr<uint32_t> EventMemory(size_t bytes);

  rm::Client& client_;
  const rm::Gpu gpu_;
  Options options_;
  uint32_t buffer_ = 0;
  std::optional<rm::Client::Mapping> header_;
  std::optional<rm::Client::Mapping> ring_;
  uint32_t get_ = 0;
  uint64_t drops_ = 0;
  uint64_t records_ = 0;
  Decoder decoder_;
};

}  // namespace rondo::activity

#endif  // RONDO_ACTIVITY_SWITCH_LOG_H_
