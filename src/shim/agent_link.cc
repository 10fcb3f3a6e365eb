// SPDX-License-Identifier: Apache-2.0

#include "shim/agent_link.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace rondo::shim {
namespace {

// Out of the way of programs that count on low numbers, yet below 64: a larger
// descriptor table costs a program with threads an RCU grace period, 10 ms.
constexpr int kDescriptorFrom = 48;

// An answer mostly comes sooner than a sleeping thread would wake up.
constexpr uint64_t kStayAwakeNs = 50'000;

uint64_t Min(uint64_t a, uint64_t b) { return a < b ? a : b; }
uint64_t Max(uint64_t a, uint64_t b) { return a < b ? b : a; }

long SendTo(int fd, const void* data, size_t size) {
  return sys::Call(SYS_sendto, fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT,
                   nullptr, 0);
}

}  // namespace

void Link::Lose(Health* health, wire::Counter why) {
  health->Count(why);
  if (fd_ >= 0) sys::Call(SYS_shutdown, fd_, SHUT_RDWR);
  dead_ = true;
  if (welcomed_) {
    loss_waits_ = true;
    health->Count(wire::Counter::kAgentLost);
  }
  welcomed_ = false;
  slice_waits_ = false;
  slice_us_ = 0;
  const bool slow = why == wire::Counter::kAgentSlow;
  const uint64_t wait =
      slow ? Max(retry_ns_, kSlowRetryNs) : Min(retry_ns_, kAbsentRetryNs);
  retry_at_ns_ = sys::NowNs() + wait;
  retry_ns_ = Min(retry_ns_ * 2, kLastRetryNs);
}

// A program may close descriptors that it did not open, and get the number back
// for a file of its own: never write to that.
bool Link::StillOurs(Health* health) {
  if (!connected()) return false;
  sys::FileId now;
  if (sys::GetFileId(fd_, &now) && now == file_) return true;
  fd_ = -1;
  Lose(health, wire::Counter::kSocketStolen);
  return false;
}

bool Link::Open(const char* path, Health* health) {
  if (fd_ >= 0) {
    sys::FileId now;
    if (sys::GetFileId(fd_, &now) && now == file_) sys::Close(fd_);
    fd_ = -1;
  }
  dead_ = false;
  int fd = static_cast<int>(sys::Call(
      SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, path);
  if (fd < 0 || sys::Call(SYS_connect, fd, &address, sizeof address) != 0) {
    if (fd >= 0) sys::Close(fd);
    Lose(health, wire::Counter::kAgentAbsent);
    return false;
  }
  const long high = sys::Call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kDescriptorFrom);
  if (high >= 0) {
    sys::Close(fd);
    fd = static_cast<int>(high);
  }
  fd_ = fd;
  if (!sys::GetFileId(fd, &file_)) file_ = {};
  return true;
}

bool Link::Connect(const Slot& slot, const char (&driver)[32], bool held,
                   Health* health) {
  if (!Open(slot.socket, health)) return false;
  auto hello = wire::Make<wire::Hello>(++seq_);
  hello.magic = wire::kMagic;
  hello.version = wire::kVersion;
  hello.oldest = wire::kOldestVersion;
  hello.pid = sys::Pid();
  hello.held = held ? 1 : 0;
  memcpy(hello.driver, driver, sizeof hello.driver);
  if (!Send(&hello, sizeof hello, health)) return false;
  const uint64_t deadline = sys::NowNs() + kAnswerWithinNs;
  while (!welcomed_) {
    const long n = ReadOne(nullptr);
    if (n > 0) continue;
    if (n < 0 || !sys::WaitFor(fd_, POLLIN, deadline)) {
      Lose(health,
           n < 0 ? wire::Counter::kAgentAbsent : wire::Counter::kAgentSlow);
      return false;
    }
  }
  retry_ns_ = kFirstRetryNs;
  told_health = 0;
  others = policy_.used;  // nothing of ours is in it before the replay
  return true;
}

bool Link::Send(const void* data, size_t size, Health* health) {
  if (!StillOurs(health)) return false;
  const uint64_t deadline = sys::NowNs() + kAnswerWithinNs;
  for (;;) {
    const long n = SendTo(fd_, data, size);
    if (n == static_cast<long>(size)) return true;
    if (n == -EINTR) continue;
    const bool full = n == -EAGAIN;
    if (full && sys::WaitFor(fd_, POLLOUT, deadline)) continue;
    Lose(health,
         full ? wire::Counter::kAgentSlow : wire::Counter::kAgentAbsent);
    return false;
  }
}

bool Link::Await(uint32_t seq, wire::Answer* answer, Health* health) {
  const uint64_t start = sys::NowNs(), deadline = start + kAnswerWithinNs;
  for (;;) {
    *answer = {};
    const long n = ReadOne(answer);
    if (n < 0) {
      Lose(health, wire::Counter::kAgentAbsent);
      return false;
    }
    if (n > 0 && answer->header.type == wire::Type::kAnswer &&
        answer->header.seq == seq) {
      return true;
    }
    if (n != 0) continue;
    if (sys::NowNs() - start < kStayAwakeNs) {
      sys::Call(SYS_sched_yield);
    } else if (!sys::WaitFor(fd_, POLLIN, deadline)) {
      Lose(health, wire::Counter::kAgentSlow);
      return false;
    }
  }
}

long Link::ReadOne(wire::Answer* answer) {
  alignas(8) char buffer[wire::kMaxMessage];
  long n;
  do {
    n = sys::Call(SYS_recvfrom, fd_, buffer, sizeof buffer, MSG_DONTWAIT,
                  nullptr, nullptr);
  } while (n == -EINTR);
  if (n == -EAGAIN) return 0;
  if (n <= 0) return -1;  // closed, or an empty datagram, which nobody sends
  const size_t size = static_cast<size_t>(n);
  if (answer == nullptr || !wire::Read(buffer, size, answer)) {
    Take(buffer, size);
  }
  return n;
}

void Link::TakePolicy(const wire::Policy& policy) {
  policy_ = policy;
  known_ = true;
}

void Link::Take(const void* data, size_t size) {
  wire::Welcome welcome;
  wire::PolicyChange change;
  wire::Slice slice;
  if (wire::Read(data, size, &welcome) && !welcomed_) {
    welcomed_ = true;
    TakePolicy(welcome.policy);
    slice_us_ = welcome.policy.slice_us;
    slice_seq_ = 0;
    slice_waits_ = slice_us_ != 0;
  } else if (wire::Read(data, size, &change) && welcomed_) {
    TakePolicy(change.policy);
    others = policy_.used > own ? policy_.used - own : 0;
  } else if (wire::Read(data, size, &slice) && welcomed_) {
    slice_us_ = slice.us;
    slice_seq_ = slice.header.seq;
    slice_waits_ = true;
  }
}

void Link::Drain(Health* health) {
  while (StillOurs(health)) {
    const long n = ReadOne(nullptr);
    if (n == 0) return;
    if (n < 0) Lose(health, wire::Counter::kAgentAbsent);
  }
}

bool Link::TakeSlice(uint32_t* seq) {
  if (!slice_waits_) return false;
  slice_waits_ = false;
  *seq = slice_seq_;
  return true;
}

bool Link::TakeLoss() {
  const bool lost = loss_waits_;
  loss_waits_ = false;
  return lost;
}

void Link::Forget() { *this = Link(); }

}  // namespace rondo::shim
