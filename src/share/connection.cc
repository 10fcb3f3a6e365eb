// SPDX-License-Identifier: Apache-2.0
#include "share/connection.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/unix_socket.h"

namespace rondo::share {
namespace {

constexpr int kLongestRetryMs = 100;

}  // namespace

absl::StatusOr<UniqueFd> ListenSeqpacket(const std::string& path) {
  // Pods run under any uid; the folder is mounted into one container only.
  return ListenUnix(path, SOCK_SEQPACKET, 0666);
}

Connection::Connection(EventLoop& loop, UniqueFd fd, Callbacks callbacks,
                       Worked worked)
    : loop_(loop),
      fd_(std::move(fd)),
      callbacks_(std::move(callbacks)),
      worked_(std::move(worked)) {
  SetReading(true);
}

Connection::~Connection() {
  *alive_ = false;
  SetReading(false);
  if (retry_timer_ != 0) loop_.CancelTimer(retry_timer_);
}

void Connection::SetReading(bool on) {
  if (on == reading_) return;
  reading_ = on;
  if (!on) {
    loop_.Unwatch(fd_.get());
  } else if (!loop_.Watch(fd_.get(), [this] { Read(); }).ok()) {
    reading_ = false;
    Close();
  }
}

void Connection::Close() {
  if (closed_) return;
  closed_ = true;
  SetReading(false);
  waiting_.clear();
  // The peer sees the end at once, whoever still holds the object.
  shutdown(fd_.get(), SHUT_RDWR);
  loop_.Post([this, alive = alive_] {
    if (*alive) callbacks_.on_closed();
  });
}

void Connection::Read() {
  char buffer[wire::kMaxMessage];
  for (int i = 0; i < kMessagesATurn && reading_ && *worked_ < kWorkATurn;
       ++i) {
    const ssize_t n = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    // An empty datagram looks like the end, and nobody sends one.
    if (n <= 0) return Close();
    Work(buffer, static_cast<size_t>(n));
  }
}

void Connection::Work(const void* data, size_t size) {
  const MonotonicTime start = RealClock().Now();
  callbacks_.on_message(data, size);
  *worked_ += RealClock().Now() - start;
  // Posted tasks run between two turns.
  if (*worked_ >= kWorkATurn)
    loop_.Post([worked = worked_] { *worked = MonotonicTime(0); });
}

int Connection::TrySend(const void* data, size_t size) {
  for (;;) {
    const ssize_t n = send(fd_.get(), data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) return 1;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return 0;
    return -1;
  }
}

void Connection::SendBytes(wire::Type type, const void* data, size_t size) {
  if (closed_) return;
  if (waiting_.empty()) {
    const int sent = TrySend(data, size);
    if (sent > 0) return;
    if (sent < 0) return Close();
  }
  const bool newest_only =
      type == wire::Type::kSlice || type == wire::Type::kPolicy;
  if (newest_only)
    std::erase_if(waiting_, [&](const Waiting& w) { return w.type == type; });
  else
    SetReading(false);
  waiting_.push_back({type, std::string(static_cast<const char*>(data), size)});
  if (retry_timer_ == 0) {
    retry_ms_ = 1;
    retry_timer_ = loop_.RunAfter(std::chrono::milliseconds(retry_ms_),
                                  [this] { Retry(); });
  }
}

void Connection::Retry() {
  retry_timer_ = 0;
  while (!waiting_.empty()) {
    const int sent =
        TrySend(waiting_.front().bytes.data(), waiting_.front().bytes.size());
    if (sent < 0) return Close();
    if (sent == 0) {
      retry_ms_ = std::min(retry_ms_ * 2, kLongestRetryMs);
      retry_timer_ = loop_.RunAfter(std::chrono::milliseconds(retry_ms_),
                                    [this] { Retry(); });
      return;
    }
    waiting_.pop_front();
  }
  if (!closed_) SetReading(true);
}

}  // namespace rondo::share
