// SPDX-License-Identifier: Apache-2.0
#include "share/memory/ledger.h"

#include <iterator>
#include <utility>

namespace rondo::share {
namespace {

// No GPU has more, and no sum of such amounts may come near to wrapping.
constexpr uint64_t kAbsurdBytes = uint64_t{1} << 44;
constexpr uint64_t kAbsurdSum = uint64_t{1} << 62;

}  // namespace

uint64_t Ledger::charged_bytes() const {
  return usage_.device_bytes +
         (policy_.count_managed ? usage_.managed_bytes : 0);
}

uint64_t Ledger::device_bytes(ProcessId process) const {
  const auto account = accounts_.find(process);
  return account == accounts_.end() ? 0 : account->second.device_bytes;
}

bool Ledger::Absurd(uint64_t bytes) const {
  return bytes > kAbsurdBytes ||
         usage_.device_bytes + usage_.managed_bytes + lent_bytes_ + bytes >
             kAbsurdSum;
}

bool Ledger::Put(ProcessId process, MemoryKind kind, uint64_t handle,
                 uint64_t bytes, bool check_limit) {
  if (Absurd(bytes)) return false;
  const auto known = accounts_.find(process);
  uint64_t before = 0;
  bool held = false;
  if (known != accounts_.end()) {
    const auto entry = known->second.held.find(handle);
    held = entry != known->second.held.end();
    if (held && (entry->second.kind != kind || entry->second.loan))
      return false;
    if (held) before = entry->second.bytes;
  }
  if (!held && usage_.reservations >= kMaxReservations) return false;
  const bool counts = kind == MemoryKind::kDevice || policy_.count_managed;
  // A shrinking resize is never denied, even above a limit that was lowered.
  if (check_limit && policy_.enforce && policy_.limit_bytes && counts &&
      bytes > before) {
    const uint64_t charged = charged_bytes();
    const uint64_t limit = *policy_.limit_bytes;
    if (charged > limit || bytes - before > limit - charged) return false;
  }
  Account& account = accounts_[process];
  Reservation& reservation = account.held[handle];
  reservation.kind = kind;
  reservation.bytes = bytes;
  if (!held) {
    ++usage_.reservations;
    ++usage_.requests;
  }
  if (kind == MemoryKind::kManaged) {
    usage_.managed_bytes += bytes - before;
    return true;
  }
  account.device_bytes += bytes - before;
  usage_.device_bytes += bytes - before;
  CountSize(bytes);
  if (held) UncountSize(before, /*passed_on=*/false);
  return true;
}

bool Ledger::Reserve(ProcessId process, MemoryKind kind, uint64_t handle,
                     uint64_t bytes) {
  const bool granted = Put(process, kind, handle, bytes, /*check_limit=*/true);
  if (!granted) {
    ++usage_.requests;
    ++usage_.denials;
  }
  return granted;
}

bool Ledger::Replay(ProcessId process, MemoryKind kind, uint64_t handle,
                    uint64_t bytes) {
  return Put(process, kind, handle, bytes, /*check_limit=*/false);
}

bool Ledger::Share(ProcessId process, uint64_t handle, uint32_t tag) {
  const auto known = accounts_.find(process);
  if (known == accounts_.end()) return false;
  const auto entry = known->second.held.find(handle);
  if (entry == known->second.held.end()) return false;
  Reservation& reservation = entry->second;
  if (tag == 0 || reservation.kind != MemoryKind::kDevice || reservation.loan)
    return false;
  if (reservation.tag != 0) return reservation.tag == tag;
  if (shared_count_ >= kMaxShared) return false;
  reservation.tag = tag;
  ++shared_count_;
  shared_->AddOwner(tag, reservation.bytes);
  return true;
}

bool Ledger::Borrow(ProcessId process, uint64_t handle, uint64_t bytes,
                    uint32_t tag) {
  if (bytes == 0 && tag != 0) bytes = shared_->bytes(tag);
  if (bytes == 0 || Absurd(bytes)) return false;
  if (usage_.reservations >= kMaxReservations || shared_count_ >= kMaxShared)
    return false;
  Account& account = accounts_[process];
  const auto [entry, added] = account.held.try_emplace(handle);
  if (!added) return false;
  Reservation& loan = entry->second;
  loan.bytes = bytes;
  loan.tag = tag;
  loan.loan = true;
  loan.charged = false;
  ++usage_.reservations;
  ++shared_count_;
  lent_bytes_ += bytes;
  if (tag != 0) {
    loan.number = shared_->AddLoan(tag, bytes, {this, process, handle});
    return true;
  }
  loan.number = ++last_number_;
  const auto size = sizes_.find(bytes);
  if (size == sizes_.end()) {
    Charge(process, handle, true);
    return true;
  }
  auto& waiting = size->second.waiting;
  if (waiting == nullptr) waiting = std::make_unique<Waiting>();
  (*waiting)[loan.number] = {process, handle};
  return true;
}

void Ledger::Charge(ProcessId process, uint64_t handle, bool charged) {
  const auto known = accounts_.find(process);
  if (known == accounts_.end()) return;  // it is closing
  const auto entry = known->second.held.find(handle);
  if (entry == known->second.held.end()) return;
  Reservation& loan = entry->second;
  if (loan.charged == charged) return;
  loan.charged = charged;
  if (charged) {
    lent_bytes_ -= loan.bytes;
    usage_.device_bytes += loan.bytes;
    known->second.device_bytes += loan.bytes;
    CountSize(loan.bytes);
  } else {
    lent_bytes_ += loan.bytes;
    usage_.device_bytes -= loan.bytes;
    known->second.device_bytes -= loan.bytes;
    UncountSize(loan.bytes, /*passed_on=*/true);
  }
}

void Ledger::CountSize(uint64_t bytes) {
  if (bytes != 0) ++sizes_[bytes].charged;
}

void Ledger::UncountSize(uint64_t bytes, bool passed_on) {
  const auto at = sizes_.find(bytes);
  if (at == sizes_.end()) return;
  Size& size = at->second;
  --size.charged;
  // Without a charge of its size left, no loan may wait for the end of one.
  if (size.waiting != nullptr && (!passed_on || size.charged == 0)) {
    const auto newest = std::prev(size.waiting->end());
    const auto [process, handle] = newest->second;
    size.waiting->erase(newest);
    if (size.waiting->empty()) size.waiting.reset();
    Charge(process, handle, true);
  }
  if (size.charged == 0) sizes_.erase(at);
}

// What was already taken out of its account.
void Ledger::Drop(const Reservation& gone) {
  --usage_.reservations;
  if (gone.loan || gone.tag != 0) --shared_count_;
  if (gone.kind == MemoryKind::kManaged) {
    usage_.managed_bytes -= gone.bytes;
    return;
  }
  (gone.charged ? usage_.device_bytes : lent_bytes_) -= gone.bytes;
  bool passed_on = false;
  if (gone.tag != 0) {
    passed_on = gone.loan ? shared_->DropLoan(gone.tag, gone.number)
                          : shared_->DropOwner(gone.tag);
  } else if (!gone.charged) {
    const auto size = sizes_.find(gone.bytes);
    if (size != sizes_.end() && size->second.waiting != nullptr) {
      size->second.waiting->erase(gone.number);
      if (size->second.waiting->empty()) size->second.waiting.reset();
    }
  }
  if (gone.charged) UncountSize(gone.bytes, passed_on);
}

bool Ledger::Release(ProcessId process, uint64_t handle) {
  const auto known = accounts_.find(process);
  if (known != accounts_.end()) {
    Account& account = known->second;
    const auto entry = account.held.find(handle);
    if (entry != account.held.end()) {
      const Reservation gone = entry->second;
      if (gone.kind == MemoryKind::kDevice && gone.charged)
        account.device_bytes -= gone.bytes;
      account.held.erase(entry);
      if (account.held.empty()) accounts_.erase(known);
      Drop(gone);
      return true;
    }
  }
  return false;
}

size_t Ledger::Close(ProcessId process) {
  const auto account = accounts_.find(process);
  if (account == accounts_.end()) return 0;
  const auto held = std::move(account->second.held);
  accounts_.erase(account);
  // What waits goes first: nothing is to be passed on to it.
  for (const bool charged : {false, true})
    for (const auto& [handle, reservation] : held)
      if (reservation.charged == charged) Drop(reservation);
  return held.size();
}

}  // namespace rondo::share
