// SPDX-License-Identifier: Apache-2.0
//
// A scripted shim for tests: speaks src/wire over a slot's socket. Waits with a
// deadline, optionally turning the loop of the server meanwhile.

#ifndef RONDO_SHARE_TEST_SHIM_H_
#define RONDO_SHARE_TEST_SHIM_H_

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "wire/codec.h"

namespace rondo::share {

inline constexpr auto kPatience = std::chrono::seconds(20);

// Turns the loop until done, at most kPatience. False: it never came.
inline bool RunUntil(EventLoop& loop, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    loop.RunOnce(std::chrono::milliseconds(5));
  }
  return true;
}

class TestShim {
 public:
  // loop: of the server, if it runs on this thread.
  explicit TestShim(EventLoop* loop = nullptr) : loop_(loop) {}

  bool Connect(const std::string& path) {
    const sockaddr_un address = Address(path);
    fd_.Reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    return connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)) == 0;
  }
  // As another process: the one that connects is the socket's peer.
  bool ConnectFromAChild(const std::string& path) {
    const sockaddr_un address = Address(path);
    fd_.Reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const pid_t child = fork();
    if (child == 0)
      _exit(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof(address)));
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
  }
  void Close() { fd_.Reset(); }
  int fd() const { return fd_.get(); }

  template <typename T>
  bool Send(const T& message) {
    return SendBytes(&message, sizeof(message));
  }
  bool SendBytes(const void* data, size_t size) {
    for (;;) {
      const int flags = MSG_NOSIGNAL | (loop_ != nullptr ? MSG_DONTWAIT : 0);
      const ssize_t n = send(fd_.get(), data, size, flags);
      if (n >= 0 || errno != EAGAIN) return n == static_cast<ssize_t>(size);
      loop_->RunOnce(std::chrono::milliseconds(1));
    }
  }

  // The next datagram; empty = closed, or nothing within the patience.
  std::string Receive() {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      char buffer[wire::kMaxMessage];
      if (loop_ != nullptr) loop_->RunOnce(std::chrono::milliseconds(0));
      pollfd p{fd_.get(), POLLIN, 0};
      if (poll(&p, 1, 5) <= 0) continue;
      const ssize_t n = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      return n > 0 ? std::string(buffer, n) : std::string();
    }
    return "";
  }
  // The next message of that type; others are skipped.
  template <typename T>
  std::optional<T> Expect() {
    for (;;) {
      const std::string bytes = Receive();
      if (bytes.empty()) return std::nullopt;
      T message;
      if (wire::Read(bytes.data(), bytes.size(), &message)) return message;
    }
  }

  std::optional<wire::Welcome> Hello(uint32_t held = 0,
                                     uint16_t version = wire::kVersion,
                                     uint16_t oldest = wire::kOldestVersion) {
    auto hello = wire::Make<wire::Hello>(++seq_);
    hello.magic = wire::kMagic;
    hello.version = version;
    hello.oldest = oldest;
    hello.pid = 1;
    hello.held = held;
    strncpy(hello.driver, "580.159.04", sizeof(hello.driver) - 1);
    if (!Send(hello)) return std::nullopt;
    return Expect<wire::Welcome>();
  }

  bool SendReserve(uint64_t id, uint64_t bytes, bool held = false,
                   wire::Kind kind = wire::Kind::kVideo) {
    auto reserve = wire::Make<wire::Reserve>(++seq_);
    reserve.id = id;
    reserve.bytes = bytes;
    reserve.kind = kind;
    reserve.held = held;
    return Send(reserve);
  }
  // True = granted.
  bool Reserve(uint64_t id, uint64_t bytes,
               wire::Kind kind = wire::Kind::kVideo) {
    if (!SendReserve(id, bytes, false, kind)) return false;
    answer = Expect<wire::Answer>();
    return answer && answer->verdict == wire::Verdict::kGranted;
  }
  bool Release(uint64_t id) {
    auto release = wire::Make<wire::Release>(0);
    release.id = id;
    return Send(release);
  }
  bool Share(uint64_t id, uint32_t tag) {
    auto shared = wire::Make<wire::Shared>(0);
    shared.id = id;
    shared.tag = tag;
    return Send(shared);
  }
  bool Borrow(uint64_t id, uint64_t bytes, uint32_t tag) {
    auto borrow = wire::Make<wire::Borrow>(0);
    borrow.id = id;
    borrow.bytes = bytes;
    borrow.tag = tag;
    return Send(borrow);
  }
  std::optional<wire::Answer> View() {
    if (!Send(wire::Make<wire::View>(++seq_))) return std::nullopt;
    return Expect<wire::Answer>();
  }
  bool Channels(uint32_t client, std::initializer_list<uint32_t> handles,
                bool gone = false) {
    auto channels = wire::Make<wire::Channels>(0);
    channels.client = client;
    channels.gone = gone;
    for (uint32_t handle : handles) channels.handles[channels.count++] = handle;
    return Send(channels);
  }
  bool Applied(const wire::Slice& slice, uint16_t groups = 1) {
    auto applied = wire::Make<wire::Applied>(slice.header.seq);
    applied.us = slice.us;
    applied.groups = groups;
    return Send(applied);
  }
  // It is on `in_force_us` still.
  bool Refused(const wire::Slice& slice, uint32_t in_force_us) {
    auto applied = wire::Make<wire::Applied>(slice.header.seq);
    applied.us = in_force_us;
    applied.groups = applied.failed = 1;
    return Send(applied);
  }
  bool State(uint64_t reasons) {
    auto state = wire::Make<wire::State>(0);
    state.reasons = reasons;
    return Send(state);
  }

  std::optional<wire::Answer> answer;  // of the last Reserve

 private:
  static sockaddr_un Address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    return address;
  }

  EventLoop* const loop_;
  UniqueFd fd_;
  uint32_t seq_ = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TEST_SHIM_H_
