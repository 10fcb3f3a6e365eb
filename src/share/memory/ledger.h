// SPDX-License-Identifier: Apache-2.0
//
// The memory account of one slot: who of its processes holds how much, and
// whether more may be given. Exact bytes. Pure: no clock, socket or thread; the
// slot server owns one a slot and is the only caller.
//
// The rule it keeps, whatever the order of calls: under `enforce` no grant ever
// takes the charged sum past the limit in force at that moment. A limit that is
// lowered below what is held revokes nothing; it denies until enough went.
//
// A reservation belongs to (process, handle). Process = one connection,
// so closing it gives back all that it held; nothing can leak by a lost
// release. Errors: a denied reserve and an unknown release are answers, not
// failures.
//
// Memory that several processes hold is charged once
// (share/memory/shared_blocks.h). A loan whose block is not known, since it
// carries no tag, is told from others by its size alone: it is not charged
// while the slot is charged with a block of that size, and with the end of such
// a charge it is. So the sum may be above what the driver says, never below.

#ifndef RONDO_SHARE_MEMORY_LEDGER_H_
#define RONDO_SHARE_MEMORY_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "share/ids.h"
#include "share/memory/shared_blocks.h"

namespace rondo::share {

enum class MemoryKind : uint8_t {
  kDevice,   // driver allocations: exact, what NVML counts
  kManaged,  // managed memory at its full mapped size: an upper bound
};

struct MemoryPolicy {
  std::optional<uint64_t> limit_bytes;  // empty: no limit
  bool enforce = false;                 // false: count, never deny
  bool count_managed = true;  // managed memory is charged to the limit too
};

struct MemoryUsage {
  uint64_t device_bytes = 0;
  uint64_t managed_bytes = 0;
  uint64_t reservations = 0;  // held now, loans too
  uint64_t requests = 0;      // for new ones, since the ledger was made
  uint64_t denials = 0;       // since the ledger was made
};

class Ledger {
 public:
  // More reservations than this by all processes together are denied: a
  // hostile tenant must not eat the agent's memory (real programs hold some
  // thousands; all of a big GPU in pieces of 2 MiB is 150 000).
  static constexpr size_t kMaxReservations = 1 << 18;

  // More loans and blocks under a tag than this, together, are refused: they
  // take more to keep, and real programs lend some thousands. What is refused
  // is not accounted as lent; whoever made the block stays charged with it.
  static constexpr size_t kMaxShared = 1 << 16;

  // shared: for all ledgers whose slots may lend each other memory; outlives
  // them. Null: this slot lends and borrows within itself.
  explicit Ledger(MemoryPolicy policy, SharedBlocks* shared = nullptr)
      : policy_(policy), shared_(shared != nullptr ? shared : &own_shared_) {}
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  void SetPolicy(const MemoryPolicy& policy) { policy_ = policy; }

  // True = granted. A handle that is held already is resized: the driver rounds
  // a size up, and the shim reports what it really became. A denied resize
  // leaves the old size. A handle never changes its kind: that is denied.
  [[nodiscard]] bool Reserve(ProcessId process, MemoryKind kind,
                             uint64_t handle, uint64_t bytes);

  // What the process holds already, told after an agent's restart: charged in
  // full whatever the limit says, since it is a fact. Only an absurd amount
  // (the sum would not fit 64 bits) or too many handles are refused.
  bool Replay(ProcessId process, MemoryKind kind, uint64_t handle,
              uint64_t bytes);

  // The block, made by the process, may be held by others under this tag from
  // now on. False: no such block, one that has another tag, or too many.
  bool Share(ProcessId process, uint64_t handle, uint32_t tag);

  // The process holds a block of another one: a fact, whatever the limit says.
  // tag 0: not known; bytes 0: those of the tag's block. False: the handle is
  // in use, too many, or what Replay refuses.
  bool Borrow(ProcessId process, uint64_t handle, uint64_t bytes, uint32_t tag);

  // A loan is charged or not any more. For SharedBlocks.
  void Charge(ProcessId process, uint64_t handle, bool charged);

  // False where the handle is not held: of no effect then.
  bool Release(ProcessId process, uint64_t handle);

  // Gives back all that the process held: so many reservations.
  size_t Close(ProcessId process);

  const MemoryUsage& usage() const { return usage_; }
  // What counts against the limit.
  uint64_t charged_bytes() const;
  // Device memory held by one process: what the audit compares with the
  // driver's own number. 0 for a process that holds none.
  uint64_t device_bytes(ProcessId process) const;

 private:
  struct Reservation {
    MemoryKind kind = MemoryKind::kDevice;
    uint64_t bytes = 0;
    uint32_t tag = 0;
    bool loan = false, charged = true;
    uint64_t number = 0;  // of a loan, in shared_ or in its Size
  };
  // The charges of one size, and the untagged loans that wait for their end:
  // few sizes have any (null).
  using Waiting = std::map<uint64_t, std::pair<ProcessId, uint64_t>>;
  struct Size {
    uint64_t charged = 0;
    std::unique_ptr<Waiting> waiting;
  };
  struct Account {
    uint64_t device_bytes = 0;
    std::map<uint64_t, Reservation> held;  // by handle
  };

  bool Put(ProcessId process, MemoryKind kind, uint64_t handle, uint64_t bytes,
           bool check_limit);
  bool Absurd(uint64_t bytes) const;
  void Drop(const Reservation& gone);
  void CountSize(uint64_t bytes);
  void UncountSize(uint64_t bytes, bool passed_on);

  MemoryPolicy policy_;
  SharedBlocks own_shared_;
  SharedBlocks* const shared_;
  MemoryUsage usage_;
  size_t shared_count_ = 0;  // loans and tagged blocks
  uint64_t lent_bytes_ = 0;  // of loans that are not charged
  std::map<uint64_t, Size> sizes_;
  uint64_t last_number_ = 0;
  std::map<ProcessId, Account> accounts_;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_MEMORY_LEDGER_H_
