// SPDX-License-Identifier: Apache-2.0
#include "rm/system.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace rondo::rm {
namespace {

class Real : public System {
 public:
  absl::StatusOr<UniqueFd> Open(const std::string& path) override {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd.ok()) return ErrnoStatus(absl::StrCat("open ", path));
    return fd;
  }

  absl::Status Ioctl(int fd, uint32_t request, void* argument) override {
    int result;
    do {
      result = ioctl(fd, request, argument);
    } while (result < 0 && (errno == EINTR || errno == EAGAIN));
    return result < 0 ? ErrnoStatus("ioctl") : absl::OkStatus();
  }

  absl::StatusOr<const void*> Map(int fd, size_t bytes) override {
    void* address = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) return ErrnoStatus("mmap");
    return address;
  }

  void Unmap(const void* address, size_t bytes) override {
    munmap(const_cast<void*>(address), bytes);
  }
};

}  // namespace

System& RealSystem() {
  static Real* const kReal = new Real;
  return *kReal;
}

}  // namespace rondo::rm
