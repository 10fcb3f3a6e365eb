// SPDX-License-Identifier: Apache-2.0
#include "share/memory/audit.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace rondo::share {

namespace {

// Driver minus ledger, as far as the ledger's own movement does not explain it.
int64_t Difference(uint64_t driver, uint64_t before, uint64_t after) {
  const auto d = static_cast<int64_t>(driver);
  const auto least = static_cast<int64_t>(std::min(before, after));
  const auto most = static_cast<int64_t>(std::max(before, after));
  return d > most ? d - most : d < least ? d - least : 0;
}

bool SameSign(int64_t a, int64_t b) {
  return (a > 0 && b > 0) || (a < 0 && b < 0);
}

bool News(int64_t difference, int64_t alarmed) {
  const int64_t now = std::abs(difference), then = std::abs(alarmed);
  return then == 0 || now >= 2 * then || 2 * now <= then;
}

}  // namespace

std::vector<Audit::Alarm> Audit::Compare(
    const std::vector<Process>& ledger,
    const std::map<uint32_t, uint64_t>& driver) {
  std::map<std::pair<std::string, uint32_t>, Process> sums;
  for (const Process& process : ledger) {
    Process& sum = sums[{process.slot, process.pid}];
    sum.before_bytes += process.before_bytes;
    sum.after_bytes += process.after_bytes;
  }
  driver_ = driver;
  differences_.clear();
  const bool knows_any =
      std::any_of(driver.begin(), driver.end(),
                  [](const auto& entry) { return entry.second > 0; });
  if (!knows_any) driver_.clear();
  std::map<std::pair<std::string, uint32_t>, Seen> seen;
  std::vector<Alarm> alarms;
  for (const auto& [key, sum] : sums) {
    const auto told = driver_.find(key.second);
    if (told == driver_.end()) continue;
    Seen now;
    now.difference =
        Difference(told->second, sum.before_bytes, sum.after_bytes);
    differences_[key.first] += now.difference;
    now.ledger_bytes = sum.after_bytes;
    const Seen old = seen_[key];
    if (SameSign(now.difference, old.difference)) {
      now.alarmed = old.alarmed;
      const bool steady = sum.before_bytes == sum.after_bytes &&
                          sum.after_bytes == old.ledger_bytes;
      if ((now.difference > 0 || steady) && News(now.difference, old.alarmed)) {
        now.alarmed = now.difference;
        ++alarms_[key.first];
        alarms.push_back({key.first, key.second, now.difference});
      }
    }
    seen[key] = now;
  }
  seen_ = std::move(seen);
  return alarms;
}

std::optional<int64_t> Audit::difference(const std::string& slot) const {
  const auto found = differences_.find(slot);
  if (found == differences_.end()) return std::nullopt;
  return found->second;
}

std::optional<uint64_t> Audit::driver_bytes(uint32_t pid) const {
  const auto found = driver_.find(pid);
  if (found == driver_.end()) return std::nullopt;
  return found->second;
}

uint64_t Audit::alarms(const std::string& slot) const {
  const auto found = alarms_.find(slot);
  return found == alarms_.end() ? 0 : found->second;
}

}  // namespace rondo::share
