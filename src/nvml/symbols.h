// SPDX-License-Identifier: Apache-2.0
//
// The functions of libnvidia-ml.so.1 that Rondo calls: one list, loaded by
// name. Immutable once loaded; any thread.

#ifndef RONDO_NVML_SYMBOLS_H_
#define RONDO_NVML_SYMBOLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/in_flight.h"
#include "nvml/nvml_abi.h"

// X(member, exported name, arguments).
#define RONDO_NVML_SYMBOLS(X)                                                \
  X(init, "nvmlInit_v2", ())                                                 \
  X(shutdown, "nvmlShutdown", ())                                            \
  X(driver_version, "nvmlSystemGetDriverVersion", (char*, unsigned))         \
  X(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", (int*))               \
  X(cuda_version_v1, "nvmlSystemGetCudaDriverVersion", (int*))               \
  X(count, "nvmlDeviceGetCount_v2", (unsigned*))                             \
  X(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned, Device*))          \
  X(by_uuid, "nvmlDeviceGetHandleByUUID", (const char*, Device*))            \
  X(name, "nvmlDeviceGetName", (Device, char*, unsigned))                    \
  X(uuid, "nvmlDeviceGetUUID", (Device, char*, unsigned))                    \
  X(minor, "nvmlDeviceGetMinorNumber", (Device, unsigned*))                  \
  X(pci_v3, "nvmlDeviceGetPciInfo_v3", (Device, PciInfoV3*))                 \
  X(pci_v2, "nvmlDeviceGetPciInfo_v2", (Device, PciInfoV2*))                 \
  X(compute_capability, "nvmlDeviceGetCudaComputeCapability",                \
    (Device, int*, int*))                                                    \
  X(memory, "nvmlDeviceGetMemoryInfo", (Device, Memory*))                    \
  X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", (Device, MemoryV2*))            \
  X(utilization, "nvmlDeviceGetUtilizationRates", (Device, Utilization*))    \
  X(processes_v3, "nvmlDeviceGetComputeRunningProcesses_v3",                 \
    (Device, unsigned*, ProcessV2*))                                         \
  X(processes_v2, "nvmlDeviceGetComputeRunningProcesses_v2",                 \
    (Device, unsigned*, ProcessV2*))                                         \
  X(processes_v1, "nvmlDeviceGetComputeRunningProcesses",                    \
    (Device, unsigned*, ProcessV1*))                                         \
  X(process_samples, "nvmlDeviceGetProcessUtilization",                      \
    (Device, ProcessSample*, unsigned*, unsigned long long))                 \
  X(mig_mode, "nvmlDeviceGetMigMode", (Device, unsigned*, unsigned*))        \
  X(max_migs, "nvmlDeviceGetMaxMigDeviceCount", (Device, unsigned*))         \
  X(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex",                     \
    (Device, unsigned, Device*))                                             \
  X(gpu_instance_id, "nvmlDeviceGetGpuInstanceId", (Device, unsigned*))      \
  X(compute_instance_id, "nvmlDeviceGetComputeInstanceId",                   \
    (Device, unsigned*))                                                     \
  X(attributes, "nvmlDeviceGetAttributes_v2", (Device, Attributes*))         \
  X(gpu_instance, "nvmlDeviceGetGpuInstanceById",                            \
    (Device, unsigned, GpuInstance*))                                        \
  X(gpu_instance_info, "nvmlGpuInstanceGetInfo",                             \
    (GpuInstance, GpuInstanceInfo*))                                         \
  X(gpu_instance_profile, "nvmlDeviceGetGpuInstanceProfileInfo",             \
    (Device, unsigned, GpuInstanceProfileInfo*))                             \
  X(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor",                  \
    (Device, Device, unsigned*))                                             \
  X(nvlink_state, "nvmlDeviceGetNvLinkState", (Device, unsigned, unsigned*)) \
  X(nvlink_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2",                    \
    (Device, unsigned, PciInfoV3*))                                          \
  X(remapped_rows, "nvmlDeviceGetRemappedRows",                              \
    (Device, unsigned*, unsigned*, unsigned*, unsigned*))                    \
  X(field_values, "nvmlDeviceGetFieldValues", (Device, int, FieldValue*))    \
  X(supported_events, "nvmlDeviceGetSupportedEventTypes",                    \
    (Device, unsigned long long*))                                           \
  X(event_set_create, "nvmlEventSetCreate", (EventSet*))                     \
  X(event_set_free, "nvmlEventSetFree", (EventSet))                          \
  X(register_events, "nvmlDeviceRegisterEvents",                             \
    (Device, unsigned long long, EventSet))                                  \
  X(event_wait_v2, "nvmlEventSetWait_v2", (EventSet, EventData*, unsigned))  \
  X(event_wait_v1, "nvmlEventSetWait", (EventSet, EventData*, unsigned))

namespace rondo::nvml::abi {

// Calls through a member that the library lacks give kFunctionNotFound, so
// that "too old a driver" is an answer like others.
class Symbols {
 public:
  // NotFound with the loader's reason. calls outlives the object; may be null.
  static absl::StatusOr<std::unique_ptr<const Symbols>> Load(
      const std::string& library, CallsInFlight* calls);
  Symbols(const Symbols&) = delete;
  ~Symbols();

  // Ok, or the Backend's code for the result with NVML's words:
  // "nvmlDeviceGetName: GPU is lost".
  absl::Status Check(Return result, absl::string_view call) const;

  template <typename... Args>
  struct Function {
    Return (*pointer)(Args...) = nullptr;
    const char* symbol = nullptr;
    CallsInFlight* calls = nullptr;
    explicit operator bool() const { return pointer != nullptr; }
    Return operator()(Args... args) const {
      if (pointer == nullptr) return kFunctionNotFound;
      const CallsInFlight::Scope scope(calls, symbol);
      return pointer(args...);
    }
  };
  template <typename Signature>
  struct FunctionOf;
  template <typename... Args>
  struct FunctionOf<Return(Args...)> {
    using Type = Function<Args...>;
  };
#define RONDO_NVML_MEMBER(member, symbol, arguments) \
  FunctionOf<Return arguments>::Type member;
  RONDO_NVML_SYMBOLS(RONDO_NVML_MEMBER)
#undef RONDO_NVML_MEMBER

 private:
  Symbols() = default;
  void* library_ = nullptr;
  const char* (*error_string_)(Return) = nullptr;
};

}  // namespace rondo::nvml::abi

#endif  // RONDO_NVML_SYMBOLS_H_
