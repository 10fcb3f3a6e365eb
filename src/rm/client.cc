// SPDX-License-Identifier: Apache-2.0
#include "rm/client.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "rm/abi.h"

namespace rondo::rm {
namespace {

constexpr uint32_t kInsufficientPermissions = 0x1b;
constexpr uint32_t kVersionQuery = '2';
constexpr int kMostGpus = 64;
// The kernel copies the class's own size, whatever we say; a newer one may have
// grown past what we know (driver-abi: up to some hundred bytes).
constexpr size_t kAllocRoom = 1024;

uint64_t Pointer(const void* p) {
  return reinterpret_cast<uint64_t>(p);  // the driver's P64
}

}  // namespace

absl::Status RmStatus(uint32_t status, absl::string_view what) {
  if (status == kOk) return absl::OkStatus();
  const std::string text =
      absl::StrCat(what, ": driver status 0x", absl::Hex(status));
  switch (status) {
    case kInvalidClient:
    case kInvalidObject:
      return absl::NotFoundError(text);
    case kInsufficientPermissions:
      return absl::PermissionDeniedError(text);
    case kNoMemory:
      return absl::ResourceExhaustedError(text);
    case kNotSupported:
    case kInvalidParamStruct:
      return absl::UnimplementedError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::StatusOr<std::unique_ptr<Client>> Client::Open(
    System& system, const std::string& dev_dir) {
  auto client = std::unique_ptr<Client>(new Client(system, dev_dir));
  RONDO_RETURN_IF_ERROR(client->Start());
  return client;
}

absl::Status Client::Start() {
  RONDO_ASSIGN_OR_RETURN(control_fd_,
                         system_.Open(absl::StrCat(dev_dir_, "/nvidiactl")));
  VersionArg version{};
  version.cmd = kVersionQuery;
  RONDO_RETURN_IF_ERROR(Annotate(
      system_.Ioctl(control_fd_.get(),
                    MakeRequest(kEscCheckVersion, sizeof(version)), &version),
      "driver version"));
  version.version[sizeof(version.version) - 1] = '\0';
  driver_version_ = version.version;
  const std::pair<std::string, std::string> split =
      absl::StrSplit(driver_version_, absl::MaxSplits('.', 1));
  int major = 0;
  if (!absl::SimpleAtoi(split.first, &major) || major < kOldestDriver)
    return absl::UnimplementedError(absl::StrCat("driver ", driver_version_,
                                                 ": ", kOldestDriver,
                                                 " or newer is needed"));
  // A GPU is attached to the driver only while somebody holds its file open.
  // Files are numbered by minor, with holes where a GPU went.
  for (int i = 0; i < kMostGpus; ++i) {
    absl::StatusOr<UniqueFd> fd =
        system_.Open(absl::StrCat(dev_dir_, "/nvidia", i));
    if (fd.ok()) gpu_fds_.push_back(*std::move(fd));
  }
  uint32_t none = 0;
  return AllocAs(0, 0, kClassRootClient, &none, sizeof(none), &handle_);
}

Client::~Client() {
  if (handle_ != 0) Free(0, handle_).IgnoreError();
}

absl::Status Client::AllocAs(uint32_t parent, uint32_t handle, uint32_t cls,
                             const void* params, size_t size, uint32_t* made) {
  alignas(16) char room[kAllocRoom] = {};
  memcpy(room, params, std::min(size, sizeof(room)));
  AllocArg arg{};
  arg.client = handle_;
  arg.parent = parent;
  arg.handle = handle;
  arg.cls = cls;
  arg.params = Pointer(room);
  arg.params_size = static_cast<uint32_t>(size);
  RONDO_RETURN_IF_ERROR(system_.Ioctl(
      control_fd_.get(), MakeRequest(kEscAlloc, sizeof(arg)), &arg));
  RONDO_RETURN_IF_ERROR(
      RmStatus(arg.status, absl::StrCat("alloc of class 0x", absl::Hex(cls))));
  *made = arg.handle;
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> Client::Alloc(uint32_t parent, uint32_t cls,
                                       const void* params, size_t size) {
  uint32_t made = 0;
  RONDO_RETURN_IF_ERROR(
      AllocAs(parent, ++last_object_, cls, params, size, &made));
  return made;
}

absl::Status Client::Control(uint32_t object, uint32_t cmd, void* params,
                             size_t size) {
  ControlArg arg{};
  arg.client = handle_;
  arg.object = object;
  arg.cmd = cmd;
  arg.params = Pointer(params);
  arg.params_size = static_cast<uint32_t>(size);
  RONDO_RETURN_IF_ERROR(system_.Ioctl(
      control_fd_.get(), MakeRequest(kEscControl, sizeof(arg)), &arg));
  return RmStatus(arg.status, absl::StrCat("control 0x", absl::Hex(cmd)));
}

absl::Status Client::Free(uint32_t parent, uint32_t object) {
  FreeArg arg{handle_, parent, object, 0};
  RONDO_RETURN_IF_ERROR(system_.Ioctl(
      control_fd_.get(), MakeRequest(kEscFree, sizeof(arg)), &arg));
  return RmStatus(arg.status, "free");
}

absl::StatusOr<Client::Mapping> Client::Map(uint32_t memory, size_t bytes) {
  // The driver remembers one mapping a descriptor; mmap of it then yields it.
  RONDO_ASSIGN_OR_RETURN(UniqueFd fd,
                         system_.Open(absl::StrCat(dev_dir_, "/nvidiactl")));
  MapMemoryArg arg{};
  arg.client = handle_;
  arg.device = handle_;  // no device: the memory lies in the host
  arg.memory = memory;
  arg.length = bytes;
  arg.flags = kMapReadOnly;
  arg.fd = fd.get();
  RONDO_RETURN_IF_ERROR(system_.Ioctl(
      control_fd_.get(), MakeRequest(kEscMapMemory, sizeof(arg)), &arg));
  RONDO_RETURN_IF_ERROR(RmStatus(arg.status, "map memory"));
  RONDO_ASSIGN_OR_RETURN(const void* address, system_.Map(fd.get(), bytes));
  return Mapping(&system_, std::move(fd), address, bytes);
}

}  // namespace rondo::rm
