// SPDX-License-Identifier: Apache-2.0
//
// The agent's end of the slot sockets: a listener and a ledger a slot, a
// connection a process. It answers memory requests on the spot and passes on
// what concerns time. Protocol: wire/messages.h, docs/wire.md.
//
// Identity is the socket (one a slot, mounted into one container) plus
// SO_PEERCRED, and when that process started. Nothing that a peer says is
// believed further than it concerns the peer itself: sizes and counts are
// checked, and a driver client that another tenant reported first is refused.
//
// Threads: the loop's. Failure: a slot whose socket cannot be made is an error
// of AddSlot; a bad message is counted and skipped; too many of anything ends
// the connection that asked for it. Of what a slot's processes can bring about
// again and again the log has a line a minute.

#ifndef RONDO_SHARE_SLOT_SERVER_H_
#define RONDO_SHARE_SLOT_SERVER_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/event_loop.h"
#include "rm/gpu.h"
#include "share/channel_book.h"
#include "share/connection.h"
#include "share/ids.h"
#include "share/memory/ledger.h"
#include "share/memory/memory_trim.h"
#include "wire/memory.h"
#include "wire/messages.h"
#include "wire/state.h"

namespace rondo::share {

// What one attached process said of itself.
struct SlotProcess {
  std::string slot;
  int32_t pid = 0;       // SO_PEERCRED; 0 = outside of our pid namespace
  uint64_t started = 0;  // in clock ticks since boot; 0 = not known
  std::string driver_version;
  std::vector<rm::Channel> channels;
  uint64_t reasons = 0;  // why it is not governed, wire::Reason bits
  std::array<uint32_t, wire::kMaxCounters> counters{};
  bool foreign_client = false;  // it reported a client of another tenant
  bool slot_full = false;       // channels of it are not known: too many
};

struct SlotPolicy {
  wire::Memory memory = wire::Memory::kObserve;
  wire::OnAgentLoss on_agent_loss = wire::OnAgentLoss::kClosed;
  wire::Managed managed = wire::Managed::kCount;
  wire::Class cls = wire::Class::kStandard;
  uint64_t limit_bytes = 0;  // 0 = none

  bool operator==(const SlotPolicy&) const = default;
  MemoryPolicy ledger() const {
    MemoryPolicy policy;
    if (limit_bytes != 0) policy.limit_bytes = limit_bytes;
    policy.enforce = memory == wire::Memory::kEnforce;
    policy.count_managed = managed == wire::Managed::kCount;
    return policy;
  }
};

class SlotServer {
 public:
  // A bound on what one tenant can make the agent hold. With those of
  // ChannelBook and Ledger a slot takes 64 MB of memory at most, and that goes
  // back to the system soon after its processes went.
  static constexpr size_t kMaxConnections = 1024;  // a slot

  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void OnAttached(ProcessId process) = 0;
    virtual void OnChannels(ProcessId process) = 0;  // the list changed
    virtual void OnApplied(ProcessId process, const wire::Applied& applied) = 0;
    virtual void OnDetached(ProcessId process) = 0;  // it is still there to see
  };

  // observer must outlive the object. Until replay_window is over, a process
  // of a slot gets no new memory: those that held some under an earlier agent
  // tell first. Its request waits; the shim's patience is longer.
  SlotServer(EventLoop& loop, std::string run_dir, Observer* observer,
             MonotonicTime replay_window);
  ~SlotServer();

  // folder: name under run_dir; stays when the slot goes, since a container
  // may have it mounted.
  absl::Status AddSlot(const std::string& slot, const std::string& folder,
                       const SlotPolicy& policy);
  // Whether there is such a slot and its socket is where it was made: somebody
  // may have cleaned up.
  bool HasSocket(const std::string& slot) const;
  // Makes the socket of a slot, and its folder, again where it is gone. Its
  // connections and its ledger stay. On error all is as it was.
  absl::Status MendSlot(const std::string& slot);
  void RemoveSlot(const std::string& slot);
  void SetPolicy(const std::string& slot, const SlotPolicy& policy);

  void SendSlice(ProcessId process, uint32_t slice_us, uint32_t seq);

  const SlotProcess* process(ProcessId id) const;
  std::vector<ProcessId> processes(const std::string& slot) const;
  const Ledger* ledger(const std::string& slot) const;
  // Counters of connections that are gone plus those that are there.
  std::map<std::string, uint64_t> degraded(const std::string& slot) const;
  uint64_t refused_messages(const std::string& slot) const;

 private:
  struct Slot;
  struct Peer;

  void Accept(const std::string& slot);
  void OnMessage(Peer& peer, const void* data, size_t size);
  void OnHello(Peer& peer, const wire::Hello& hello);
  void OnReserve(Peer& peer, const wire::Reserve& reserve);
  void OnChannels(Peer& peer, const wire::Channels& channels);
  void Answer(Peer& peer, uint32_t seq, bool granted);
  void Drop(ProcessId id);
  void StopListening(Slot& slot);
  void EndReplay();
  wire::Policy WirePolicy(const Slot& slot) const;

  EventLoop& loop_;
  const std::string run_dir_;
  Observer* const observer_;
  bool replaying_ = true;
  EventLoop::TimerId replay_timer_ = 0;
  MemoryTrim trim_;
  SharedBlocks shared_;  // of all slots: they may lend each other memory
  std::map<std::string, std::unique_ptr<Slot>> slots_;
  std::map<ProcessId, std::unique_ptr<Peer>> peers_;
  ChannelBook book_;  // of peers_
  ProcessId last_process_ = 0;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_SLOT_SERVER_H_
