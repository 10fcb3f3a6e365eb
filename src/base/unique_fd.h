// SPDX-License-Identifier: Apache-2.0
//
// Owner of one file descriptor; closes it when it goes. Not thread-safe, like
// an int.

#ifndef RONDO_BASE_UNIQUE_FD_H_
#define RONDO_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace rondo {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace rondo

#endif  // RONDO_BASE_UNIQUE_FD_H_
