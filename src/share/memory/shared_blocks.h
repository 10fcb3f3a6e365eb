// SPDX-License-Identifier: Apache-2.0
//
// Memory that several processes hold: who of them is charged. Blocks are told
// apart by the tag that the shim of their maker put on them, so processes of
// different slots may meet in one. Pure, like the ledgers that use it, one for
// all of them; they tell it of every owner and loan that comes and goes.
//
// The rule: a block is charged to its owner (who made it); when no owner holds
// it any more, to one of those who borrowed it, and passed on until nobody
// holds it. Passed on to the newest loan, as the driver does. Messages of
// several processes arrive in any order, so a loan may come before its owner:
// it is charged until the owner is known.

#ifndef RONDO_SHARE_MEMORY_SHARED_BLOCKS_H_
#define RONDO_SHARE_MEMORY_SHARED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "share/ids.h"

namespace rondo::share {

class Ledger;

class SharedBlocks {
 public:
  struct Loan {
    Ledger* ledger;
    ProcessId process;
    uint64_t handle;
  };

  void AddOwner(uint32_t tag, uint64_t bytes);
  // The number is the loan's name here. Both may call Ledger::Charge.
  uint64_t AddLoan(uint32_t tag, uint64_t bytes, const Loan& loan);

  // True where the charge was passed on, by Ledger::Charge.
  bool DropOwner(uint32_t tag);
  bool DropLoan(uint32_t tag, uint64_t number);

  // What the first who told of the block said; 0 where nobody holds it.
  uint64_t bytes(uint32_t tag) const;
  size_t size() const { return blocks_.size(); }

 private:
  struct Block {
    uint64_t bytes = 0;
    // A shim that reconnects is there twice for a moment.
    size_t owners = 0;
    std::optional<uint64_t> payer;  // of the loans
    std::map<uint64_t, Loan> loans;
  };
  using Blocks = std::unordered_map<uint32_t, Block>;

  bool Settle(Blocks::iterator block);

  Blocks blocks_;
  uint64_t last_number_ = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_MEMORY_SHARED_BLOCKS_H_
