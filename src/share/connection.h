// SPDX-License-Identifier: Apache-2.0
//
// One shim's connection as a transport: datagrams in, messages out, never
// waiting for the other side. The other side may be stopped, slow or hostile:
//  - reading is bounded a turn of the loop, so that a flood takes its share and
//    no more, and one by many connections neither;
//  - what cannot be sent now waits here. Of slices and policies only the newest
//    is kept; while an answer waits, nothing more is read, so that a peer that
//    asks and does not listen stops itself.
//
// Threads: the loop's. Failure: a dead peer ends in OnClosed, once, from the
// loop, never from within Send.

#ifndef RONDO_SHARE_CONNECTION_H_
#define RONDO_SHARE_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "wire/codec.h"

namespace rondo::share {

// A listening SOCK_SEQPACKET socket at path, which any uid may connect to. What
// stood there before is removed. InvalidArgument where the path is too long.
absl::StatusOr<UniqueFd> ListenSeqpacket(const std::string& path);

class Connection {
 public:
  // The callbacks may not destroy the connection; they may from a task that
  // they post.
  struct Callbacks {
    std::function<void(const void* data, size_t size)> on_message;
    std::function<void()> on_closed;
  };

  static constexpr int kMessagesATurn = 64;
  // By all connections that share a Worked: who has a thousand of them, all
  // with something dear to say, gets no more of the loop than who has few.
  static constexpr MonotonicTime kWorkATurn = std::chrono::milliseconds(1);
  using Worked = std::shared_ptr<MonotonicTime>;

  // fd must be non-blocking. Starts reading at once.
  Connection(EventLoop& loop, UniqueFd fd, Callbacks callbacks, Worked worked);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  template <typename T>
  void Send(const T& message) {
    SendBytes(T::kType, &message, sizeof(message));
  }
  // Takes no more messages and closes; on_closed follows.
  void Close();

 private:
  struct Waiting {
    wire::Type type;
    std::string bytes;
  };

  void SendBytes(wire::Type type, const void* data, size_t size);
  // 1 sent, 0 not now, -1 the peer is gone.
  int TrySend(const void* data, size_t size);
  void Read();
  void Work(const void* data, size_t size);
  void Retry();
  void SetReading(bool on);

  EventLoop& loop_;
  UniqueFd fd_;
  Callbacks callbacks_;
  const Worked worked_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::deque<Waiting> waiting_;
  EventLoop::TimerId retry_timer_ = 0;
  int retry_ms_ = 1;
  bool reading_ = false;
  bool closed_ = false;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_CONNECTION_H_
