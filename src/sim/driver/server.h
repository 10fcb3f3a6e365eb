// SPDX-License-Identifier: Apache-2.0
//
// The simulated kernel driver of a node, running: the sockets that stand for
// its device files, the cards behind them, and two threads (one answers calls,
// one moves simulated time).
//
// Threads: Start and the destructor from one thread. Failure: Start gives the
// system's reason with the path. A caller that sends nonsense loses its
// connection, as a driver's caller gets EINVAL; nobody else notices.

#ifndef RONDO_SIM_DRIVER_SERVER_H_
#define RONDO_SIM_DRIVER_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "sim/driver/card.h"
#include "sim/driver/pacer.h"
#include "sim/driver/protocol.h"
#include "sim/driver/resource_manager.h"

namespace rondo::sim::driver {

struct ProcessUse {
  uint64_t bytes = 0;  // what RM charges: private and owned
  uint32_t sm_percent = 0;
  bool operator==(const ProcessUse&) const = default;
};

class Server {
 public:
  struct Options {
    std::string dir;  // where the sockets go
    std::vector<CardOptions> cards;
    std::vector<std::string> devices;  // "nvidia0": one a card
    std::string driver_version = "580.159.04";
    std::set<uint32_t> lacks;  // controls that this driver does not have
    // Told, on the answering thread, when who uses the card has changed.
    std::function<void(size_t card, const std::map<uint32_t, ProcessUse>&)>
        on_use;
    // ... and when their shares have been measured: once a second, the same or
    // not.
    std::function<void(size_t card)> on_measured;
  };
  static absl::StatusOr<std::unique_ptr<Server>> Start(Options options);
  ~Server();

  // What happened on a card since the last call. Any thread.
  CardCounts TakeCounts(size_t card);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct Connection {
    UniqueFd fd;
    uint64_t id = 0;
  };

  explicit Server(Options options);
  absl::Status Listen(const std::string& device);
  void Accept(int listener);
  void Receive(int fd);
  void Close(int fd);
  void Handle(Connection* connection, const Caller& caller, uint8_t* packet,
              size_t size, UniqueFd answer_to);
  void HandleEscape(const Caller& caller, const Request& request,
                    uint8_t* packet, UniqueFd answer_to);
  void PublishUse(bool with_load);
  void MeasureLoad();

  const Options options_;
  std::vector<std::unique_ptr<Card>> cards_;
  std::shared_ptr<SharedMemory> doorbell_;
  std::unique_ptr<Pacer> pacer_;
  std::unique_ptr<ResourceManager> manager_;  // guarded by pacer_->mutex()

  // Of the loop's thread.
  EventLoop loop_;
  std::vector<UniqueFd> listeners_;
  std::map<int, Connection> connections_;
  std::map<uint64_t, uint64_t> cookies_;  // of client ends -> connection id
  uint64_t last_connection_ = 0;
  std::vector<std::map<uint32_t, ProcessUse>> published_;
  std::vector<std::map<uint32_t, int64_t>> progress_;
  MonotonicTime measured_{};
  std::vector<uint64_t> seen_bytes_;  // used when last published
  std::vector<uint8_t> packet_;

  std::thread pacer_thread_, loop_thread_;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_SERVER_H_
