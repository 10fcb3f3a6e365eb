// SPDX-License-Identifier: Apache-2.0
//
// What `rondo run` and its arbiter say to each other over <run
// folder>/arbiter.sock: one JSON message a packet, a request and its answer;
// then silence, but for one notice where the program is not governed. The
// connection is the lease: closing it gives the slot back.
//
// Both ends are one executable on one machine; the messages are not a contract.
// Any thread; pure.

#ifndef RONDO_RUN_CONTROL_H_
#define RONDO_RUN_CONTROL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "share/time/event.h"

namespace rondo::run {

inline constexpr size_t kMaxMessage = 4096;
// In the run folder: what the arbiter has to say.
inline constexpr char kArbiterLog[] = "arbiter.log";
// In a slot's folder: the request that it was granted for, as sent.
inline constexpr char kSlotRequest[] = "request.json";

struct Request {
  // Which GPU; of no meaning with a slot.
  int gpu = 0;  // index, as nvidia-smi counts
  // Where it is not empty, that counts instead: the one device that
  // CUDA_VISIBLE_DEVICES names, and whether CUDA counts as nvidia-smi does.
  std::string visible;
  bool bus_order = false;
  std::optional<uint64_t> memory_bytes;  // empty: no limit, only counted
  share::TenantSpec tenant;
  // The slot that this run had before its arbiter died; empty at first.
  std::string slot;
};

// "latency", "standard" or "batch".
absl::StatusOr<share::TenantClass> ParseClass(absl::string_view text);

std::string EncodeRequest(const Request& request);
absl::StatusOr<Request> DecodeRequest(absl::string_view packet);

// The slot granted, or why none is: InvalidArgument where the request is at
// fault, any other error becomes Internal.
std::string EncodeAnswer(const absl::StatusOr<std::string>& slot);
absl::StatusOr<std::string> DecodeAnswer(absl::string_view packet);

// Why the program that has the slot is not governed.
std::string EncodeNotice(absl::string_view reason);
absl::StatusOr<std::string> DecodeNotice(absl::string_view packet);

// <run folder>/arbiter.sock
std::string ControlSocket(const std::string& run_dir);

}  // namespace rondo::run

#endif  // RONDO_RUN_CONTROL_H_
