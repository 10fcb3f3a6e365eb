// SPDX-License-Identifier: Apache-2.0
#include "share/slot_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/status.h"
#include "share/process_start.h"
#include "wire/codec.h"

namespace rondo::share {
namespace {

constexpr MonotonicTime kAcceptPause = std::chrono::milliseconds(100);
constexpr int kAcceptsATurn = 16;

constexpr const char* kCounterNames[] = {
#define RONDO_X(name, text) text,
    RONDO_WIRE_COUNTERS(RONDO_X)
#undef RONDO_X
};

MemoryKind KindOf(wire::Kind kind) {
  return kind == wire::Kind::kManaged ? MemoryKind::kManaged
                                      : MemoryKind::kDevice;
}

}  // namespace

struct SlotServer::Slot {
  explicit Slot(SharedBlocks* shared) : ledger(MemoryPolicy{}, shared) {}

  std::string path;
  UniqueFd listener;
  SlotPolicy policy;
  Ledger ledger;
  // Its folder was there: an earlier agent may have served it.
  bool replaying = false;
  std::deque<std::pair<ProcessId, wire::Reserve>> deferred;
  std::array<uint64_t, wire::kMaxCounters> gone_counters{};
  uint64_t refused_messages = 0;
  size_t connections = 0;
  // Of what its processes can bring about again and again.
  LogLimit version_lines, client_lines, accept_lines;
  Connection::Worked worked = std::make_shared<MonotonicTime>(0);
  EventLoop::TimerId accept_timer = 0;
};

struct SlotServer::Peer {
  ProcessId id = 0;
  bool welcomed = false;
  SlotProcess info;
  std::unique_ptr<Connection> connection;
};

SlotServer::SlotServer(EventLoop& loop, std::string run_dir, Observer* observer,
                       MonotonicTime replay_window)
    : loop_(loop),
      run_dir_(std::move(run_dir)),
      observer_(observer),
      trim_(loop) {
  replay_timer_ = loop_.RunAfter(replay_window, [this] { EndReplay(); });
}

SlotServer::~SlotServer() {
  if (replay_timer_ != 0) loop_.CancelTimer(replay_timer_);
  peers_.clear();
  while (!slots_.empty()) RemoveSlot(slots_.begin()->first);
}

absl::Status SlotServer::AddSlot(const std::string& slot,
                                 const std::string& folder,
                                 const SlotPolicy& policy) {
  const std::string dir = absl::StrCat(run_dir_, "/", folder);
  auto entry = std::make_unique<Slot>(&shared_);
  entry->path = absl::StrCat(dir, "/", wire::kSocketName);
  struct stat before;
  entry->replaying = replaying_ && stat(dir.c_str(), &before) == 0;
  RONDO_RETURN_IF_ERROR(MakeDirectories(dir, 0755));
  RONDO_ASSIGN_OR_RETURN(entry->listener, ListenSeqpacket(entry->path));
  RONDO_RETURN_IF_ERROR(
      loop_.Watch(entry->listener.get(), [this, slot] { Accept(slot); }));
  entry->policy = policy;
  entry->ledger.SetPolicy(policy.ledger());
  slots_[slot] = std::move(entry);
  return absl::OkStatus();
}

bool SlotServer::HasSocket(const std::string& slot) const {
  const auto found = slots_.find(slot);
  return found != slots_.end() &&
         access(found->second->path.c_str(), F_OK) == 0;
}

absl::Status SlotServer::MendSlot(const std::string& name) {
  if (HasSocket(name)) return absl::OkStatus();
  Slot& slot = *slots_.at(name);
  RONDO_RETURN_IF_ERROR(
      MakeDirectories(slot.path.substr(0, slot.path.rfind('/')), 0755));
  absl::StatusOr<UniqueFd> listener = ListenSeqpacket(slot.path);
  absl::Status status = listener.status();
  if (status.ok())
    status = loop_.Watch(listener->get(), [this, name] { Accept(name); });
  if (!status.ok()) {
    unlink(slot.path.c_str());  // or it would look well
    return status;
  }
  StopListening(slot);
  slot.listener = *std::move(listener);
  LogWarning("slot ", name,
             ": its socket was gone and is made again; containers that were "
             "started before have the old folder and do not find it");
  return absl::OkStatus();
}

void SlotServer::StopListening(Slot& slot) {
  if (slot.accept_timer == 0) return loop_.Unwatch(slot.listener.get());
  loop_.CancelTimer(std::exchange(slot.accept_timer, 0));
}

void SlotServer::RemoveSlot(const std::string& slot) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return;
  for (ProcessId id : processes(slot)) Drop(id);
  StopListening(*found->second);
  unlink(found->second->path.c_str());
  slots_.erase(found);
}

void SlotServer::SetPolicy(const std::string& slot, const SlotPolicy& policy) {
  const auto found = slots_.find(slot);
  if (found == slots_.end() || found->second->policy == policy) return;
  found->second->policy = policy;
  found->second->ledger.SetPolicy(policy.ledger());
  auto change = wire::Make<wire::PolicyChange>(0);
  change.policy = WirePolicy(*found->second);
  for (ProcessId id : processes(slot)) {
    Peer& peer = *peers_.at(id);
    if (peer.welcomed) peer.connection->Send(change);
  }
}

wire::Policy SlotServer::WirePolicy(const Slot& slot) const {
  wire::Policy policy{};
  policy.limit = slot.policy.limit_bytes;
  policy.used = slot.ledger.charged_bytes();
  policy.memory = slot.policy.memory;
  policy.on_agent_loss = slot.policy.on_agent_loss;
  policy.managed = slot.policy.managed;
  policy.cls = slot.policy.cls;
  return policy;
}

void SlotServer::Accept(const std::string& name) {
  Slot& slot = *slots_.at(name);
  for (int i = 0; i < kAcceptsATurn; ++i) {
    UniqueFd fd(accept4(slot.listener.get(), nullptr, nullptr,
                        SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.ok()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      // Out of descriptors: the listener would stay readable. Look away.
      const absl::Status problem = ErrnoStatus("accept");
      if (const auto tail = slot.accept_lines.Admit(RealClock().Now()))
        LogWarning("slot ", name, ": ", problem.message(), *tail);
      loop_.Unwatch(slot.listener.get());
      slot.accept_timer = loop_.RunAfter(kAcceptPause, [this, name, &slot] {
        slot.accept_timer = 0;
        loop_.Watch(slot.listener.get(), [this, name] { Accept(name); })
            .IgnoreError();
      });
      return;
    }
    if (slot.connections >= kMaxConnections) {
      ++slot.refused_messages;
      continue;
    }
    ucred peer_cred{};
    socklen_t size = sizeof(peer_cred);
    getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer_cred, &size);
    auto peer = std::make_unique<Peer>();
    const ProcessId id = ++last_process_;
    peer->id = id;
    peer->info.slot = name;
    peer->info.pid = peer_cred.pid;
    peer->info.started = ProcessStart(peer_cred.pid);
    ++slot.connections;
    peer->connection = std::make_unique<Connection>(
        loop_, std::move(fd),
        Connection::Callbacks{
            .on_message = [this, p = peer.get()](
                              const void* data,
                              size_t n) { OnMessage(*p, data, n); },
            .on_closed = [this, id] { Drop(id); }},
        slot.worked);
    book_.Add(id, name, peer_cred.pid, peer->info.started);
    peers_[id] = std::move(peer);
  }
}

void SlotServer::Drop(ProcessId id) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Peer& peer = *found->second;
  if (peer.welcomed) observer_->OnDetached(id);
  Slot& slot = *slots_.at(peer.info.slot);
  const size_t held = slot.ledger.Close(id);
  --slot.connections;
  for (size_t i = 0; i < wire::kMaxCounters; ++i)
    slot.gone_counters[i] += peer.info.counters[i];
  std::erase_if(slot.deferred, [&](const auto& d) { return d.first == id; });
  book_.Remove(id);
  trim_.NoteFreed(held + peer.info.channels.size());
  peers_.erase(found);
}

void SlotServer::OnMessage(Peer& peer, const void* data, size_t size) {
  wire::Hello hello;
  wire::Reserve reserve;
  wire::Release release;
  wire::Shared shared;
  wire::Borrow borrow;
  wire::View view;
  wire::Channels channels;
  wire::Applied applied;
  wire::State state;
  Slot& slot = *slots_.at(peer.info.slot);
  if (!peer.welcomed) {
    if (wire::Read(data, size, &hello)) return OnHello(peer, hello);
    ++slot.refused_messages;
    return;
  }
  if (wire::Read(data, size, &reserve)) {
    OnReserve(peer, reserve);
  } else if (wire::Read(data, size, &release)) {
    slot.ledger.Release(peer.id, release.id);
  } else if (wire::Read(data, size, &shared)) {
    if (!slot.ledger.Share(peer.id, shared.id, shared.tag))
      ++slot.refused_messages;
  } else if (wire::Read(data, size, &borrow)) {
    if (!slot.ledger.Borrow(peer.id, borrow.id, borrow.bytes, borrow.tag))
      ++slot.refused_messages;
  } else if (wire::Read(data, size, &view)) {
    Answer(peer, view.header.seq, true);
  } else if (wire::Read(data, size, &channels)) {
    OnChannels(peer, channels);
  } else if (wire::Read(data, size, &applied)) {
    observer_->OnApplied(peer.id, applied);
  } else if (wire::Read(data, size, &state)) {
    peer.info.reasons = state.reasons;
    std::copy(std::begin(state.counters), std::end(state.counters),
              peer.info.counters.begin());
  } else {
    ++slot.refused_messages;  // malformed, or of a newer shim: skipped
  }
}

void SlotServer::OnHello(Peer& peer, const wire::Hello& hello) {
  if (hello.oldest > wire::kVersion || hello.version < wire::kOldestVersion) {
    Slot& slot = *slots_.at(peer.info.slot);
    if (const auto tail = slot.version_lines.Admit(RealClock().Now()))
      LogWarning("slot ", peer.info.slot, ": a shim speaks versions ",
                 hello.oldest, " to ", hello.version, ", the agent ",
                 wire::kOldestVersion, " to ", wire::kVersion,
                 ": its process stays ungoverned", *tail);
    ++slot.refused_messages;
    return peer.connection->Close();
  }
  peer.welcomed = true;
  peer.info.driver_version = hello.driver;
  auto welcome = wire::Make<wire::Welcome>(hello.header.seq);
  welcome.version = std::min<uint16_t>(wire::kVersion, hello.version);
  welcome.policy = WirePolicy(*slots_.at(peer.info.slot));
  peer.connection->Send(welcome);
  observer_->OnAttached(peer.id);
}

void SlotServer::OnReserve(Peer& peer, const wire::Reserve& reserve) {
  Slot& slot = *slots_.at(peer.info.slot);
  if (reserve.held != 0) {
    if (!slot.ledger.Replay(peer.id, KindOf(reserve.kind), reserve.id,
                            reserve.bytes))
      ++slot.refused_messages;
    return;
  }
  if (slot.replaying) {
    slot.deferred.emplace_back(peer.id, reserve);
    // One request at a time is all that a shim has under way.
    if (slot.deferred.size() > kMaxConnections) peer.connection->Close();
    return;
  }
  Answer(peer, reserve.header.seq,
         slot.ledger.Reserve(peer.id, KindOf(reserve.kind), reserve.id,
                             reserve.bytes));
}

void SlotServer::Answer(Peer& peer, uint32_t seq, bool granted) {
  const Slot& slot = *slots_.at(peer.info.slot);
  auto answer = wire::Make<wire::Answer>(seq);
  answer.verdict = granted ? wire::Verdict::kGranted : wire::Verdict::kDenied;
  answer.used = slot.ledger.charged_bytes();
  answer.limit = slot.policy.limit_bytes;
  peer.connection->Send(answer);
}

void SlotServer::EndReplay() {
  replay_timer_ = 0;
  replaying_ = false;
  for (auto& [name, slot] : slots_) {
    slot->replaying = false;
    for (const auto& [id, reserve] : std::exchange(slot->deferred, {})) {
      const auto peer = peers_.find(id);
      if (peer != peers_.end()) OnReserve(*peer->second, reserve);
    }
  }
}

void SlotServer::OnChannels(Peer& peer, const wire::Channels& message) {
  Slot& slot = *slots_.at(peer.info.slot);
  switch (book_.Note(peer.id, message, &peer.info.channels)) {
    case ChannelBook::Verdict::kNoted:
      return observer_->OnChannels(peer.id);
    case ChannelBook::Verdict::kForeign:
      ++slot.refused_messages;
      if (std::exchange(peer.info.foreign_client, true)) return;
      if (const auto tail = slot.client_lines.Admit(RealClock().Now()))
        LogWarning("slot ", peer.info.slot, ": process ", peer.info.pid,
                   " reports a driver client that another tenant has: refused",
                   *tail);
      return;
    case ChannelBook::Verdict::kSlotFull:
      ++slot.refused_messages;
      peer.info.slot_full = true;
      return observer_->OnChannels(peer.id);
    case ChannelBook::Verdict::kTooMany:
      ++slot.refused_messages;
      return peer.connection->Close();
  }
}

void SlotServer::SendSlice(ProcessId process, uint32_t slice_us, uint32_t seq) {
  const auto peer = peers_.find(process);
  if (peer == peers_.end()) return;
  auto slice = wire::Make<wire::Slice>(seq);
  slice.us = slice_us;
  peer->second->connection->Send(slice);
}

const SlotProcess* SlotServer::process(ProcessId id) const {
  const auto peer = peers_.find(id);
  return peer == peers_.end() ? nullptr : &peer->second->info;
}

std::vector<ProcessId> SlotServer::processes(const std::string& slot) const {
  std::vector<ProcessId> ids;
  for (const auto& [id, peer] : peers_)
    if (peer->info.slot == slot) ids.push_back(id);
  return ids;
}

const Ledger* SlotServer::ledger(const std::string& slot) const {
  const auto found = slots_.find(slot);
  return found == slots_.end() ? nullptr : &found->second->ledger;
}

std::map<std::string, uint64_t> SlotServer::degraded(
    const std::string& slot) const {
  std::map<std::string, uint64_t> counts;
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return counts;
  const std::vector<ProcessId> ids = processes(slot);
  for (size_t i = 0; i < std::size(kCounterNames); ++i) {
    uint64_t sum = found->second->gone_counters[i];
    for (ProcessId id : ids) sum += peers_.at(id)->info.counters[i];
    if (sum > 0) counts[kCounterNames[i]] = sum;
  }
  return counts;
}

uint64_t SlotServer::refused_messages(const std::string& slot) const {
  const auto found = slots_.find(slot);
  return found == slots_.end() ? 0 : found->second->refused_messages;
}

}  // namespace rondo::share
