// SPDX-License-Identifier: Apache-2.0
#include "rm/noted_system.h"

#include "absl/strings/str_cat.h"
#include "rm/abi.h"

namespace rondo::rm {
namespace {

std::string Name(uint32_t request, const void* argument) {
  const uint32_t number = RequestNr(request);
  if (number == kEscControl)
    return absl::StrCat(
        "the driver's control 0x",
        absl::Hex(static_cast<const ControlArg*>(argument)->cmd));
  return absl::StrCat("the driver's ioctl 0x", absl::Hex(number));
}

}  // namespace

absl::StatusOr<UniqueFd> NotedSystem::Open(const std::string& path) {
  const CallsInFlight::Scope scope(&calls_, absl::StrCat("open ", path));
  return system_.Open(path);
}

absl::Status NotedSystem::Ioctl(int fd, uint32_t request, void* argument) {
  const CallsInFlight::Scope scope(&calls_, Name(request, argument));
  return system_.Ioctl(fd, request, argument);
}

absl::StatusOr<const void*> NotedSystem::Map(int fd, size_t bytes) {
  const CallsInFlight::Scope scope(&calls_, "mmap of the driver");
  return system_.Map(fd, bytes);
}

void NotedSystem::Unmap(const void* address, size_t bytes) {
  system_.Unmap(address, bytes);
}

}  // namespace rondo::rm
