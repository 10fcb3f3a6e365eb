// SPDX-License-Identifier: Apache-2.0
//
// What librondo.so (the shim, in the tenant) and the agent say to each other on
// a slot's SOCK_SEQPACKET socket. Prose: docs/wire.md.
//
// Header-only and freestanding: the shim includes it. One datagram is one
// message; both ends are the same machine, so integers are in its byte order,
// naturally aligned, without hidden padding. wire/codec.h is the only way in.

#ifndef RONDO_WIRE_MESSAGES_H_
#define RONDO_WIRE_MESSAGES_H_

#include <cstddef>
#include <cstdint>

namespace rondo::wire {

inline constexpr uint32_t kMagic = 0x6f646e52;  // "Rndo"
inline constexpr uint16_t kVersion = 1;
inline constexpr uint16_t kOldestVersion = 1;
inline constexpr size_t kMaxMessage = 1024;
inline constexpr char kSocketName[] = "agent.sock";

enum class Type : uint16_t {
  kHello = 1,     // shim: first on a connection
  kWelcome = 2,   // agent: answers it
  kReserve = 3,   // shim: asks for memory; kAnswer follows unless held
  kRelease = 4,   // shim: gives it back; no answer
  kAnswer = 5,    // agent: to kReserve and kView, by seq
  kView = 6,      // shim: what is used, what is the limit? kAnswer follows
  kChannels = 7,  // shim: channels came or went; no answer
  kSlice = 8,     // agent: run on this slice; kApplied follows
  kApplied = 9,   // shim: what is in force
  kPolicy = 10,   // agent: the policy changed
  kState = 11,    // shim: governed or why not, and the degraded paths' counters
  kShared = 12,   // shim: other processes may hold this memory too; no answer
  kBorrow = 13,   // shim: it holds memory of another process; no answer
};

// size counts the whole message, header included.
struct Header {
  Type type;
  uint16_t size;
  uint32_t seq;  // chosen by who asks, repeated by who answers
};
static_assert(sizeof(Header) == 8);

enum class Memory : uint8_t { kOff = 0, kObserve = 1, kEnforce = 2 };
enum class OnAgentLoss : uint8_t { kClosed = 0, kOpen = 1 };
enum class Managed : uint8_t { kCount = 0, kIgnore = 1 };
enum class Class : uint8_t { kStandard = 0, kLatency = 1, kBatch = 2 };
enum class Kind : uint8_t { kVideo = 0, kManaged = 1 };
enum class Verdict : uint32_t { kGranted = 0, kDenied = 1 };

struct Policy {
  uint64_t limit;     // bytes of the slot; 0 = none known
  uint64_t used;      // bytes of the slot, all of its processes
  uint32_t slice_us;  // 0 = the driver's default
  Memory memory;
  OnAgentLoss on_agent_loss;
  Managed managed;
  Class cls;
};
static_assert(sizeof(Policy) == 24);

struct Hello {
  static constexpr Type kType = Type::kHello;
  Header header;
  uint32_t magic;
  uint16_t version, oldest;  // the newest and the oldest that the shim speaks
  int32_t pid;      // in the tenant's namespace: to print, not to trust
  uint32_t held;    // != 0: a reconnect; kReserve with held follow
  char driver[32];  // the kernel driver's version, NUL-padded, or ""
};
static_assert(sizeof(Hello) == 56);

struct Welcome {
  static constexpr Type kType = Type::kWelcome;
  Header header;
  uint16_t version;  // the one to speak from here on
  uint16_t pad[3];
  Policy policy;
};
static_assert(sizeof(Welcome) == 40);

struct View {
  static constexpr Type kType = Type::kView;
  Header header;
};

struct Answer {
  static constexpr Type kType = Type::kAnswer;
  Header header;
  Verdict verdict;
  uint32_t pad;
  uint64_t used, limit;  // of the slot, after this request
};
static_assert(sizeof(Answer) == 32);

inline constexpr size_t kMaxHandles = 64;
struct Channels {
  static constexpr Type kType = Type::kChannels;
  Header header;
  uint32_t client;
  uint16_t gone;   // 0: these came; 1: these went
  uint16_t count;  // of handles
  uint32_t handles[kMaxHandles];
};
static_assert(sizeof(Channels) == 272);

// Below this a slice is tiny: hardly longer than what it takes to come onto the
// GPU (rm/facts.h), so that two runnable groups on such slices make no
// progress.
inline constexpr uint32_t kLeastSharedSliceUs = 200;
struct Slice {
  static constexpr Type kType = Type::kSlice;
  Header header;
  uint32_t us;  // 0 = the driver's default
  uint32_t pad;
};
static_assert(sizeof(Slice) == 16);

// Of compute groups. groups == 0: none yet; the slice is kept for the first,
// but no group gets a tiny one unasked. A process with several groups refuses a
// tiny one (failed) and is on slices of its own then.
struct Applied {
  static constexpr Type kType = Type::kApplied;
  // seq of the kSlice; 0 unasked: a group was made, or the welcome had a slice.
  Header header;
  uint32_t us;  // read back; the smallest where groups differ
  uint16_t groups, failed;
};
static_assert(sizeof(Applied) == 16);

struct PolicyChange {
  static constexpr Type kType = Type::kPolicy;
  Header header;
  Policy policy;
};
static_assert(sizeof(PolicyChange) == 32);

}  // namespace rondo::wire

#endif  // RONDO_WIRE_MESSAGES_H_
