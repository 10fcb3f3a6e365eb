// SPDX-License-Identifier: Apache-2.0
//
// Memory that the simulated driver shares with the programs on its node: an
// anonymous file, mapped here, whose descriptor goes to those who map it too.
// Not thread-safe, like a buffer.

#ifndef RONDO_SIM_DRIVER_SHARED_MEMORY_H_
#define RONDO_SIM_DRIVER_SHARED_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <memory>

#include "base/unique_fd.h"

namespace rondo::sim::driver {

class SharedMemory {
 public:
  // Zeroed. Null where the kernel gives none.
  static std::shared_ptr<SharedMemory> Create(size_t bytes) {
    UniqueFd fd(memfd_create("rondo-sim", MFD_CLOEXEC));
    if (!fd.ok() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
      return nullptr;
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) return nullptr;
    return std::shared_ptr<SharedMemory>(
        new SharedMemory(std::move(fd), at, bytes));
  }
  ~SharedMemory() { munmap(at_, size_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int fd() const { return fd_.get(); }
  size_t size() const { return size_; }
  template <typename T>
  T* As() const {
    return static_cast<T*>(at_);
  }

 private:
  SharedMemory(UniqueFd fd, void* at, size_t size)
      : fd_(std::move(fd)), at_(at), size_(size) {}
  const UniqueFd fd_;
  void* const at_;
  const size_t size_;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_SHARED_MEMORY_H_
