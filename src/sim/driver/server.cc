// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace rondo::sim::driver {
namespace {

constexpr std::chrono::seconds kLoadPeriod{1};

// The packet's sender and the descriptor that it carries.
struct Ancillary {
  ucred sender{};
  UniqueFd fd;
};

Ancillary ReadAncillary(msghdr* message) {
  Ancillary result;
  for (cmsghdr* c = CMSG_FIRSTHDR(message); c != nullptr;
       c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET) continue;
    if (c->cmsg_type == SCM_CREDENTIALS)
      memcpy(&result.sender, CMSG_DATA(c), sizeof(result.sender));
    if (c->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(c), sizeof(fd));
      result.fd.Reset(fd);
    }
  }
  return result;
}

// Nobody waits for it any more when it cannot be sent.
void SendAnswer(int to, int error, const uint8_t* body, size_t size,
                int carried_fd = -1) {
  Reply reply{error, 0};
  iovec parts[] = {{&reply, sizeof(reply)}, {const_cast<uint8_t*>(body), size}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (carried_fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &carried_fd, sizeof(carried_fd));
  }
  [[maybe_unused]] const ssize_t sent =
      sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Server::Server(Options options) : options_(std::move(options)) {
  doorbell_ = SharedMemory::Create(sizeof(Doorbell));
  std::vector<Card*> cards;
  for (const CardOptions& card : options_.cards) {
    cards_.push_back(std::make_unique<Card>(card));
    cards.push_back(cards_.back().get());
  }
  published_.resize(cards.size());
  progress_.resize(cards.size());
  seen_bytes_.resize(cards.size());
  packet_.resize(sizeof(Request) + kMaxArg + kMaxParams);
  if (doorbell_ == nullptr) return;
  pacer_ = std::make_unique<Pacer>(cards, doorbell_, RealClock());
  manager_ = std::make_unique<ResourceManager>(
      std::move(cards), options_.driver_version, doorbell_, options_.lacks);
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Options options) {
  std::unique_ptr<Server> server(new Server(std::move(options)));
  if (server->doorbell_ == nullptr)
    return ErrnoStatus("memory of the simulated driver");
  RONDO_RETURN_IF_ERROR(server->Listen(kControlDevice));
  RONDO_RETURN_IF_ERROR(server->Listen(kUvmDevice));
  for (const std::string& device : server->options_.devices)
    RONDO_RETURN_IF_ERROR(server->Listen(device));
  server->measured_ = RealClock().Now();
  server->loop_.RunAfter(kLoadPeriod, [s = server.get()] { s->MeasureLoad(); });
  // Signals are for the program around it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  server->pacer_thread_ = std::thread([s = server.get()] { s->pacer_->Run(); });
  server->loop_thread_ = std::thread([s = server.get()] { s->loop_.Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return server;
}

Server::~Server() {
  if (loop_thread_.joinable()) {
    loop_.Stop();
    loop_thread_.join();
  }
  if (pacer_thread_.joinable()) {
    pacer_->Stop();
    pacer_thread_.join();
  }
  for (const std::string& device : options_.devices)
    unlink(absl::StrCat(options_.dir, "/", kSocketPrefix, device).c_str());
  for (const char* const device : {kControlDevice, kUvmDevice})
    unlink(absl::StrCat(options_.dir, "/", kSocketPrefix, device).c_str());
}

CardCounts Server::TakeCounts(size_t card) {
  std::lock_guard lock(*pacer_->mutex());
  pacer_->CatchUp();
  return std::exchange(*cards_.at(card)->counts(), {});
}

absl::Status Server::Listen(const std::string& device) {
  const std::string name = absl::StrCat(kSocketPrefix, device);
  const std::string path = absl::StrCat(options_.dir, "/", name);
  UniqueFd fd(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  UniqueFd dir(open(options_.dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok() || !dir.ok()) return ErrnoStatus(absl::StrCat("open ", path));
  // By way of the folder's descriptor: a socket's name holds 107 bytes.
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string shortened =
      absl::StrCat("/proc/self/fd/", dir.get(), "/", name);
  shortened.copy(address.sun_path, sizeof(address.sun_path) - 1);
  unlink(path.c_str());
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      chmod(path.c_str(), 0666) != 0 || listen(fd.get(), 256) != 0)
    return ErrnoStatus(absl::StrCat("listen on ", path));
  const int listener = fd.get();
  listeners_.push_back(std::move(fd));
  return loop_.Watch(listener, [this, listener] { Accept(listener); });
}

void Server::Accept(int listener) {
  UniqueFd fd(
      accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.ok()) return;
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  const int raw = fd.get();
  if (!loop_.Watch(raw, [this, raw] { Receive(raw); }).ok()) return;
  Connection& connection = connections_[raw];
  connection.fd = std::move(fd);
  connection.id = ++last_connection_;
}

void Server::Close(int fd) {
  loop_.Unwatch(fd);
  const uint64_t id = connections_[fd].id;
  std::erase_if(cookies_,
                [id](const auto& entry) { return entry.second == id; });
  {
    std::lock_guard lock(*pacer_->mutex());
    pacer_->CatchUp();
    manager_->CloseConnection(id);
  }
  pacer_->Ring();
  connections_.erase(fd);
  PublishUse(/*with_load=*/false);
}

void Server::Receive(int fd) {
  iovec part{packet_.data(), packet_.size()};
  alignas(cmsghdr) char
      control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(4 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    Close(fd);
    return;
  }
  Ancillary extra = ReadAncillary(&message);
  Connection& connection = connections_[fd];
  Caller caller;
  caller.connection = connection.id;
  caller.pid = static_cast<uint32_t>(extra.sender.pid);
  caller.uid = extra.sender.uid;
  Handle(&connection, caller, packet_.data(), size, std::move(extra.fd));
}

void Server::Handle(Connection* connection, const Caller& caller,
                    uint8_t* packet, size_t size, UniqueFd answer_to) {
  Request request;
  if (size < sizeof(request)) return;
  memcpy(&request, packet, sizeof(request));
  if (request.arg_size > kMaxArg || request.params_size > kMaxParams ||
      size != sizeof(request) + request.arg_size + request.params_size)
    return;
  switch (request.call) {
    case Call::kHello:
      cookies_[request.cookie] = connection->id;
      SendAnswer(answer_to.get(), 0, nullptr, 0);
      return;
    case Call::kMap: {
      std::lock_guard lock(*pacer_->mutex());
      const auto memory = manager_->Mapping(connection->id);
      if (memory == nullptr)
        SendAnswer(answer_to.get(), EINVAL, nullptr, 0);
      else
        SendAnswer(answer_to.get(), 0, nullptr, 0, memory->fd());
      return;
    }
    case Call::kEscape:
      HandleEscape(caller, request, packet + sizeof(request),
                   std::move(answer_to));
      return;
  }
}

void Server::HandleEscape(const Caller& caller, const Request& request,
                          uint8_t* packet, UniqueFd answer_to) {
  const auto other = cookies_.find(request.cookie);
  Bytes arg{packet, request.arg_size};
  Bytes params{packet + request.arg_size, request.params_size};
  const size_t size = size_t{request.arg_size} + request.params_size;
  {
    std::lock_guard lock(*pacer_->mutex());
    pacer_->CatchUp();
    const Answer answer =
        manager_->Escape(caller, request.nr, arg, params,
                         other == cookies_.end() ? 0 : other->second);
    if (answer.delay_ns == 0) {
      SendAnswer(answer_to.get(), answer.error, packet, size);
    } else {
      pacer_->After(answer.delay_ns,
                    [to = std::make_shared<UniqueFd>(std::move(answer_to)),
                     body = std::vector<uint8_t>(packet, packet + size),
                     error = answer.error] {
                      SendAnswer(to->get(), error, body.data(), body.size());
                    });
    }
  }
  pacer_->Ring();
  PublishUse(/*with_load=*/false);
}

void Server::MeasureLoad() {
  PublishUse(/*with_load=*/true);
  loop_.RunAfter(kLoadPeriod, [this] { MeasureLoad(); });
}

void Server::PublishUse(bool with_load) {
  if (options_.on_use == nullptr) return;
  const MonotonicTime now = RealClock().Now();
  const int64_t period_ns = std::max<int64_t>(1, (now - measured_).count());
  if (with_load) measured_ = now;
  for (size_t i = 0; i < cards_.size(); ++i) {
    std::map<uint32_t, ProcessUse> use;
    std::map<uint32_t, int64_t> progress;
    {
      std::lock_guard lock(*pacer_->mutex());
      const uint64_t used = cards_[i]->used_bytes();
      if (!with_load && used == seen_bytes_[i]) continue;
      seen_bytes_[i] = used;
      for (const auto& [pid, u] : manager_->objects()->UsageOf(*cards_[i]))
        use[pid].bytes = u.private_bytes + u.owned_bytes;
      progress = cards_[i]->ProgressByPid();
    }
    for (auto& [pid, u] : use) {
      const auto before = published_[i].find(pid);
      if (before != published_[i].end())
        u.sm_percent = before->second.sm_percent;
      if (with_load)
        u.sm_percent = static_cast<uint32_t>(std::clamp<int64_t>(
            (progress[pid] - progress_[i][pid]) * 100 / period_ns, 0, 100));
    }
    if (with_load) progress_[i] = std::move(progress);
    if (use != published_[i]) {
      options_.on_use(i, use);
      published_[i] = std::move(use);
    }
    if (with_load && options_.on_measured != nullptr) options_.on_measured(i);
  }
}

}  // namespace rondo::sim::driver
