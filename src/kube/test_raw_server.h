// SPDX-License-Identifier: Apache-2.0
//
// A server on loopback that says whatever it was told to say, well formed or
// not: one connection at a time, one request on each.

#ifndef RONDO_KUBE_TEST_RAW_SERVER_H_
#define RONDO_KUBE_TEST_RAW_SERVER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"

namespace rondo::kube {

struct RawAnswer {
  std::string once;
  std::string again;                     // after that, for ever; empty: close
  std::chrono::milliseconds between{0};  // of two pieces of `again`
};

class RawServer {
 public:
  RawServer() {
    listener_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), plain, size), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    EXPECT_EQ(getsockname(listener_.get(), plain, &size), 0);
    url_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~RawServer() {
    stop_ = true;
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  const std::string& url() const { return url_; }
  // From the next request on.
  void Say(RawAnswer to_list, RawAnswer to_watch = {}) {
    std::lock_guard lock(mutex_);
    to_list_ = std::move(to_list);
    to_watch_ = std::move(to_watch);
  }
  // After so many requests, or pieces of `again`, from now on; false after 20
  // s.
  bool WaitForRequests(int count) { return WaitFor(requests_, count); }
  bool WaitForPieces(int count) { return WaitFor(pieces_, count); }

 private:
  bool WaitFor(const int& counter, int count) {
    std::unique_lock lock(mutex_);
    const int enough = counter + count;
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return counter >= enough; });
  }
  void Count(int& counter) {
    std::lock_guard lock(mutex_);
    ++counter;
    changed_.notify_all();
  }

  void Run() {
    while (!stop_) {
      const UniqueFd fd(accept(listener_.get(), nullptr, nullptr));
      if (fd.ok()) Serve(fd.get());
    }
  }

  void Serve(int fd) {
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == request.npos) {
      const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
      if (n <= 0) return;
      request.append(buffer, n);
    }
    RawAnswer answer;
    {
      std::lock_guard lock(mutex_);
      answer = request.find("watch=1") != request.npos ? to_watch_ : to_list_;
    }
    Count(requests_);
    if (!Send(fd, answer.once)) return;
    while (!stop_ && !answer.again.empty()) {
      pollfd gone{.fd = fd, .events = POLLRDHUP, .revents = 0};
      if (poll(&gone, 1, static_cast<int>(answer.between.count())) > 0) return;
      if (!Send(fd, answer.again)) return;
      Count(pieces_);
    }
  }

  bool Send(int fd, absl::string_view text) const {
    while (!text.empty() && !stop_) {
      const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(n);
    }
    return true;
  }

  UniqueFd listener_;
  std::string url_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  RawAnswer to_list_, to_watch_;
  int requests_ = 0, pieces_ = 0;  // guarded by mutex_, as are the answers
  std::thread thread_;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_TEST_RAW_SERVER_H_
