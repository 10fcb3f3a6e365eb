// SPDX-License-Identifier: Apache-2.0
#include "share/memory/shared_blocks.h"

#include <iterator>

#include "share/memory/ledger.h"

namespace rondo::share {

// True where a loan began to pay.
bool SharedBlocks::Settle(Blocks::iterator at) {
  Block& block = at->second;
  if (block.owners == 0 && block.loans.empty()) {
    blocks_.erase(at);
    return false;
  }
  if (block.owners > 0 && block.payer) {
    const Loan loan = block.loans.at(*block.payer);
    block.payer.reset();
    loan.ledger->Charge(loan.process, loan.handle, false);
  }
  if (block.owners > 0 || block.payer) return false;
  const auto newest = std::prev(block.loans.end());
  const Loan loan = newest->second;
  block.payer = newest->first;
  loan.ledger->Charge(loan.process, loan.handle, true);
  return true;
}

void SharedBlocks::AddOwner(uint32_t tag, uint64_t bytes) {
  const auto at = blocks_.try_emplace(tag).first;
  if (at->second.bytes == 0) at->second.bytes = bytes;
  ++at->second.owners;
  Settle(at);
}

uint64_t SharedBlocks::AddLoan(uint32_t tag, uint64_t bytes, const Loan& loan) {
  const auto at = blocks_.try_emplace(tag).first;
  if (at->second.bytes == 0) at->second.bytes = bytes;
  at->second.loans.emplace(++last_number_, loan);
  Settle(at);
  return last_number_;
}

bool SharedBlocks::DropOwner(uint32_t tag) {
  const auto at = blocks_.find(tag);
  if (at == blocks_.end() || at->second.owners == 0) return false;
  --at->second.owners;
  return Settle(at);
}

bool SharedBlocks::DropLoan(uint32_t tag, uint64_t number) {
  const auto at = blocks_.find(tag);
  if (at == blocks_.end() || at->second.loans.erase(number) == 0) return false;
  if (at->second.payer == number) at->second.payer.reset();
  return Settle(at);
}

uint64_t SharedBlocks::bytes(uint32_t tag) const {
  const auto at = blocks_.find(tag);
  return at == blocks_.end() ? 0 : at->second.bytes;
}

}  // namespace rondo::share
