// SPDX-License-Identifier: Apache-2.0
#include "run/arbiter.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "base/unix_socket.h"
#include "nvml/library.h"
#include "nvml/real.h"
#include "run/status.h"

namespace rondo::run {
namespace {

namespace fs = std::filesystem;

constexpr MonotonicTime kAcceptPause = std::chrono::milliseconds(100);

absl::StatusOr<UniqueFd> Lock(const Arbiter::Options& options) {
  const std::string path = options.home + "/arbiter.lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.ok()) return ErrnoStatus(absl::StrCat("open ", path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return absl::AlreadyExistsError(
        absl::StrCat("another arbiter serves ", options.run_dir));
  return fd;
}

// The default folder is in /tmp for most, where systemd-tmpfiles removes what
// nobody has used for days, but for folders that are locked (tmpfiles.d(5)). A
// librondo.so that is gone leaves programs without their limit.
UniqueFd Keep(const std::string& folder) {
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.ok() && flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    LogWarning(ErrnoStatus("arbiter: lock of its folder").message());
  return fd;
}

share::SlotSpec SpecOf(const Request& request, const std::string& uuid,
                       int replica) {
  return {.gpu_uuid = uuid,
          .replica = replica,
          .limit_bytes = request.memory_bytes,
          .memory = request.memory_bytes ? config::MemoryMode::kEnforce
                                         : config::MemoryMode::kObserve,
          .tenant = request.tenant};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Arbiter>> Arbiter::Create(EventLoop& loop,
                                                         rm::System& system,
                                                         Options options) {
  RONDO_ASSIGN_OR_RETURN(UniqueFd lock, Lock(options));
  // One that ends as it should takes its socket along, and leaves nobody who
  // holds something: then no program has to wait until all have told.
  const bool heir = access(ControlSocket(options.home).c_str(), F_OK) == 0;
  share::ShareOptions sharing{.run_dir = options.home};
  sharing.replay_window = options.replay_window * (heir ? 1 : 0);
  RONDO_ASSIGN_OR_RETURN(
      auto share, share::Share::Create(loop, RealClock(), system, sharing));
  RONDO_ASSIGN_OR_RETURN(
      UniqueFd listener,
      // What is there is of a dead one: the lock is ours.
      ListenUnix(ControlSocket(options.home), SOCK_SEQPACKET, 0600));
  std::unique_ptr<Arbiter> arbiter(
      new Arbiter(loop, std::move(options), std::move(lock),
                  std::move(listener), std::move(share)));
  if (heir) arbiter->TakeOver();
  arbiter->feed_ = std::make_unique<share::ActivityBridge>(
      loop, system, *arbiter->share_,
      [calls = arbiter->options_.calls]()
          -> absl::StatusOr<std::shared_ptr<nvml::Backend>> {
        return nvml::Real::Load(nvml::FindLibrary(""), calls);
      },
      activity::Feed::Options{});
  RONDO_RETURN_IF_ERROR(arbiter->Listen());
  arbiter->TellUngoverned();
  arbiter->StopWhenUnused();
  return arbiter;
}

Arbiter::Arbiter(EventLoop& loop, Options options, UniqueFd lock,
                 UniqueFd listener, std::unique_ptr<share::Share> share)
    : loop_(loop),
      options_(std::move(options)),
      lock_(std::move(lock)),
      kept_(Keep(options_.home)),
      listener_(std::move(listener)),
      share_(std::move(share)),
      gpus_(options_.calls) {}

Arbiter::~Arbiter() {
  *alive_ = false;
  looks_.reset();
  loop_.CancelTimer(linger_);
  loop_.CancelTimer(accept_timer_);
  loop_.CancelTimer(govern_timer_);
  loop_.Unwatch(listener_.get());
  for (auto& [fd, client] : clients_) loop_.Unwatch(fd);
  unlink(ControlSocket(options_.home).c_str());
}

absl::Status Arbiter::Listen() {
  return loop_.Watch(listener_.get(), [this] { OnConnection(); });
}

void Arbiter::OnConnection() {
  UniqueFd fd(
      accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.ok()) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    // Out of descriptors: the listener would stay readable. Look away.
    LogWarning(ErrnoStatus("arbiter: accept").message());
    loop_.Unwatch(listener_.get());
    accept_timer_ =
        loop_.RunAfter(kAcceptPause, [this] { Listen().IgnoreError(); });
    return;
  }
  const int number = fd.get();
  clients_[number].fd = std::move(fd);
  if (!loop_.Watch(number, [this, number] { OnPacket(number); }).ok())
    clients_.erase(number);
  StopWhenUnused();
}

void Arbiter::OnPacket(int fd) {
  char buffer[kMaxMessage];
  const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return Drop(fd);
  clients_[fd].asked = true;
  if (IsStatusRequest({buffer, static_cast<size_t>(n)})) {
    const std::string text = RenderStatus(share_->Snapshot(), getpid());
    if (send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) return Drop(fd);
    return StopWhenUnused();
  }
  absl::StatusOr<std::string> slot = absl::InternalError("");
  if (auto request = DecodeRequest({buffer, static_cast<size_t>(n)});
      request.ok())
    slot = Grant(clients_[fd], *request);
  else
    slot = request.status();
  const std::string answer = EncodeAnswer(slot);
  if (!slot.ok() && clients_.size() == 1) served_ = false;
  if (send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0 || !slot.ok())
    return Drop(fd);
  StopWhenUnused();
}

void Arbiter::Drop(int fd) {
  loop_.Unwatch(fd);
  const Client client = std::move(clients_[fd]);
  clients_.erase(fd);
  if (client.slot.empty()) return StopWhenUnused();
  Leave(client.spec);
}

void Arbiter::Leave(const share::SlotSpec& spec) {
  left_.push_back({spec, RealClock().Now()});
  // This thread must not wait for a look at thousands of processes.
  if (looks_ != nullptr) return looks_->Soon();
  looks_ = std::make_unique<Ticker>(options_.look, [this] {
    const MonotonicTime began = RealClock().Now();
    loop_.Post([this, began, alive = alive_,
                inherited = InheritedSlots(options_.run_dir)] {
      if (*alive) OnLooked(began, inherited);
    });
  });
}

// Runs come back for their slots. For those whose run has ended nobody does,
// while processes that it started keep them.
void Arbiter::TakeOver() {
  const Inherited inherited = InheritedSlots(options_.run_dir);
  old_slots_ = inherited.slots;
  std::error_code error;
  for (fs::directory_iterator at(options_.home, error), end;
       !error && at != end; at.increment(error)) {
    const std::string path = at->path() / kSlotRequest;
    const auto text = ReadFile(path, kMaxMessage);
    if (!text.ok()) continue;
    const auto request = DecodeRequest(*text);
    const auto slot = share::SlotSpec::Parse(request.ok() ? request->slot : "");
    if (slot && slot->folder() == at->path().filename() &&
        (inherited.uncertain || inherited.slots.count(request->slot) > 0)) {
      LogInfo("slot ", request->slot, ": taken over");
      Leave(SpecOf(*request, slot->gpu_uuid, slot->replica));
    } else {
      unlink(path.c_str());
    }
  }
  if (left_.empty()) return;
  if (absl::Status status = Configure(); !status.ok())
    LogError("arbiter: ", status.message());
}

std::string Arbiter::RequestFile(const share::SlotSpec& slot) const {
  return absl::StrCat(options_.home, "/", slot.folder(), "/", kSlotRequest);
}

bool Arbiter::InUse(const std::string& slot) {
  const share::ShareStats stats = share_->Snapshot();
  return std::any_of(
      stats.slots.begin(), stats.slots.end(),
      [&](const auto& s) { return s.slot == slot && !s.processes.empty(); });
}

// Once a run: whoever started it believes that its share is kept.
void Arbiter::TellUngoverned() {
  govern_timer_ = loop_.RunAfter(options_.govern, [this] { TellUngoverned(); });
  if (clients_.empty()) return;
  const share::ShareStats stats = share_->Snapshot();
  for (auto& [fd, client] : clients_)
    for (const share::SlotStats& slot : stats.slots) {
      if (client.told || slot.slot != client.slot || slot.governed) continue;
      client.told = true;
      LogWarning("slot ", slot.slot, ": ", slot.reason);
      const std::string notice = EncodeNotice(slot.reason);
      // Where it has gone, its descriptor says so to the loop.
      send(fd, notice.data(), notice.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

void Arbiter::OnLooked(MonotonicTime began, const Inherited& inherited) {
  const size_t gone = std::erase_if(left_, [&](const Left& left) {
    const std::string slot = left.spec.id();
    // Where it is uncertain, a later look counts.
    const MonotonicTime from =
        left.since +
        (inherited.uncertain ? options_.look / 2 : MonotonicTime());
    if (began < from || inherited.slots.count(slot) > 0 || InUse(slot))
      return false;
    unlink(RequestFile(left.spec).c_str());
    old_slots_.erase(slot);
    return true;
  });
  if (gone > 0)
    if (absl::Status status = Configure(); !status.ok())
      LogError("arbiter: ", status.message());
  if (!left_.empty()) return;
  looks_.reset();
  StopWhenUnused();
}

absl::StatusOr<std::string> Arbiter::Grant(Client& client,
                                           const Request& request) {
  if (!client.slot.empty())
    return absl::InvalidArgumentError("this run has a slot already");
  // A run whose arbiter died asks for the slot whose socket its program knows.
  // It must have it soon: nothing is asked of NVML for that.
  const auto known = share::SlotSpec::Parse(request.slot);
  std::string uuid = known ? known->gpu_uuid : "";
  if (!known && !request.slot.empty())
    return absl::InvalidArgumentError(request.slot + " is no slot");
  if (!known) {
    RONDO_ASSIGN_OR_RETURN(
        const Gpu gpu,
        request.visible.empty()
            ? gpus_.Find(request.gpu)
            : gpus_.FindVisible(request.visible, request.bus_order));
    const uint64_t all = gpu.memory_bytes.value_or(UINT64_MAX);
    if (request.memory_bytes.value_or(0) > all)
      return absl::InvalidArgumentError(
          absl::StrCat("--memory: GPU ", gpu.index, " has ", all >> 20,
                       "Mi in all; ask for less"));
    uuid = gpu.uuid;
  }
  std::erase_if(
      left_, [&](const Left& left) { return left.spec.id() == request.slot; });
  std::set<std::string> taken;
  for (const auto& [fd, other] : clients_) taken.insert(other.slot);
  for (const Left& left : left_) taken.insert(left.spec.id());
  if (!known) taken.insert(old_slots_.begin(), old_slots_.end());
  share::SlotSpec spec = SpecOf(request, uuid, known ? known->replica : 0);
  while (taken.count(spec.id()) > 0)
    if (known || ++spec.replica > 4096)
      return absl::ResourceExhaustedError("no free slot");
  client.slot = spec.id();
  client.spec = spec;
  served_ = true;
  RONDO_RETURN_IF_ERROR(Configure());
  // For the arbiter after this one. Only now: whose folder was there before is
  // taken for a slot of the arbiter before.
  Request granted = request;
  granted.slot = client.slot;
  if (absl::Status status =
          WriteFileAtomically(RequestFile(spec), EncodeRequest(granted), 0600);
      !status.ok())
    LogWarning("arbiter: ", status.message());
  LogInfo("slot ", client.slot, ": class ",
          share::ClassName(request.tenant.cls), ", weight ",
          request.tenant.weight);
  return client.slot;
}

absl::Status Arbiter::Configure() {
  share::ShareConfig config;
  for (const auto& [fd, client] : clients_)
    if (!client.slot.empty()) config.slots.push_back(client.spec);
  for (const Left& left : left_) config.slots.push_back(left.spec);
  return share_->Configure(config);
}

void Arbiter::StopWhenUnused() {
  loop_.CancelTimer(linger_);
  const auto any = [this](const auto& is) {
    return std::any_of(clients_.begin(), clients_.end(),
                       [&](const auto& entry) { return is(entry.second); });
  };
  if (!left_.empty() || any([](const Client& c) { return !c.slot.empty(); })) {
    unused_since_.reset();
    return;
  }
  const MonotonicTime now = RealClock().Now();
  if (!unused_since_) unused_since_ = now;
  // Its request is on the way.
  if (any([](const Client& c) { return !c.asked; })) return;
  // One that could serve nobody stays for nobody: a driver may come.
  const MonotonicTime linger = served_ ? options_.linger : MonotonicTime(0);
  linger_ =
      loop_.RunAfter(std::max(*unused_since_ + linger - now, MonotonicTime(0)),
                     [this] { loop_.Stop(); });
}

}  // namespace rondo::run
