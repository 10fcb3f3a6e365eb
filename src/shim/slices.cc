// SPDX-License-Identifier: Apache-2.0

#include "shim/slices.h"

#include "rm/control.h"
#include "rm/facts.h"
#include "shim/driver.h"

namespace rondo::shim {
namespace {

enum class Set : uint8_t { kDone, kRefused, kGone };

Set SetSlice(const Object& group, uint32_t us) {
  rm::TimesliceParams params{us};
  const uint32_t status =
      Control(group.fd, group.client, group.handle, rm::kCtrlSetTimeslice,
              &params, sizeof params);
  if (status == rm::kOk) return Set::kDone;
  // Freed meanwhile, with its client or with the descriptor.
  const bool gone = status == rm::kInvalidObject ||
                    status == rm::kInvalidClient || status == kNoStatus;
  return gone ? Set::kGone : Set::kRefused;
}

// What the driver has stored; 0 where it does not say.
uint32_t GetSlice(const Object& group) {
  rm::TimesliceParams params{};
  const uint32_t status =
      Control(group.fd, group.client, group.handle, rm::kCtrlGetTimeslice,
              &params, sizeof params);
  return status == rm::kOk ? static_cast<uint32_t>(params.us) : 0;
}

// Puts the group on our slice, or back on its own when none is wanted.
Set Govern(Shim* shim, Object* group, uint32_t* us) {
  const uint32_t wanted = WantedSlice(shim, *group);
  *us = wanted != 0 ? wanted : group->value;
  const Set set = SetSlice(*group, *us);
  if (set != Set::kDone) return set;
  group->ours = wanted != 0;
  return GetSlice(*group) == *us ? Set::kDone : Set::kRefused;
}

// A subdevice of the channel's own client that stands for its GPU.
const Object* SubdeviceOf(Shim* shim, const Object& channel) {
  const Object* found = nullptr;
  shim->objects.ForEach(ObjectKind::kSubdevice, [&](Object& subdevice) {
    if (subdevice.client == channel.client && subdevice.gpu == channel.gpu) {
      found = &subdevice;
    }
  });
  return found;
}

// Resumes up to 64 channels of one client at a time.
bool ResumeClient(Shim* shim, const Object& first, uint32_t slots) {
  const Object* subdevice = SubdeviceOf(shim, first);
  if (subdevice == nullptr) return false;
  bool ok = true;
  rm::DisableChannelsParams params{};
  auto flush = [&] {
    if (params.count == 0) return;
    ok = Control(subdevice->fd, subdevice->client, subdevice->handle,
                 rm::kCtrlDisableChannels, &params, sizeof params) == rm::kOk &&
         ok;
    params = {};
  };
  shim->objects.ForEach(ObjectKind::kChannel, [&](Object& channel) {
    if (channel.client != first.client || channel.gpu != first.gpu ||
        channel.off || (shim->SlotsOf(channel.gpu) & slots) == 0) {
      return;
    }
    params.clients[params.count] = channel.client;
    params.channels[params.count] = channel.handle;
    if (++params.count == rm::kMaxChannelsPerCall) flush();
  });
  flush();
  return ok;
}

bool Resume(Shim* shim, uint32_t slots) {
  bool ok = true, any = false;
  uint32_t client = 0;
  int gpu = -1;
  // Channels of one client lie together: one pass over runs of (client, gpu).
  shim->objects.ForEach(ObjectKind::kChannel, [&](Object& channel) {
    if ((shim->SlotsOf(channel.gpu) & slots) == 0) return;
    any = true;
    if (channel.client == client && channel.gpu == gpu) return;
    client = channel.client;
    gpu = channel.gpu;
    ok = ResumeClient(shim, channel, slots) && ok;
  });
  if (any && ok) shim->health.Count(wire::Counter::kUnblocked);
  return ok;
}

uint64_t NextWait(uint64_t wait_ns) {
  constexpr uint64_t kFirst = 10'000'000, kLast = 1'000'000'000;
  if (wait_ns == 0) return kFirst;
  return wait_ns * 2 < kLast ? wait_ns * 2 : kLast;
}

int ComputeGroups(Shim* shim, uint8_t gpu) {
  int count = 0;
  shim->objects.ForEach(ObjectKind::kGroup, [&](Object& group) {
    if (group.compute && group.gpu == gpu) ++count;
  });
  return count;
}

// What the slot's agents ask for on the group's GPU, whatever the group may
// have of it.
uint32_t AskedSlice(Shim* shim, const Object& group) {
  const uint32_t slots = shim->SlotsOf(group.gpu);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < shim->slots.count; ++i) {
    if ((slots >> i & 1) != 0) sum += shim->links[i].slice_us();
  }
  return sum;
}

bool IsTiny(uint32_t us) { return us != 0 && us < wire::kLeastSharedSliceUs; }

// Unasked: how many groups there are now, and on what.
void TellGroups(Shim* shim, uint32_t slots, bool failed) {
  for (uint32_t i = 0; i < shim->slots.count; ++i) {
    if ((slots >> i & 1) == 0 || !shim->links[i].connected()) continue;
    auto applied = wire::Make<wire::Applied>(0);
    applied.failed = failed ? 1 : 0;
    shim->objects.ForEach(ObjectKind::kGroup, [&](Object& group) {
      if (!group.compute || (shim->SlotsOf(group.gpu) >> i & 1) == 0) return;
      ++applied.groups;
      const uint32_t wanted = WantedSlice(shim, group);
      const uint32_t us = group.ours ? wanted : group.value;
      if (applied.us == 0 || us < applied.us) applied.us = us;
    });
    shim->links[i].Tell(applied, &shim->health);
  }
}

}  // namespace

uint32_t WantedSlice(Shim* shim, const Object& group) {
  const uint32_t asked = AskedSlice(shim, group);
  if (!IsTiny(asked)) return asked;
  if (!group.compute) return wire::kLeastSharedSliceUs;
  return group.alone ? asked : 0;
}

void OnNewGroup(Shim* shim, Object* group) {
  const uint32_t us = GetSlice(*group);
  group->value = us != 0 ? us : rm::kDefaultCopySliceUs;
  bool failed = false;
  if (WantedSlice(shim, *group) != 0) {
    uint32_t applied;
    failed = Govern(shim, group, &applied) == Set::kRefused;
    if (failed) shim->health.Set(wire::Reason::kSliceRefused);
  }
  TellGroups(shim, shim->SlotsOf(group->gpu), failed);
}

void ApplySlice(Shim* shim, uint32_t slot, uint32_t seq) {
  auto applied = wire::Make<wire::Applied>(seq);
  bool refused = false;
  shim->objects.ForEach(ObjectKind::kGroup, [&](Object& group) {
    if ((shim->SlotsOf(group.gpu) >> slot & 1) == 0) return;
    group.alone = group.compute && ComputeGroups(shim, group.gpu) == 1;
    uint32_t us;
    const Set set = Govern(shim, &group, &us);
    if (set == Set::kGone) return;
    if (set == Set::kRefused) refused = true;
    const bool shared =
        group.compute && !group.alone && IsTiny(AskedSlice(shim, group));
    if (set == Set::kRefused || shared) ++applied.failed;
    if (!group.compute) return;
    ++applied.groups;
    if (set != Set::kRefused && (applied.us == 0 || us < applied.us)) {
      applied.us = us;
    }
  });
  if (refused) {
    shim->health.Set(wire::Reason::kSliceRefused);
  } else if (applied.groups != 0) {
    shim->health.Clear(wire::Reason::kSliceRefused);
  }
  shim->links[slot].Tell(applied, &shim->health);
}

void TellChannel(Shim* shim, const Object& channel, bool gone) {
  auto message = wire::Make<wire::Channels>(0);
  message.client = channel.client;
  message.gone = gone ? 1 : 0;
  message.count = 1;
  message.handles[0] = channel.handle;
  const uint32_t slots = shim->SlotsOf(channel.gpu);
  for (uint32_t i = 0; i < shim->slots.count; ++i) {
    if ((slots >> i & 1) != 0 && shim->links[i].connected()) {
      shim->links[i].Tell(message, &shim->health);
    }
  }
}

void TellAllChannels(Shim* shim, uint32_t slot) {
  shim->objects.ForEach(ObjectKind::kChannel, [&](Object& channel) {
    if (channel.off || (shim->SlotsOf(channel.gpu) >> slot & 1) == 0) return;
    auto message = wire::Make<wire::Channels>(0);
    message.client = channel.client;
    message.count = 1;
    message.handles[0] = channel.handle;
    if (shim->links[slot].connected()) {
      shim->links[slot].Tell(message, &shim->health);
    }
  });
}

void Unblock(Shim* shim) {
  const uint32_t slots = shim->unblock;
  bool done = true;
  shim->objects.ForEach(ObjectKind::kGroup, [&](Object& group) {
    if (!group.ours || (shim->SlotsOf(group.gpu) & slots) == 0) return;
    // An agent that is back already may have said what it wants.
    const uint32_t wanted = WantedSlice(shim, group);
    if (SetSlice(group, wanted != 0 ? wanted : group.value) == Set::kRefused) {
      done = false;
    } else {
      group.ours = wanted != 0;
    }
  });
  if (!done) {
    shim->health.Set(wire::Reason::kSliceRefused);
  } else {
    done = Resume(shim, slots);
    if (!done) shim->health.Set(wire::Reason::kResumeFailed);
  }
  shim->unblock_wait_ns = done ? 0 : NextWait(shim->unblock_wait_ns);
  shim->unblock_at_ns = sys::NowNs() + shim->unblock_wait_ns;
  if (!done) return;
  shim->unblock = 0;
  shim->health.Clear(wire::Reason::kResumeFailed);
}

}  // namespace rondo::shim
