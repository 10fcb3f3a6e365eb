// SPDX-License-Identifier: Apache-2.0
//
// What suspending and resuming mean to the driver, asked of the driver itself:
// are they counted, does a new slice undo one, what does a stale handle in the
// list do. Two tenants run; one is the subject, the other shows that the GPU
// goes on. Says after each step whether the subject runs, and judges that by
// what share/time/suspensions.h takes the driver to do. Then: what such calls
// cost the requests of another program, when the subject has no work; and
// whether setting the slice that it has takes an idle context off the GPU,
// which stays there, in the log, until somebody else comes.
//
// Usage: suspend_on_gpu PATH-OF-RONDO-TENANT; run by test/device/run.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>

#include "activity/reader.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/file.h"
#include "base/status.h"
#include "rm/client.h"
#include "rm/gpu.h"
#include "share/shim_library.h"
#include "share/slot_server.h"

namespace rondo {
namespace {

using std::chrono::milliseconds;

constexpr double kRuns = 0.05;  // a share of the GPU that is no accident
constexpr rm::Channel kNoChannel{0xc1d0ffff, 0x5c00ffff};

class Card : public share::SlotServer::Observer {
 public:
  static absl::StatusOr<std::unique_ptr<Card>> Open(const std::string& dir) {
    RONDO_ASSIGN_OR_RETURN(auto client, rm::Client::Open(rm::RealSystem()));
    RONDO_ASSIGN_OR_RETURN(auto gpus, rm::ListGpus(*client));
    RONDO_RETURN_IF_ERROR(share::InstallShim(dir));
    std::unique_ptr<Card> card(new Card(dir, std::move(client), gpus.front()));
    for (int i = 0; i < 2; ++i)
      RONDO_RETURN_IF_ERROR(
          card->server_.AddSlot(card->Slot(i), card->Folder(i), {}));
    return card;
  }
  ~Card() override {
    while (!processes_.empty()) End(processes_.begin()->first);
  }
  void End(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    processes_.erase(pid);
  }

  // A program that always has work, on slot 0 or 1. Returns when it runs.
  pid_t Start(const std::string& tenant, int slot) {
    const pid_t pid = Spawn({tenant, "--kernel-us", "1000", "--seconds", "600"},
                            slot, "/dev/null");
    for (int i = 0; i < 100; ++i)
      if (Share(pid, milliseconds(100)) > 0.2) break;
    return pid;
  }
  // A program whose standard output goes to that file.
  pid_t Spawn(std::vector<std::string> words, int slot,
              const std::string& output) {
    const char* before = getenv("LD_PRELOAD");
    const std::string others = before == nullptr ? "" : before;
    setenv("LD_PRELOAD", (dir_ + "/" + share::kShimName + " " + others).c_str(),
           1);
    setenv("RONDO_SLOTS", Slot(slot).c_str(), 1);
    setenv("RONDO_RUN_DIR", dir_.c_str(), 1);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, output.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t pid = 0;
    const int error = posix_spawn(&pid, words[0].c_str(), &files, nullptr,
                                  argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    setenv("LD_PRELOAD", others.c_str(), 1);
    if (error != 0) return 0;
    processes_[pid] = {};
    return pid;
  }
  // Calls `act` after each pause until the program has ended.
  int WaitWhile(pid_t pid, milliseconds pause,
                const std::function<void()>& act) {
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      Run(pause);
      act();
    }
    processes_.erase(pid);
    return status;
  }

  absl::Status Switch(pid_t pid, bool suspend,
                      const std::vector<rm::Channel>& more = {}) {
    std::vector<rm::Channel> channels = more;
    if (const auto* process = server_.process(processes_[pid].id))
      channels.insert(channels.end(), process->channels.begin(),
                      process->channels.end());
    return rm::SwitchChannels(*client_, gpu_, suspend, channels);
  }
  void Slice(pid_t pid, uint32_t us) {
    applied_us_ = 0;
    server_.SendSlice(processes_[pid].id, us, ++seq_);
    for (int i = 0; i < 100 && applied_us_ == 0; ++i)
      loop_.RunOnce(milliseconds(10));
  }
  // Of the GPU's time in the next stretch of that length and of the call.
  double Share(
      pid_t pid, milliseconds length,
      const std::function<void()>& call = [] {}) {
    Run(milliseconds(20));
    const uint64_t before = Busy(pid);
    const MonotonicTime from = RealClock().Now();
    call();
    Run(length);
    return static_cast<double>(Busy(pid) - before) /
           std::chrono::nanoseconds(RealClock().Now() - from).count();
  }

 private:
  struct Process {
    share::ProcessId id = 0;
  };

  Card(std::string dir, std::unique_ptr<rm::Client> client, rm::Gpu gpu)
      : dir_(std::move(dir)),
        client_(std::move(client)),
        gpu_(std::move(gpu)),
        server_(loop_, dir_, this, milliseconds(0)),
        reader_(rm::RealSystem(), {.interval = milliseconds(5)},
                [this](const std::string&, const activity::Report& report) {
                  std::lock_guard lock(mutex_);
                  for (const auto& p : report.processes)
                    busy_ns_[p.pid] += p.busy_ns;
                }) {}

  std::string Slot(int i) const { return gpu_.uuid + "::" + std::to_string(i); }
  std::string Folder(int i) const {
    return gpu_.uuid + "-" + std::to_string(i);
  }
  uint64_t Busy(pid_t pid) {
    std::lock_guard lock(mutex_);
    return busy_ns_[pid];
  }
  void Run(milliseconds length) {
    loop_.RunAfter(length, [this] { loop_.Stop(); });
    loop_.Run();
  }

  void OnAttached(share::ProcessId id) override {
    processes_[server_.process(id)->pid].id = id;
  }
  void OnChannels(share::ProcessId) override {}
  void OnApplied(share::ProcessId, const wire::Applied& applied) override {
    applied_us_ = applied.us;
  }
  void OnDetached(share::ProcessId) override {}

  const std::string dir_;
  EventLoop loop_;
  std::unique_ptr<rm::Client> client_;
  rm::Gpu gpu_;
  std::map<pid_t, Process> processes_;
  uint32_t applied_us_ = 0, seq_ = 0;
  share::SlotServer server_;
  std::mutex mutex_;
  std::map<uint32_t, uint64_t> busy_ns_;  // guarded by mutex_
  activity::Reader reader_;
};

// The requests of a program beside another that has a context and no work,
// while that one's state is changed some 45 times a second.
absl::Status Disturbance(const std::string& tenant, const std::string& output,
                         Card* card) {
  const pid_t idle = card->Spawn(
      {tenant, "--kernels", "1", "--think-us", "600e6", "--seconds", "600"}, 0,
      "/dev/null");
  bool off = false;
  const struct {
    const char* what;
    std::function<void()> act;
  } kCases[] = {
      {"nothing is called", [] {}},
      {"an idle one is suspended, resumed",
       [&] { off = card->Switch(idle, !off).ok() && !off; }},
      {"an idle one's slice is set",
       [&] { card->Slice(idle, (off = !off) ? 2048 : 4096); }},
  };
  for (const auto& c : kCases) {
    const pid_t pid = card->Spawn({tenant, "--think-us", "10000", "--jitter-us",
                                   "2000", "--seconds", "5"},
                                  1, output);
    const int status = card->WaitWhile(pid, milliseconds(22), c.act);
    if (off) (void)card->Switch(idle, false);
    off = false;
    RONDO_ASSIGN_OR_RETURN(const std::string report, ReadFile(output));
    const size_t from = report.find("\"latency_us\"");
    if (status != 0 || from == std::string::npos)
      return absl::InternalError("a program failed: " + report);
    std::printf("while %-36s %s\n", c.what,
                report.substr(from, report.find('}') - from).c_str());
    std::fflush(stdout);
  }
  card->End(idle);
  return absl::OkStatus();
}

constexpr uint32_t kSliceUs = 20;  // of the holder of the turn

// An idle context: on the GPU by the log, before and after its slice is set
// anew. And what that takes from a program that works.
void Renewal(const std::string& tenant, Card* card) {
  const pid_t pauses = card->Spawn(
      {tenant, "--think-us", "1000000", "--seconds", "600"}, 0, "/dev/null");
  for (int i = 0; i < 100 && card->Share(pauses, milliseconds(100)) < 0.2;) ++i;
  card->Slice(pauses, kSliceUs);
  for (int i = 0; i < 6; ++i) {
    const double before = card->Share(pauses, milliseconds(60));
    if (i % 2 == 0) card->Slice(pauses, kSliceUs);
    std::printf("idle: on the GPU %.3f of the time, %s %.3f\n", before,
                i % 2 == 0 ? "after its slice was set again" : "a while later",
                card->Share(pauses, milliseconds(60)));
    card->Share(pauses, milliseconds(430));
  }
  card->End(pauses);
  const pid_t works = card->Start(tenant, 0);
  card->Slice(works, kSliceUs);
  const double whole = card->Share(works, milliseconds(1000));
  double sum = 0;
  constexpr int kTimes = 60;
  for (int i = 0; i < kTimes; ++i)
    sum += card->Share(works, milliseconds(25),
                       [&] { card->Slice(works, kSliceUs); });
  std::printf(
      "busy: set again within 25 ms: %.4f, so a setting takes %.0f us\n",
      sum / kTimes, (whole - sum / kTimes) * 25e3);
  card->End(works);
}

absl::Status Main(const std::string& tenant) {
  RONDO_ASSIGN_OR_RETURN(TempDir scratch, TempDir::Create("rondo-suspend"));
  RONDO_ASSIGN_OR_RETURN(auto card, Card::Open(scratch.path()));
  const pid_t neighbour = card->Start(tenant, 1);

  struct Step {
    const char* name;
    std::function<absl::Status(pid_t)> act;
    bool runs;  // the subject, afterwards
    bool refused = false;
  };
  const auto off = [&](pid_t pid) { return card->Switch(pid, true); };
  const auto on = [&](pid_t pid) { return card->Switch(pid, false); };
  const auto slice = [&](uint32_t us) {
    return [&card, us](pid_t pid) {
      card->Slice(pid, us);
      return absl::OkStatus();
    };
  };
  const auto stale = [&](bool suspend) {
    return [&card, suspend](pid_t pid) {
      return card->Switch(pid, suspend, {kNoChannel});
    };
  };
  const std::vector<std::vector<Step>> cases = {
      {{"suspend", off, false}, {"resume", on, true}},
      {{"suspend", off, false},
       {"suspend", off, false},
       {"resume", on, false},
       {"resume", on, true}},
      {{"resume", on, true}, {"suspend", off, false}, {"resume", on, true}},
      {{"suspend", off, false},
       {"slice 2048", slice(2048), false},
       {"slice 300", slice(300), false},
       {"resume", on, true}},
      {{"slice 300", slice(300), true},
       {"suspend", off, false},
       {"slice 4000", slice(4000), false},
       {"resume", on, true}},
      {{"suspend, with a stale handle", stale(true), true, true},
       {"resume, with a stale handle", stale(false), true, true},
       {"resume", on, true}},
  };
  int failed = 0;
  for (const auto& steps : cases) {
    const pid_t pid = card->Start(tenant, 0);
    std::printf("subject %.3f, neighbour %.3f\n",
                card->Share(pid, milliseconds(200)),
                card->Share(neighbour, milliseconds(200)));
    for (const Step& step : steps) {
      const absl::Status status = step.act(pid);
      const double own = card->Share(pid, milliseconds(200));
      const double other = card->Share(neighbour, milliseconds(200));
      const bool ok = status.ok() != step.refused && other > kRuns &&
                      (own > kRuns) == step.runs;
      failed += !ok;
      std::printf("   %-7s %-30s %-12s subject %.3f, neighbour %.3f\n",
                  ok ? "ok" : "FAILED", step.name,
                  status.ok() ? "OK" : std::string(status.message()).c_str(),
                  own, other);
      std::fflush(stdout);
    }
    card->End(pid);
  }
  card->End(neighbour);
  RONDO_RETURN_IF_ERROR(
      Disturbance(tenant, scratch.path() + "/report", card.get()));
  Renewal(tenant, card.get());
  if (failed > 0) return absl::InternalError("the driver is another one");
  return absl::OkStatus();
}

}  // namespace
}  // namespace rondo

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: suspend_on_gpu PATH-OF-RONDO-TENANT\n";
    return rondo::kExitUsage;
  }
  const absl::Status status = rondo::Main(argv[1]);
  if (!status.ok()) std::cerr << status.message() << "\n";
  return rondo::ExitCode(status);
}
