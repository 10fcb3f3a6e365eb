// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/pacer.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace rondo::sim::driver {
namespace {

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

// 0 = nobody holds the time.
int64_t Pacer::HoldLeft() {
  const bool holding =
      tasks_.empty() &&
      std::any_of(cards_.begin(), cards_.end(),
                  [](const Card* card) { return card->Holding(); });
  if (!holding) {
    hold_since_ns_ = -1;
    return 0;
  }
  const int64_t now = clock_.Now().count();
  if (hold_since_ns_ < 0) hold_since_ns_ = now;
  const int64_t left = hold_since_ns_ + kHoldNs - now;
  if (left > 0) return left;
  for (Card* const card : cards_) card->GiveUpHolders();
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
