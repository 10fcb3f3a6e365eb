// SPDX-License-Identifier: Apache-2.0
//
// The connection of this process to the agent of one slot: connects, asks with
// a bounded wait, reads what the agent says of itself. It knows messages, not
// what is held; after Connect() the owner replays that.
//
// Under the shim's lock. Never blocks longer than kAnswerWithinNs, never raises
// SIGPIPE. A lost connection is shut down at once and its descriptor kept until
// the next Connect(): the shim's thread may be polling it.

#ifndef RONDO_SHIM_AGENT_LINK_H_
#define RONDO_SHIM_AGENT_LINK_H_

#include <cstdint>

#include "shim/health.h"
#include "shim/slots.h"
#include "shim/sys.h"
#include "wire/codec.h"

namespace rondo::shim {

// An agent under CPU pressure may be throttled for some 100 ms periods, and a
// fresh one first hears what is held; one that takes longer is treated as gone.
inline constexpr uint64_t kAnswerWithinNs = 1'000'000'000;
// An absent agent is looked for every 50 ms at first, then every 200 ms. Trying
// a slow one costs the program kAnswerWithinNs: after a second, then less
// often.
inline constexpr uint64_t kFirstRetryNs = 50'000'000;
inline constexpr uint64_t kAbsentRetryNs = 200'000'000;
inline constexpr uint64_t kSlowRetryNs = 1'000'000'000;
inline constexpr uint64_t kLastRetryNs = 8'000'000'000;

class Link {
 public:
  bool connected() const { return fd_ >= 0 && !dead_; }
  int fd() const { return fd_; }
  // Whether an agent ever said what the policy is; it stays after a loss.
  bool known() const { return known_; }
  const wire::Policy& policy() const { return policy_; }
  uint64_t retry_at_ns() const { return retry_at_ns_; }
  // What the agent wants now; 0 = the driver's default, and after a loss.
  uint32_t slice_us() const { return slice_us_; }

  // Says hello and waits for the welcome. False: not connected; retry_at_ns()
  // says when to try again.
  bool Connect(const Slot& slot, const char (&driver)[32], bool held,
               Health* health);

  // Sends and waits for the answer of its seq. False: the connection is lost.
  template <typename T>
  bool Ask(T message, wire::Answer* answer, Health* health) {
    message.header.seq = ++seq_;
    return Send(&message, sizeof message, health) &&
           Await(seq_, answer, health);
  }
  // Sends without an answer to wait for.
  template <typename T>
  bool Tell(const T& message, Health* health) {
    return Send(&message, sizeof message, health);
  }

  // Reads all that has arrived, without waiting.
  void Drain(Health* health);

  // What the agent asked for since the last call: another slice ...
  bool TakeSlice(uint32_t* seq);
  // ... and whether the connection was lost since.
  bool TakeLoss();

  // After fork: the parent's connection stays open, since it stands for memory
  // that this process keeps alive too, but it is not ours to use.
  void Forget();

  // Bytes held by this process, and by the slot's other processes as last
  // heard.
  uint64_t own = 0, others = 0;
  uint32_t told_health = 0;  // Health::version() that the agent knows

 private:
  bool Open(const char* path, Health* health);
  bool StillOurs(Health* health);
  bool Send(const void* data, size_t size, Health* health);
  bool Await(uint32_t seq, wire::Answer* answer, Health* health);
  // Reads one datagram and acts on it. 0 = none there, < 0 = lost.
  long ReadOne(wire::Answer* answer);
  void Take(const void* data, size_t size);
  void TakePolicy(const wire::Policy& policy);
  void Lose(Health* health, wire::Counter why);

  int fd_ = -1;
  bool dead_ = false, known_ = false, welcomed_ = false;
  bool slice_waits_ = false, loss_waits_ = false;
  uint32_t slice_us_ = 0, slice_seq_ = 0, seq_ = 0;
  sys::FileId file_;
  wire::Policy policy_ = {};
  uint64_t retry_at_ns_ = 0, retry_ns_ = kFirstRetryNs;
};

}  // namespace rondo::shim

#endif  // RONDO_SHIM_AGENT_LINK_H_
