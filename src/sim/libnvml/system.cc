// SPDX-License-Identifier: Apache-2.0
//
// What NVML says about the machine rather than about a GPU.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/libnvml/library.h"

using namespace rondo::sim::libnvml;  // NOLINT
using rondo::sim::NodeState;

NVML_EXPORT(nvmlSystemGetDriverVersion)(char* version, unsigned length) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  return CopyText(node->driver_version, version, length);
}

NVML_EXPORT(nvmlSystemGetNVMLVersion)(char* version, unsigned length) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  char text[64];
  snprintf(text, sizeof(text), "%u.%s", node->cuda_version / 1000,
           node->driver_version);
  return CopyText(text, version, length);
}

NVML_EXPORT(nvmlSystemGetCudaDriverVersion)(int* version) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  NVML_REQUIRE(version != nullptr);
  *version = static_cast<int>(node->cuda_version);
  return kSuccess;
}

NVML_EXPORT(nvmlSystemGetCudaDriverVersion_v2)(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

// { uint32_t version; char branch[80]; }, "r580_00" for 580.x.
NVML_EXPORT(nvmlSystemGetDriverBranch)(char* info, unsigned length) {
  const NodeState* const node = State();
  if (node == nullptr) return kUninitialized;
  NVML_REQUIRE(info != nullptr);
  char text[64];
  snprintf(text, sizeof(text), "r%.*s_00",
           static_cast<int>(strcspn(node->driver_version, ".")),
           node->driver_version);
  return CopyText(text, info + sizeof(uint32_t), length);
}

// The driver looks the name up on the host; a simulated process that is not
// there has none.
NVML_EXPORT(nvmlSystemGetProcessName)
(unsigned pid, char* name, unsigned length) {
  if (State() == nullptr) return kUninitialized;
  NVML_REQUIRE(name != nullptr && length != 0);
  char path[64], text[1024];
  snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return kNotFound;
  const ssize_t size = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (size <= 0) return kNotFound;
  text[size] = '\0';  // argv[0] ends at its own zero
  snprintf(name, length, "%s", text);
  return kSuccess;
}

NVML_EXPORT(nvmlSystemGetHicVersion)(unsigned* count, void*) {
  if (State() == nullptr) return kUninitialized;
  NVML_REQUIRE(count != nullptr);
  *count = 0;
  return kSuccess;
}

NVML_EXPORT(nvmlUnitGetCount)(unsigned* count) {
  if (State() == nullptr) return kUninitialized;
  NVML_REQUIRE(count != nullptr);
  *count = 0;
  return kSuccess;
}

NVML_EXPORT(nvmlGetExcludedDeviceCount)(unsigned* count) {
  return nvmlUnitGetCount(count);
}

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(
    Return result) {
  switch (result) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNoPermission:
      return "Insufficient Permissions";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kTimeout:
      return "Timeout";
    case kLibraryNotFound:
      return "NVML Shared Library Not Found";
    case kFunctionNotFound:
      return "Function Not Found";
    case kGpuIsLost:
      return "GPU is lost";
    case kResetRequired:
      return "GPU requires reset";
    case kOperatingSystem:
      return "The operating system has blocked the request.";
    case kLibRmVersionMismatch:
      return "RM has detected an NVML/RM version mismatch.";
    case kInsufficientResources:
      return "Insufficient Resources";
    case kArgumentVersionMismatch:
      return "Argument version mismatch";
    case kGpuNotFound:
      return "GPU not found";
    default:
      return "Unknown Error";
  }
}
