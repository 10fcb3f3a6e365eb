// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/libcuda/rm_client.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"

namespace rondo::sim::cuda {
namespace {

constexpr uint32_t kAttrHugePages = 3u << 23;
// The kernel copies as much as the class needs, whatever it is told: a caller's
// buffer must be as large as any of them.
constexpr size_t kMostParams = 1024;

template <typename Arg>
uint32_t Say(int fd, uint32_t nr, Arg* arg) {
  return ioctl(fd, rm::MakeRequest(nr, sizeof(*arg)), arg) == 0 ? arg->status
                                                                : kSystemFailed;
}

}  // namespace

int RmClient::OpenControl() {
  return open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
}

uint32_t RmClient::Open() {
  fd_ = OpenControl();
  if (fd_ < 0) return kSystemFailed;
  rm::VersionArg version{};
  version.cmd = '2';  // query
  if (ioctl(fd_, rm::MakeRequest(rm::kEscCheckVersion, sizeof(version)),
            &version) != 0)
    return kSystemFailed;
  rm::AllocArg arg{};
  arg.cls = rm::kClassRootClient;
  const uint32_t status = Say(fd_, rm::kEscAlloc, &arg);
  client_ = arg.handle;
  return status;
}

bool RmClient::Alive() const {
  pollfd state{fd_, 0, 0};
  return poll(&state, 1, 0) == 0;
}

uint32_t RmClient::OpenDevice(uint32_t minor) {
  const uint64_t bit = uint64_t{1} << (minor % 64);
  if ((devices_.fetch_or(bit) & bit) != 0) return rm::kOk;
  char path[32];
  snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return kSystemFailed;
  int control = fd_;
  return ioctl(fd, rm::MakeRequest(rm::kEscRegisterFd, sizeof(control)),
               &control) == 0
             ? rm::kOk
             : kSystemFailed;
}

uint32_t RmClient::OpenUvm() {
  if (uvm_fd_ >= 0) return rm::kOk;
  uvm_fd_ = open("/dev/nvidia-uvm", O_RDWR | O_CLOEXEC);
  if (uvm_fd_ < 0) return kSystemFailed;
  struct {
    uint64_t flags;
    uint32_t status, pad;
  } arg{};
  return ioctl(uvm_fd_, rm::kUvmInitialize, &arg) == 0 ? arg.status
                                                       : kSystemFailed;
}

uint32_t RmClient::Alloc(uint32_t parent, uint32_t cls, void* params,
                         uint32_t size, uint32_t* handle) {
  alignas(8) unsigned char buffer[kMostParams] = {};
  rm::AllocArg arg{};
  arg.client = client_;
  arg.parent = parent;
  arg.handle = NewHandle();
  arg.cls = cls;
  if (params != nullptr) {
    memcpy(buffer, params, size);
    arg.params = reinterpret_cast<uint64_t>(buffer);
    arg.params_size = size;
  }
  const uint32_t status = Say(fd_, rm::kEscAlloc, &arg);
  if (params != nullptr) memcpy(params, buffer, size);
  *handle = arg.handle;
  return status;
}

uint32_t RmClient::Free(uint32_t parent, uint32_t handle) {
  rm::FreeArg arg{client_, parent, handle, 0};
  return Say(fd_, rm::kEscFree, &arg);
}

uint32_t RmClient::Control(uint32_t object, uint32_t cmd, void* params,
                           uint32_t size) {
  rm::ControlArg arg{};
  arg.client = client_;
  arg.object = object;
  arg.cmd = cmd;
  arg.params = reinterpret_cast<uint64_t>(params);
  arg.params_size = size;
  return Say(fd_, rm::kEscControl, &arg);
}

uint32_t RmClient::AllocMemory(uint32_t parent, uint64_t* bytes,
                               uint32_t* handle) {
  rm::MemoryParams params{};
  params.owner = client_;
  params.attr = kAttrHugePages;
  params.size = *bytes;
  const uint32_t status =
      Alloc(parent, rm::kClassMemoryLocal, &params, sizeof(params), handle);
  if (status == rm::kOk) *bytes = params.size;
  return status;
}

void* RmClient::Map(uint32_t device, uint32_t memory, size_t bytes, void* at,
                    uint32_t* status) {
  const int fd = OpenControl();
  *status = kSystemFailed;
  if (fd < 0) return nullptr;
  rm::MapMemoryArg arg{};
  arg.client = client_;
  arg.device = device;
  arg.memory = memory;
  arg.length = bytes;
  arg.fd = fd;
  *status = Say(fd_, rm::kEscMapMemory, &arg);
  void* mapped = nullptr;
  if (*status == rm::kOk) {
    mapped = mmap(at, bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | (at != nullptr ? MAP_FIXED : 0), fd, 0);
    if (mapped == MAP_FAILED) {
      mapped = nullptr;
      *status = kSystemFailed;
    }
  }
  close(fd);
  return mapped;
}

int RmClient::Export(uint32_t device, uint32_t memory) {
  const int fd = OpenControl();
  if (fd < 0) return -1;
  rm::ExportToFdParams params{};
  params.type = 1;
  params.device = device;
  params.parent = device;
  params.object = memory;
  params.fd = fd;
  if (Control(client_, rm::kCtrlExportToFd, &params, sizeof(params)) == rm::kOk)
    return fd;
  close(fd);
  return -1;
}

uint32_t RmClient::Import(int fd, uint32_t device, uint32_t* memory) {
  rm::ImportFromFdParams params{};
  params.fd = fd;
  params.type = 1;
  params.device = device;
  params.parent = device;
  params.object = NewHandle();
  const uint32_t status =
      Control(client_, rm::kCtrlImportFromFd, &params, sizeof(params));
  *memory = params.object;
  return status;
}

}  // namespace rondo::sim::cuda
