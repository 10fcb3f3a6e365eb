// SPDX-License-Identifier: Apache-2.0

#include "shim/shim.h"

#include <string.h>

#include "shim/slices.h"

namespace rondo::shim {
namespace {

void StartAfresh(Shim* shim) {
  shim->lock.Reset();
  for (Link& link : shim->links) link.Forget();
  shim->health.Forget();
  shim->account.Forget();
  shim->objects.Forget();
  shim->ranges.Forget();
  shim->gpu_count = 0;
  shim->uvm_fd.store(-1, std::memory_order_relaxed);
  shim->hmm_left_on = false;
  shim->thread_runs = false;
  shim->thread_due.store(false, std::memory_order_relaxed);
  shim->unblock = 0;
  shim->unblock_wait_ns = 0;
  if (shim->slots.count == 0) ReadSlots(&shim->slots);
  if (shim->slots.count == 0) shim->inert = true;
}

// Several threads of a child may be the first: one resets, the others wait.
void OwnState(Shim* shim) {
  const int self = sys::Pid();
  int seen = shim->pid.load(std::memory_order_acquire);
  while (seen != self) {
    if (seen != -self && shim->pid.compare_exchange_weak(
                             seen, -self, std::memory_order_acquire)) {
      StartAfresh(shim);
      shim->pid.store(self, std::memory_order_release);
      return;
    }
    if (seen == -self) sys::Call(SYS_sched_yield);
    seen = shim->pid.load(std::memory_order_acquire);
  }
}

void TellHealth(Shim* shim, Link* link) {
  if (!link->connected() || link->told_health == shim->health.version()) return;
  link->told_health = shim->health.version();
  link->Tell(shim->health.state(), &shim->health);
}

void Settle(Shim* shim) {
  for (uint32_t i = 0; i < shim->slots.count; ++i) {
    Link& link = shim->links[i];
    uint32_t seq;
    if (link.TakeLoss()) {
      shim->unblock |= 1u << i;
      Unblock(shim);
    }
    if (link.TakeSlice(&seq)) ApplySlice(shim, i, seq);
    if (shim->hmm_left_on && link.known() &&
        link.policy().memory == wire::Memory::kEnforce) {
      shim->health.Set(wire::Reason::kHmmOn);
    }
    TellHealth(shim, &link);
  }
}

}  // namespace

Guard::Guard(Shim* shim) : shim_(shim) {
  OwnState(shim);
  shim->lock.Acquire();
}

Guard::~Guard() {
  Settle(shim_);
  shim_->lock.Release();
}

uint8_t Shim::GpuByUuid(const char* uuid) {
  for (uint32_t i = 1; i <= gpu_count; ++i) {
    if (strcmp(gpus[i].uuid, uuid) == 0) return static_cast<uint8_t>(i);
  }
  if (gpu_count == kMaxGpus || strlen(uuid) >= kMaxUuid) return 0;
  Gpu* gpu = &gpus[++gpu_count];
  strcpy(gpu->uuid, uuid);
  gpu->slots = SlotsOfGpu(slots, uuid);
  return static_cast<uint8_t>(gpu_count);
}

void Shim::EnsureConnected(uint32_t slot) {
  if (thread_runs || links[slot].connected()) return;
  if (sys::NowNs() >= links[slot].retry_at_ns()) Reconnect(slot);
}

void Shim::Reconnect(uint32_t slot) {
  Link& link = links[slot];
  if (!link.Connect(slots.slot[slot], driver, account.holds_any(slot),
                    &health)) {
    return;
  }
  account.Replay(slot);
  TellAllChannels(this, slot);
}

}  // namespace rondo::shim
