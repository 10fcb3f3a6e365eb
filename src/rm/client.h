// SPDX-License-Identifier: Apache-2.0
//
// A small client of the NVIDIA kernel driver's resource manager: objects,
// controls, and a mapping of memory, over /dev/nvidiactl. The agent's own; it
// holds no GPU memory and makes no context.
//
// One thread at a time. Errors: NotFound where there is no driver or no such
// object, Unimplemented where the driver or its version does not offer what is
// asked (the caller degrades and says so), PermissionDenied, ResourceExhausted,
// else Internal; the driver's status code stands in the message.
//
// Layouts: rm/abi.h, rm/control.h. Drivers from 535 on; an older one is refused
// by Open, since its escapes look different.

#ifndef RONDO_RM_CLIENT_H_
#define RONDO_RM_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rm/control.h"
#include "rm/system.h"

namespace rondo::rm {

inline constexpr int kOldestDriver = 535;

// The driver's word as a Status. `what` names the request.
absl::Status RmStatus(uint32_t status, absl::string_view what);

class Client {
 public:
  // dev_dir holds nvidiactl and nvidia0, nvidia1, ...
  static absl::StatusOr<std::unique_ptr<Client>> Open(
      System& system, const std::string& dev_dir = "/dev");
  ~Client();  // all of its objects go with it
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  uint32_t handle() const { return handle_; }
  const std::string& driver_version() const { return driver_version_; }

  // A new object under parent; its handle.
  absl::StatusOr<uint32_t> Alloc(uint32_t parent, uint32_t cls,
                                 const void* params, size_t size);
  absl::Status Control(uint32_t object, uint32_t cmd, void* params,
                       size_t size);
  absl::Status Free(uint32_t parent, uint32_t object);

  // Read-only view of a memory object of this client. It keeps the descriptor
  // that the mapping needs.
  class Mapping {
   public:
    Mapping(System* system, UniqueFd fd, const void* address, size_t bytes)
        : system_(system),
          fd_(std::move(fd)),
          address_(address),
          bytes_(bytes) {}
    Mapping(Mapping&& other) noexcept
        : system_(other.system_),
          fd_(std::move(other.fd_)),
          address_(std::exchange(other.address_, nullptr)),
          bytes_(other.bytes_) {}
    Mapping& operator=(Mapping&&) = delete;
    ~Mapping() {
      if (address_ != nullptr) system_->Unmap(address_, bytes_);
    }
    const void* address() const { return address_; }

   private:
    System* system_;
    UniqueFd fd_;
    const void* address_;
    size_t bytes_;
  };
  absl::StatusOr<Mapping> Map(uint32_t memory, size_t bytes);

 private:
  Client(System& system, std::string dev_dir)
      : system_(system), dev_dir_(std::move(dev_dir)) {}

  absl::Status Start();
  absl::Status AllocAs(uint32_t parent, uint32_t handle, uint32_t cls,
                       const void* params, size_t size, uint32_t* made);

  System& system_;
  const std::string dev_dir_;
  UniqueFd control_fd_;
  std::vector<UniqueFd> gpu_fds_;  // keep the GPUs attached
  uint32_t handle_ = 0;
  uint32_t last_object_ = 0xcaf00000;
  std::string driver_version_;
};

}  // namespace rondo::rm

#endif  // RONDO_RM_CLIENT_H_
