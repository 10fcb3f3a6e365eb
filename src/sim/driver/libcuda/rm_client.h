// SPDX-License-Identifier: Apache-2.0
//
// How the simulated libcuda.so.1 reaches the driver: as the real one does, by
// libc's open, ioctl and mmap, so that whatever is preloaded sees every call.
// One RM client a process. Thread-safe. Failure: a driver status, 0 = fine;
// kSystemFailed where the system call itself failed.

#ifndef RONDO_SIM_DRIVER_LIBCUDA_RM_CLIENT_H_
#define RONDO_SIM_DRIVER_LIBCUDA_RM_CLIENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rondo::sim::cuda {

inline constexpr uint32_t kSystemFailed = 0xffff;

class RmClient {
 public:
  // Opens the driver and makes the client; compares versions.
  uint32_t Open();
  uint32_t client() const { return client_; }
  // False: the driver has ended, which a real one does not while it is open.
  bool Alive() const;

  // Opens /dev/nvidia<minor>, once, and ties it to the client's descriptor.
  uint32_t OpenDevice(uint32_t minor);
  // Opens /dev/nvidia-uvm for managed memory.
  uint32_t OpenUvm();
  int uvm() const { return uvm_fd_; }

  // params: as long as the class says; may be null. *handle comes back.
  uint32_t Alloc(uint32_t parent, uint32_t cls, void* params, uint32_t size,
                 uint32_t* handle);
  uint32_t Free(uint32_t parent, uint32_t handle);
  uint32_t Control(uint32_t object, uint32_t cmd, void* params, uint32_t size);

  // Video memory, in pages of 2 MiB; *bytes comes back rounded.
  uint32_t AllocMemory(uint32_t parent, uint64_t* bytes, uint32_t* handle);
  // The object's memory in this process; null: status says why. at: MAP_FIXED
  // there.
  void* Map(uint32_t device, uint32_t memory, size_t bytes, void* at,
            uint32_t* status);

  // A descriptor that holds the memory, for another process; -1 = failed.
  int Export(uint32_t device, uint32_t memory);
  uint32_t Import(int fd, uint32_t device, uint32_t* memory);

 private:
  uint32_t NewHandle() { return ++last_handle_; }
  int OpenControl();

  int fd_ = -1;
  int uvm_fd_ = -1;
  uint32_t client_ = 0;
  std::atomic<uint64_t> devices_{0};  // bit mask of minors opened
  std::atomic<uint32_t> last_handle_{0x5c000000};
};

}  // namespace rondo::sim::cuda

#endif  // RONDO_SIM_DRIVER_LIBCUDA_RM_CLIENT_H_
