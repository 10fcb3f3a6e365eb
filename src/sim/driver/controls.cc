// SPDX-License-Identifier: Apache-2.0
//
// The controls (escape 0x2A) that the simulated driver answers.
#include <algorithm>
#include <cstring>

#include "rm/control.h"
#include "rm/facts.h"
#include "rm/memory.h"
#include "rm/sharing.h"
#include "sim/driver/resource_manager.h"

namespace rondo::sim::driver {
namespace {

constexpr uint32_t kAnyClass = 0;
constexpr uint32_t kAnyChannel = 0x6f;

constexpr uint32_t kRootUid = 0;

// The size of FB_GET_INFO_V2 in each driver.
uint32_t FbInfoV2Size(int major) {
  if (major >= 580) return 1028;
  if (major >= 560) return 460;
  return major >= 545 ? 444 : 436;
}

// GPFIFO_SCHEDULE grew a member in 575.
struct ScheduleParams {
  uint8_t enable, skip_submit, pad;
};
struct PreemptParams {
  uint8_t wait, manual_timeout, pad[2];
  uint32_t timeout_us;
};

}  // namespace

const ResourceManager::Control* ResourceManager::FindControl(uint32_t cmd) {
  using Rm = ResourceManager;
  static constexpr Control kControls[] = {
      {rm::kCtrlSetTimeslice, rm::kClassChannelGroup,
       sizeof(rm::TimesliceParams), &Rm::SetTimeslice},
      {rm::kCtrlGetTimeslice, rm::kClassChannelGroup,
       sizeof(rm::TimesliceParams), &Rm::GetTimeslice},
      {0xa06c0105, rm::kClassChannelGroup, sizeof(PreemptParams), &Rm::Preempt},
      {0xa06c0101, rm::kClassChannelGroup, 0, &Rm::Nothing},
      {0xa06f0103, kAnyChannel, 0, &Rm::Nothing},
      {rm::kCtrlDisableChannels, rm::kClassSubdevice,
       sizeof(rm::DisableChannelsParams), &Rm::DisableChannels},
      {rm::kCtrlFbInfoV2, rm::kClassSubdevice, 0, &Rm::FbInfo},
      {rm::kCtrlFbInfo, rm::kClassSubdevice, 0, &Rm::FbInfoList},
      {rm::kCtrlGetGid, rm::kClassSubdevice, sizeof(rm::GidParams), &Rm::Gid},
      {rm::kCtrlPidInfo, rm::kClassSubdevice, sizeof(rm::PidInfoParams),
       &Rm::PidInfo},
      {rm::kCtrlSetTag, rm::kClassMemoryLocal, sizeof(rm::TagParams),
       &Rm::SetTag},
      {rm::kCtrlGetTag, rm::kClassMemoryLocal, sizeof(rm::TagParams),
       &Rm::GetTag},
      {rm::kCtrlSurfaceInfo, rm::kClassMemoryLocal, 0, &Rm::SurfaceInfoList},
      {rm::kCtrlBindFecs, rm::kClassSubdevice, sizeof(rm::BindFecsParams),
       &Rm::BindLog},
      {rm::kCtrlEventEnable, rm::kClassEventBuffer,
       sizeof(rm::EventEnableParams), &Rm::EnableLog},
      {rm::kCtrlEventUpdateGet, rm::kClassEventBuffer,
       sizeof(rm::EventUpdateGetParams), &Rm::UpdateLogGet},
      {rm::kCtrlEventFlush, rm::kClassEventBuffer, 0, &Rm::FlushLog},
      {rm::kCtrlExportToFd, kAnyClass, sizeof(rm::ExportToFdParams),
       &Rm::ExportOne},
      {rm::kCtrlImportFromFd, kAnyClass, sizeof(rm::ImportFromFdParams),
       &Rm::ImportOne},
      {rm::kCtrlExportManyToFd, kAnyClass, sizeof(rm::ExportManyToFdParams),
       &Rm::ExportMany},
      {rm::kCtrlImportManyFromFd, kAnyClass, sizeof(rm::ImportManyFromFdParams),
       &Rm::ImportMany},
      {rm::kCtrlExportMem, rm::kClassMemoryExport, sizeof(rm::ExportMemParams),
       &Rm::ExportMemory},
  };
  for (const Control& control : kControls)
    if (control.cmd == cmd) return &control;
  return nullptr;
}

uint32_t ResourceManager::RunControl(const Caller& caller,
                                     const rm::ControlArg& arg, Bytes params,
                                     uint64_t other, int64_t* delay_ns) {
  const Control* const control = FindControl(arg.cmd);
  Client* const client = objects_.FindOwn(arg.client, caller.connection);
  if (client == nullptr) {
    if (arg.cmd == rm::kCtrlSetTimeslice)
      *delay_ns = rm::kSetSliceRefusedUs * 1000;
    return rm::kInvalidClient;
  }
  Object* const object =
      arg.object == arg.client ? nullptr : client->Find(arg.object);
  if (object == nullptr && arg.object != arg.client) return rm::kInvalidObject;
  if (control == nullptr || lacks_.count(arg.cmd) > 0) return rm::kNotSupported;
  const uint32_t cls = object != nullptr ? object->cls : kAnyClass;
  const bool fits = control->cls == kAnyClass     ? object == nullptr
                    : control->cls == kAnyChannel ? rm::IsChannelClass(cls)
                                                  : control->cls == cls;
  if (!fits) return rm::kNotSupported;
  if (control->size != 0 && params.size != control->size)
    return rm::kInvalidParamStruct;
  Call call{caller, client, object, params, other};
  const uint32_t status = (this->*control->handler)(&call);
  *delay_ns = call.delay_ns;
  return status;
}

uint32_t ResourceManager::SetTimeslice(Call* call) {
  ChannelGroup* const group = call->object->group.get();
  const uint64_t us = call->params.As<rm::TimesliceParams>()->us;
  if (us == 0 || us > 1'000'000'000) return rm::kInvalidArgument;
  group->slice_us = us;
  if (group->id != kNoGroup) {
    group->card->engine()->SetSlice(group->id, static_cast<int64_t>(us) * 1000);
    CardCounts* const counts = group->card->counts();
    ++counts->slices;
    counts->least_slice_us = std::min(counts->least_slice_us, us);
    counts->most_slice_us = std::max(counts->most_slice_us, us);
  }
  call->delay_ns = rm::kSetSliceUs * 1000;
  return rm::kOk;
}

uint32_t ResourceManager::GetTimeslice(Call* call) {
  call->params.As<rm::TimesliceParams>()->us = call->object->group->slice_us;
  return rm::kOk;
}

uint32_t ResourceManager::Preempt(Call* call) {
  constexpr uint32_t kLongestUs = 1'000'000;
  const auto* const p = call->params.As<PreemptParams>();
  if (p->manual_timeout != 0 && p->timeout_us > kLongestUs)
    return rm::kInvalidArgument;
  const ChannelGroup& group = *call->object->group;
  if (group.id != kNoGroup) group.card->engine()->Preempt(group.id);
  call->delay_ns = rm::kPreemptUs * 1000;
  return rm::kOk;
}

// GPFIFO_SCHEDULE says OK either way and stops nothing.
uint32_t ResourceManager::Nothing(Call* call) {
  const uint32_t size = major_ >= 575 ? 3 : 2;
  return call->params.size == size ? rm::kOk : rm::kInvalidParamStruct;
}

// The driver does not ask whose channels they are.
uint32_t ResourceManager::DisableChannels(Call* call) {
  const auto* const p = call->params.As<rm::DisableChannelsParams>();
  if (p->preempt_event != 0 || p->count > rm::kMaxChannelsPerCall)
    return rm::kInvalidArgument;
  std::vector<Object*> channels;
  for (uint32_t i = 0; i < p->count; ++i) {
    Client* const client = objects_.Find(p->clients[i]);
    Object* const channel = client ? client->Find(p->channels[i]) : nullptr;
    if (channel == nullptr || channel->channel < 0 ||
        channel->card != call->object->card)
      return kInvalidChannel;
    channels.push_back(channel);
  }
  for (Object* const channel : channels)
    if (channel->group->id != kNoGroup)
      channel->card->engine()->SetEnabled(
          channel->group->id, channel->channel, p->disable == 0,
          p->disable != 0 && p->only_scheduling != 0);
  CardCounts* const counts = call->object->card->counts();
  ++(p->disable != 0 ? counts->suspensions : counts->resumptions);
  call->delay_ns =
      1000 * (p->disable != 0 ? rm::kSuspendTrainingUs : rm::kResumeTrainingUs);
  return rm::kOk;
}

uint32_t ResourceManager::FbInfoList(Call* call) {
  const CardOptions& card = call->object->card->options();
  const uint64_t used_kib = call->object->card->used_bytes() / 1024;
  auto* const list = reinterpret_cast<rm::FbInfo*>(call->params.data);
  for (uint32_t i = 0; i < call->params.size / sizeof(rm::FbInfo); ++i) {
    uint64_t value = 0;
    switch (list[i].index) {
      case rm::kFbRamSize:
      case rm::kFbTotalRam:
        value = card.total_kib;
        break;
      case rm::kFbHeapSize:
      case rm::kFbUsableRam:
        value = card.heap_kib;
        break;
      case rm::kFbHeapFree:
      case rm::kFbLargestFree:
        value = card.heap_kib - used_kib;
        break;
      default:
        break;
    }
    list[i].data = static_cast<uint32_t>(value);
  }
  return rm::kOk;
}

uint32_t ResourceManager::FbInfo(Call* call) {
  if (call->params.size != FbInfoV2Size(major_)) return rm::kInvalidParamStruct;
  uint32_t count = 0;
  memcpy(&count, call->params.data, sizeof(count));
  const uint32_t room =
      (call->params.size - sizeof(count)) / sizeof(rm::FbInfo);
  if (count > room) return rm::kInvalidArgument;
  Call list = *call;
  list.params.data += sizeof(count);
  list.params.size = count * sizeof(rm::FbInfo);
  return FbInfoList(&list);
}

uint32_t ResourceManager::Gid(Call* call) {
  auto* const p = call->params.As<rm::GidParams>();
  if (p->index != 0 || (p->flags & 3) != rm::kGidText) return rm::kNotSupported;
  const std::string& uuid = call->object->card->options().uuid;
  memset(p->data, 0, sizeof(p->data));
  uuid.copy(p->data, sizeof(p->data) - 1);
  p->length = static_cast<uint32_t>(uuid.size()) + 1;
  return rm::kOk;
}

uint32_t ResourceManager::PidInfo(Call* call) {
  auto* const p = call->params.As<rm::PidInfoParams>();
  if (p->count > std::size(p->list)) return rm::kInvalidArgument;
  const auto usage = objects_.UsageOf(*call->object->card);
  for (uint32_t i = 0; i < p->count; ++i) {
    rm::PidInfo& info = p->list[i];
    info.private_bytes = info.owned_bytes = info.duped_bytes = 0;
    info.result = info.index == 0 ? rm::kOk : rm::kInvalidArgument;
    const auto at = usage.find(info.pid);
    if (info.index != 0 || at == usage.end()) continue;
    info.private_bytes = at->second.private_bytes;
    info.owned_bytes = at->second.owned_bytes;
    info.duped_bytes = at->second.duped_bytes;
  }
  return rm::kOk;
}

uint32_t ResourceManager::SetTag(Call* call) {
  call->object->tag = call->params.As<rm::TagParams>()->tag;
  return rm::kOk;
}

uint32_t ResourceManager::GetTag(Call* call) {
  call->params.As<rm::TagParams>()->tag = call->object->tag;
  return rm::kOk;
}

// The list itself: the carrier sends it in place of the pointer.
uint32_t ResourceManager::SurfaceInfoList(Call* call) {
  if (call->object->block == nullptr) return rm::kNotSupported;
  auto* const list = reinterpret_cast<rm::SurfaceInfo*>(call->params.data);
  for (uint32_t i = 0; i < call->params.size / sizeof(rm::SurfaceInfo); ++i) {
    if (list[i].index == rm::kSurfaceSize)
      list[i].data = static_cast<uint32_t>(call->object->block->bytes /
                                           rm::kSurfaceSizeUnit);
    else if (list[i].index == rm::kSurfaceAddressSpace)
      list[i].data = rm::kAddressSpaceVideo;
    else
      return rm::kInvalidArgument;
  }
  return rm::kOk;
}

uint32_t ResourceManager::BindLog(Call* call) {
  const auto* const p = call->params.As<rm::BindFecsParams>();
  Object* const buffer = call->client->Find(p->event_buffer);
  if (buffer == nullptr || buffer->log == nullptr ||
      buffer->card != call->object->card)
    return rm::kInvalidObject;
  if (p->record_size != sizeof(rm::SwitchRecord)) return rm::kInvalidArgument;
  const bool admin = call->caller.uid == kRootUid && p->all_users != 0;
  if (!buffer->log->bound()) buffer->card->AddLog(buffer->log);
  buffer->log->Bind(call->caller.uid, admin);
  return rm::kOk;
}

uint32_t ResourceManager::EnableLog(Call* call) {
  call->object->log->Enable(call->params.As<rm::EventEnableParams>()->enable !=
                            0);
  return rm::kOk;
}

uint32_t ResourceManager::UpdateLogGet(Call* call) {
  call->object->log->SetGet(
      call->params.As<rm::EventUpdateGetParams>()->record_get);
  return rm::kOk;
}

// Drains at once, on all GPUs.
uint32_t ResourceManager::FlushLog(Call* call) {
  if (call->params.size != 0) return rm::kInvalidParamStruct;
  for (Card* const card : cards_) card->DrainLogs();
  return rm::kOk;
}

}  // namespace rondo::sim::driver
