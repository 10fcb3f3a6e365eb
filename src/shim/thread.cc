// SPDX-License-Identifier: Apache-2.0

#include "shim/thread.h"

#include <pthread.h>
#include <signal.h>

#include "shim/next.h"
#include "shim/slices.h"

namespace rondo::shim {
namespace {

// Room for the program's thread-local storage, which shares the stack.
constexpr size_t kStackBytes = 256 * 1024;
constexpr uint64_t kTickNs = 1'000'000'000;

void* Run(void* shim) {
  for (;;) ThreadRound(static_cast<Shim*>(shim));
}

// Not libc's own signals: with those it asks every thread to do something, and
// waits (setuid). By raw calls they can be blocked, and an older glibc hands
// the mask on to a new thread as it is.
void LetLibcIn() {
  auto* fill =
      reinterpret_cast<decltype(&sigfillset)>(FindSymbol("sigfillset"));
  sigset_t all;
  if (fill == nullptr || fill(&all) != 0) return;
  sys::Call(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, 8);
}

// Looked up by name: in glibc before 2.34 they live in a library that need not
// be there.
bool Create(Shim* shim) {
  auto* create =
      reinterpret_cast<decltype(&pthread_create)>(FindSymbol("pthread_create"));
  auto* init = reinterpret_cast<decltype(&pthread_attr_init)>(
      FindSymbol("pthread_attr_init"));
  auto* stack = reinterpret_cast<decltype(&pthread_attr_setstacksize)>(
      FindSymbol("pthread_attr_setstacksize"));
  auto* detach = reinterpret_cast<decltype(&pthread_attr_setdetachstate)>(
      FindSymbol("pthread_attr_setdetachstate"));
  if (create == nullptr || init == nullptr || stack == nullptr ||
      detach == nullptr) {
    return false;
  }
  pthread_attr_t attr;
  pthread_t thread;
  init(&attr);
  stack(&attr, kStackBytes);
  detach(&attr, PTHREAD_CREATE_DETACHED);
  if (create(&thread, &attr, Run, shim) == 0) return true;
  // More thread-local storage than that: libc's default size has room.
  init(&attr);
  detach(&attr, PTHREAD_CREATE_DETACHED);
  return create(&thread, &attr, Run, shim) == 0;
}

uint64_t NextDue(Shim* shim, uint64_t now) {
  uint64_t due = now + kTickNs;
  if (shim->unblock != 0 && shim->unblock_at_ns < due) {
    due = shim->unblock_at_ns;
  }
  for (uint32_t i = 0; i < shim->slots.count; ++i) {
    const Link& link = shim->links[i];
    if (!link.connected() && link.retry_at_ns() < due) {
      due = link.retry_at_ns();
    }
  }
  return due;
}

}  // namespace

void ThreadRound(Shim* shim) {
  pollfd polled[kMaxSlots];
  uint32_t count = 0;
  uint64_t due;
  const uint64_t now = sys::NowNs();
  {
    Guard guard(shim);
    for (uint32_t i = 0; i < shim->slots.count; ++i) {
      if (!shim->links[i].connected()) continue;
      polled[count++] = {shim->links[i].fd(), POLLIN, 0};
    }
    due = NextDue(shim, now);
  }
  const uint64_t left = due > now ? due - now : 0;
  timespec wait{static_cast<time_t>(left / 1'000'000'000),
                static_cast<long>(left % 1'000'000'000)};
  sys::Call(SYS_ppoll, polled, count, &wait, nullptr, 0);
  {
    Guard guard(shim);  // its end acts on slices and losses
    for (uint32_t i = 0; i < shim->slots.count; ++i) {
      if (shim->links[i].connected()) shim->links[i].Drain(&shim->health);
    }
    shim->account.Reap();
    if (shim->unblock != 0 && sys::NowNs() >= shim->unblock_at_ns) {
      Unblock(shim);
    }
  }
  Guard guard(shim);
  for (uint32_t i = 0; i < shim->slots.count; ++i) {
    if (!shim->links[i].connected() &&
        sys::NowNs() >= shim->links[i].retry_at_ns()) {
      shim->Reconnect(i);
    }
  }
}

void StartThreadIfWanted(Shim* shim) {
  {
    Guard guard(shim);
    if (!shim->thread_due.exchange(false) || shim->thread_runs) return;
    shim->thread_runs = true;
  }
  ErrnoKept kept;
  SignalsBlocked blocked;
  LetLibcIn();  // the thread inherits this
  if (Create(shim)) return;
  Guard guard(shim);
  shim->thread_runs = false;
  shim->health.Set(wire::Reason::kNoThread);
}

}  // namespace rondo::shim
