// SPDX-License-Identifier: Apache-2.0
#include "share/ledger.h"

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

bool Ledger::Put(ProcessId process, MemoryKind kind, uint64_t handle,
                 uint64_t bytes, bool check_limit) {
  if (bytes > kAbsurdBytes ||
      usage_.device_bytes + usage_.managed_bytes + bytes > kAbsurdSum)
    return false;
  const auto known = accounts_.find(process);
  uint64_t before = 0;
  bool held = false;
  if (known != accounts_.end()) {
    const auto entry = known->second.held.find(handle);
    held = entry != known->second.held.end();
    if (held && entry->second.kind != kind) return false;
    if (held) before = entry->second.bytes;
    if (!held && known->second.held.size() >= kMaxReservations) return false;
  }
  const bool counts = kind == MemoryKind::kDevice || policy_.count_managed;
  // A shrinking resize is never denied, even above a limit that was lowered.
  if (check_limit && policy_.enforce && policy_.limit_bytes && counts &&
      bytes > before) {
    const uint64_t charged = charged_bytes();
    const uint64_t limit = *policy_.limit_bytes;
    if (charged > limit || bytes - before > limit - charged) return false;
  }
  Account& account = accounts_[process];
  account.held[handle] = {kind, bytes};
  if (!held) {
    ++usage_.reservations;
    ++usage_.requests;
  }
  if (kind == MemoryKind::kDevice) {
    account.device_bytes += bytes - before;
    usage_.device_bytes += bytes - before;
  } else {
    usage_.managed_bytes += bytes - before;
  }
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

void Ledger::Uncharge(const Reservation& reservation) {
  if (reservation.kind == MemoryKind::kDevice)
    usage_.device_bytes -= reservation.bytes;
  else
    usage_.managed_bytes -= reservation.bytes;
  --usage_.reservations;
}

bool Ledger::Release(ProcessId process, uint64_t handle) {
  const auto known = accounts_.find(process);
  if (known != accounts_.end()) {
    Account& account = known->second;
    const auto entry = account.held.find(handle);
    if (entry != account.held.end()) {
      Uncharge(entry->second);
      if (entry->second.kind == MemoryKind::kDevice)
        account.device_bytes -= entry->second.bytes;
      account.held.erase(entry);
      if (account.held.empty()) accounts_.erase(known);
      return true;
    }
  }
  ++usage_.unknown_releases;
  return false;
}

void Ledger::Close(ProcessId process) {
  const auto account = accounts_.find(process);
  if (account == accounts_.end()) return;
  for (const auto& [handle, reservation] : account->second.held)
    Uncharge(reservation);
  accounts_.erase(account);
}

}  // namespace rondo::share
