// SPDX-License-Identifier: Apache-2.0
//
// An agent of one slot, as simple and as ill-behaved as a test wants it. Runs
// on a thread of its own; every method is safe from the test's thread.

#ifndef RONDO_TEST_SHIM_FAKE_AGENT_H_
#define RONDO_TEST_SHIM_FAKE_AGENT_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "wire/codec.h"

namespace rondo {

struct FakeAgentState {
  struct Block {
    uint64_t bytes;
    wire::Kind kind;
  };
  int connections = 0;                            // open now
  int hellos = 0;                                 // ever
  std::map<int, std::map<uint64_t, Block>> held;  // by connection
  std::map<uint64_t, uint32_t> shared;            // tags, by id of the block
  std::map<uint64_t, wire::Borrow> borrowed;      // by id
  std::set<std::pair<uint32_t, uint32_t>> channels;
  std::vector<wire::Applied> applied;  // answers
  std::vector<wire::Applied> unasked;  // told when a group was made
  wire::State health{};
  wire::Hello hello{};
  int asked = 0;

  uint64_t Used() const {
    uint64_t sum = 0;
    for (const auto& [connection, blocks] : held) {
      for (const auto& [id, block] : blocks) sum += block.bytes;
    }
    return sum;
  }
  uint32_t Counter(wire::Counter c) const {
    return health.counters[static_cast<size_t>(c)];
  }
  bool Has(wire::Reason r) const {
    return (health.reasons >> static_cast<unsigned>(r) & 1) != 0;
  }
};

class FakeAgent {
 public:
  struct Options {
    wire::Policy policy{.limit = 8ull << 30,
                        .memory = wire::Memory::kEnforce,
                        .on_agent_loss = wire::OnAgentLoss::kClosed};
    bool mute = false;     // accepts, reads, never answers
    bool garbage = false;  // sends nonsense before every answer
    uint64_t used_by_others = 0;
  };

  // Listens at `path` at once.
  FakeAgent(std::string path, Options options);
  ~FakeAgent();

  void SendSlice(uint32_t us);
  void SendPolicy(const wire::Policy& policy);

  // Waits until the state is as wanted; false after 5 s.
  bool Wait(const std::function<bool(const FakeAgentState&)>& wanted);
  FakeAgentState Get();

 private:
  void Run();
  void Accept();
  bool Serve(int fd);  // false: closed
  void Answer(int fd, uint32_t seq, wire::Verdict verdict);
  void Handle(int fd, const char* data, size_t size);

  const std::string path_;
  Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  FakeAgentState state_;
  std::set<int> fds_;
  int listener_ = -1, stop_ = -1;
  uint32_t seq_ = 100;
  std::thread thread_;
};

}  // namespace rondo

#endif  // RONDO_TEST_SHIM_FAKE_AGENT_H_
