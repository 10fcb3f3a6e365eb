// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/pacer.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace rondo::sim::driver {
namespace {

// Between looks at a thread that is waited for longer.
constexpr int64_t kLookAgainNs = 10'000'000;

int64_t RealtimeNs() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Until the word is no longer `seen`, or the time has passed.
void FutexWait(std::atomic<uint32_t>* word, uint32_t seen, int64_t wait_ns) {
  timespec t{static_cast<time_t>(wait_ns / 1'000'000'000),
             static_cast<long>(wait_ns % 1'000'000'000)};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, wait_ns == kNever ? nullptr : &t,
          nullptr, 0);
}

// One of its threads is held up by the machine, not stopped and not asleep.
bool LacksProcessor(uint32_t pid) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::directory_iterator at(absl::StrCat("/proc/", pid, "/task"), error),
       end;
       !error && at != end; at.increment(error)) {
    const auto stat = ReadFile(at->path() / "stat");
    // "pid (name) state …", and the name may hold anything.
    const size_t name_end = stat.ok() ? stat->rfind(") ") : std::string::npos;
    if (name_end == std::string::npos) continue;
    const std::string state = stat->substr(name_end + 2, 1);
    if (state == "R" || state == "D") return true;
  }
  return false;
}

}  // namespace

Pacer::Pacer(std::vector<Card*> cards, std::shared_ptr<SharedMemory> doorbell,
             const Clock& clock)
    : cards_(std::move(cards)),
      memory_(std::move(doorbell)),
      doorbell_(memory_->As<Doorbell>()),
      clock_(clock),
      start_ns_(clock.Now().count()),
      wall_start_ns_(RealtimeNs()) {
  SetWallOffset();
}

void Pacer::SetWallOffset() {
  for (Card* const card : cards_)
    card->SetWallOffset(wall_start_ns_ + slip_ns_);
}

void Pacer::Run() {
  while (!stop_) {
    const uint32_t seen = doorbell_->rings.load(std::memory_order_acquire);
    int64_t wait_ns = 0;
    {
      std::lock_guard lock(mutex_);
      wait_ns = CatchUp();
    }
    FutexWait(&doorbell_->rings, seen, wait_ns);
  }
}

void Pacer::Stop() {
  stop_ = true;
  Ring();
}

void Pacer::Ring() {
  doorbell_->rings.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &doorbell_->rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

void Pacer::After(int64_t delay_ns, std::function<void()> task) {
  tasks_.emplace(now_ns_ + delay_ns, std::move(task));
}

int64_t Pacer::NextEvent() const {
  int64_t next = tasks_.empty() ? kNever : tasks_.begin()->first;
  for (const Card* const card : cards_)
    next = std::min(next, card->NextEvent());
  return next;
}

void Pacer::AdvanceTo(int64_t time_ns) {
  now_ns_ = std::max(now_ns_, time_ns);
  for (Card* const card : cards_) card->AdvanceTo(now_ns_);
  while (!tasks_.empty() && tasks_.begin()->first <= now_ns_) {
    const auto task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    task();
  }
}

bool Pacer::Holding() const {
  return tasks_.empty() &&
         std::any_of(cards_.begin(), cards_.end(),
                     [](const Card* card) { return card->Holding(); });
}

// 0 = nobody holds the time.
int64_t Pacer::HoldLeft() {
  if (!Holding()) {
    hold_since_ns_ = -1;
    return 0;
  }
  const int64_t now = clock_.Now().count();
  if (hold_since_ns_ < 0) hold_since_ns_ = now;
  const int64_t held = now - hold_since_ns_;
  if (held < kHoldNs) return kHoldNs - held;
  for (Card* const card : cards_)
    card->GiveUpHolders([held](uint32_t pid) {
      return held < kLongestHoldNs && LacksProcessor(pid);
    });
  if (Holding()) return kLookAgainNs;
  hold_since_ns_ = -1;
  return 0;
}

int64_t Pacer::CatchUp() {
  for (;;) {
    // Those who live in simulated time asked at the time that stood still;
    // everybody else asks now.
    for (Card* const card : cards_) card->Poll(/*coupled_only=*/true);
    if (const int64_t left = HoldLeft(); left > 0) return left;
    const int64_t next = NextEvent();
    int64_t wall = Wall();
    if (next < wall - kMaxLagNs) {
      slip_ns_ += wall - kMaxLagNs - next;
      SetWallOffset();
      wall = Wall();
    }
    if (next <= wall) {
      AdvanceTo(next);
      continue;
    }
    AdvanceTo(wall);
    for (Card* const card : cards_) card->Poll(/*coupled_only=*/false);
    const int64_t then = NextEvent();
    if (then == kNever) return kNever;
    if (then > now_ns_) return then - now_ns_;
  }
}

}  // namespace rondo::sim::driver
