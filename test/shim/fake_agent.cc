// SPDX-License-Identifier: Apache-2.0

#include "test/shim/fake_agent.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <utility>

namespace rondo {

FakeAgent::FakeAgent(std::string path, Options options)
    : path_(std::move(path)), options_(options) {
  unlink(path_.c_str());
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) !=
          0 ||
      listen(listener_, 64) != 0) {
    perror("fake agent");
    abort();
  }
  chmod(path_.c_str(), 0777);  // tenants run as anybody
  stop_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Run(); });
}

FakeAgent::~FakeAgent() {
  eventfd_write(stop_, 1);
  thread_.join();
  unlink(path_.c_str());
  close(listener_);
  close(stop_);
  for (int fd : fds_) close(fd);
}

void FakeAgent::Run() {
  for (;;) {
    std::vector<pollfd> polled = {{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (int fd : fds_) polled.push_back({fd, POLLIN, 0});
    }
    poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (polled[1].revents != 0) Accept();
    for (size_t i = 2; i < polled.size(); ++i) {
      const int fd = polled[i].fd;
      if (polled[i].revents == 0 || Serve(fd)) continue;
      close(fd);
      fds_.erase(fd);
      state_.held.erase(fd);
      --state_.connections;
    }
    changed_.notify_all();
  }
}

void FakeAgent::Accept() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  fds_.insert(fd);
  ++state_.connections;
}

bool FakeAgent::Serve(int fd) {
  for (;;) {
    char data[wire::kMaxMessage];
    const ssize_t n = recv(fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    Handle(fd, data, static_cast<size_t>(n));
  }
}

void FakeAgent::Answer(int fd, uint32_t seq, wire::Verdict verdict) {
  if (options_.mute) return;
  if (options_.garbage) {
    send(fd, "\xff\xff\xff\xff nonsense", 13, MSG_NOSIGNAL);
    send(fd, "x", 1, MSG_NOSIGNAL);
    auto stale = wire::Make<wire::Answer>(seq - 1);
    stale.verdict = wire::Verdict::kDenied;
    send(fd, &stale, sizeof stale, MSG_NOSIGNAL);
  }
  auto answer = wire::Make<wire::Answer>(seq);
  answer.verdict = verdict;
  answer.used = state_.Used() + options_.used_by_others;
  answer.limit = options_.policy.limit;
  send(fd, &answer, sizeof answer, MSG_NOSIGNAL);
}

void FakeAgent::Handle(int fd, const char* data, size_t size) {
  wire::Hello hello;
  wire::Reserve reserve;
  wire::Release release;
  wire::Shared shared;
  wire::Borrow borrow;
  wire::View view;
  wire::Channels channels;
  wire::Applied applied;
  wire::State health;
  if (wire::Read(data, size, &hello)) {
    ++state_.hellos;
    state_.hello = hello;
    auto welcome = wire::Make<wire::Welcome>(hello.header.seq);
    welcome.version = wire::kVersion;
    welcome.policy = options_.policy;
    welcome.policy.used = state_.Used() + options_.used_by_others;
    if (!options_.mute) send(fd, &welcome, sizeof welcome, MSG_NOSIGNAL);
  } else if (wire::Read(data, size, &reserve)) {
    auto& mine = state_.held[fd];
    const uint64_t before =
        mine.count(reserve.id) != 0 ? mine[reserve.id].bytes : 0;
    const bool fits =
        state_.Used() + options_.used_by_others - before + reserve.bytes <=
        options_.policy.limit;
    if (reserve.held || fits) mine[reserve.id] = {reserve.bytes, reserve.kind};
    if (reserve.held) return;
    ++state_.asked;
    Answer(fd, reserve.header.seq,
           fits ? wire::Verdict::kGranted : wire::Verdict::kDenied);
  } else if (wire::Read(data, size, &release)) {
    state_.held[fd].erase(release.id);
    state_.shared.erase(release.id);
    state_.borrowed.erase(release.id);
  } else if (wire::Read(data, size, &shared)) {
    if (state_.held[fd].count(shared.id) != 0)
      state_.shared[shared.id] = shared.tag;
  } else if (wire::Read(data, size, &borrow)) {
    state_.borrowed[borrow.id] = borrow;
  } else if (wire::Read(data, size, &view)) {
    Answer(fd, view.header.seq, wire::Verdict::kGranted);
  } else if (wire::Read(data, size, &channels)) {
    for (int i = 0; i < channels.count; ++i) {
      const auto channel = std::make_pair(channels.client, channels.handles[i]);
      if (channels.gone != 0) {
        state_.channels.erase(channel);
      } else {
        state_.channels.insert(channel);
      }
    }
  } else if (wire::Read(data, size, &applied)) {
    (applied.header.seq != 0 ? state_.applied : state_.unasked)
        .push_back(applied);
  } else if (wire::Read(data, size, &health)) {
    state_.health = health;
  }
}

void FakeAgent::SendSlice(uint32_t us) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto slice = wire::Make<wire::Slice>(++seq_);
  slice.us = us;
  for (int fd : fds_) send(fd, &slice, sizeof slice, MSG_NOSIGNAL);
}

void FakeAgent::SendPolicy(const wire::Policy& policy) {
  std::lock_guard<std::mutex> lock(mutex_);
  options_.policy = policy;
  auto change = wire::Make<wire::PolicyChange>(++seq_);
  change.policy = policy;
  for (int fd : fds_) send(fd, &change, sizeof change, MSG_NOSIGNAL);
}

bool FakeAgent::Wait(const std::function<bool(const FakeAgentState&)>& wanted) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(5),
                           [&] { return wanted(state_); });
}

FakeAgentState FakeAgent::Get() {
  std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

}  // namespace rondo
