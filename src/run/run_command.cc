// SPDX-License-Identifier: Apache-2.0
#include "run/run_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/own_options.h"
#include "agent/tenant_text.h"
#include "base/ending.h"
#include "base/event_loop.h"
#include "base/file.h"
#include "base/in_flight.h"
#include "base/log.h"
#include "base/status.h"
#include "base/usage.h"
#include "config/amount.h"
#include "rm/noted_system.h"
#include "rm/system.h"
#include "run/arbiter.h"
#include "run/folder.h"
#include "run/lease.h"
#include "run/log_file.h"
#include "run/program.h"
#include "run/status.h"
#include "share/shim_library.h"

namespace rondo::run {
namespace {

constexpr int kNoSuchProgram = 127, kNoProgram = 126;  // as shells say it
constexpr double kLeastLimit = share::kLeastWeight;
constexpr size_t kDescriptors = 65536;
constexpr int64_t kMostLogBytes = 4 << 20;
constexpr MonotonicTime kLogLook = std::chrono::seconds(10);

struct RunOptions {
  // As written: what is wrong with one is told as for annotations of pods.
  std::string memory, cls = "standard", weight = "1", limit = "1", gpu = "0";
  std::string run_dir;
  bool has_memory = false, has_gpu = false, status = false;
  std::vector<std::string> words;
};

// OK where there is no mistake.
absl::Status Told(const char* option, const std::string& text,
                  const std::optional<config::Mistake>& mistake) {
  if (!mistake) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": ", config::Describe(text, *mistake)));
}

std::optional<config::Mistake> ReadGpu(const std::string& text, int& gpu) {
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  if (digits && absl::SimpleAtoi(text, &gpu)) return std::nullopt;
  return config::Mistake{
      text.empty() ? "is empty" : "is not the index of a GPU",
      "write one index as `nvidia-smi` counts, such as 0"};
}

// Of a list as CUDA_VISIBLE_DEVICES is one. The program would not see more than
// one GPU, and no other than it was told to use.
absl::StatusOr<std::string> OneDevice(absl::string_view list) {
  const absl::string_view device = absl::StripAsciiWhitespace(list);
  constexpr char kDigits[] = "0123456789", kUuid[] = "0123456789abcdefABCDEF-";
  const absl::string_view rest = absl::StripPrefix(device, "GPU-");
  const char* wrong = nullptr;
  if (device.empty())
    wrong = " leaves no GPU";
  else if (absl::StrContains(device, ','))
    wrong = " names several devices, and rondo run shares one GPU";
  else if (absl::StartsWith(device, "MIG-"))
    wrong = " names a MIG device, and rondo run shares whole GPUs";
  else if (device.size() > 64 ||
           (rest.size() == device.size()
                ? rest.find_first_not_of(kDigits)
                : rest.find_first_not_of(kUuid)) != rest.npos)
    wrong = " names no GPU";
  if (wrong == nullptr) return std::string(device);
  return absl::InvalidArgumentError(
      absl::StrCat("CUDA_VISIBLE_DEVICES=", config::Shown(list), wrong,
                   "; give --gpu, the index that nvidia-smi shows"));
}

absl::StatusOr<Request> MakeRequest(const RunOptions& options) {
  Request request;
  if (options.has_memory) {
    uint64_t bytes = 0;
    RONDO_RETURN_IF_ERROR(Told("--memory", options.memory,
                               config::ReadSlotMemory(options.memory, bytes)));
    request.memory_bytes = bytes;
  }
  share::TenantSpec& tenant = request.tenant;
  RONDO_RETURN_IF_ERROR(
      Told("--class", options.cls, agent::ReadClass(options.cls, tenant.cls)));
  RONDO_RETURN_IF_ERROR(Told("--weight", options.weight,
                             agent::ReadWeight(options.weight, tenant.weight)));
  const config::NumberRange limit{
      .least = kLeastLimit,
      .most = 1,
      .above_least = false,
      .is_part = true,
      .accepted = absl::StrCat("write a part of the GPU's time from ",
                               kLeastLimit, " to 1, such as 0.5")};
  RONDO_RETURN_IF_ERROR(
      Told("--limit", options.limit,
           config::ReadNumber(options.limit, limit, tenant.limit)));
  RONDO_RETURN_IF_ERROR(
      Told("--gpu", options.gpu, ReadGpu(options.gpu, request.gpu)));
  if (const char* visible = getenv("CUDA_VISIBLE_DEVICES");
      visible != nullptr && !options.has_gpu) {
    RONDO_ASSIGN_OR_RETURN(request.visible, OneDevice(visible));
    const char* order = getenv("CUDA_DEVICE_ORDER");
    request.bus_order = order != nullptr && strcmp(order, "PCI_BUS_ID") == 0;
  }
  return request;
}

// After the arbiter died, the folder may have gone as well; what the program
// starts from now on needs its library there.
absl::StatusOr<Lease> TakeAgain(const std::string& run_dir,
                                const std::string& executable,
                                const Request& request, int rounds) {
  RONDO_RETURN_IF_ERROR(RunFolder(run_dir).status());
  RONDO_ASSIGN_OR_RETURN(Lease lease,
                         Lease::Take(run_dir, executable, request, rounds));
  RONDO_RETURN_IF_ERROR(
      share::InstallShim(run_dir + "/" + lease.slot().folder()));
  return lease;
}

absl::StatusOr<int> Run(const RunOptions& options) {
  RONDO_ASSIGN_OR_RETURN(Request request, MakeRequest(options));
  RONDO_ASSIGN_OR_RETURN(const std::string run_dir, RunFolder(options.run_dir));
  const std::string self = "/proc/self/exe";
  std::optional<Lease> lease;
  RONDO_ASSIGN_OR_RETURN(lease, Lease::Take(run_dir, self, request));
  request.slot = lease->slot().id();
  // Each slot has its own file: what a process has mapped tells its slot.
  const std::string library = run_dir + "/" + lease->slot().folder();
  RONDO_RETURN_IF_ERROR(share::InstallShim(library));
  // Up to here a signal ends us, also where the arbiter does not answer.
  const sigset_t program_mask = BlockSignals();
  Program program{
      .words = options.words,
      .environment = {"LD_PRELOAD=" + Preload(library + "/" + share::kShimName,
                                              getenv("LD_PRELOAD")),
                      "RONDO_SLOTS=" + request.slot, "RONDO_RUN_DIR=" + run_dir,
                      "CUDA_VISIBLE_DEVICES=" + lease->slot().gpu_uuid}};
  bool told = false;  // to say it again after another arbiter helps nobody
  bool alone = false;
  const auto code = RunProgram(program, program_mask, lease->fd(), [&] {
    const absl::StatusOr<std::string> reason =
        lease ? lease->Notice() : absl::UnavailableError("none");
    if (reason.ok() && !std::exchange(told, true))
      std::cerr << "rondo run: " << options.words[0]
                << " is not governed, so its share may not hold: " << *reason
                << "\n";
    if (!absl::IsUnavailable(reason.status())) return lease->fd();
    // The arbiter died. The program runs on, freed by its shim; another arbiter
    // takes it back under the same slot.
    const int rounds = lease ? Lease::kQuickRounds : 1;
    lease.reset();
    if (auto again = TakeAgain(run_dir, self, request, rounds); again.ok()) {
      lease = *std::move(again);
      alone = false;
      return lease->fd();
    } else if (!std::exchange(alone, true)) {
      LogError("rondo run: no arbiter: ", again.status().message(),
               "; trying on");
    }
    return -1;
  });
  const bool no_program = absl::IsPermissionDenied(code.status());
  if (!no_program && !absl::IsNotFound(code.status())) return code;
  std::cerr << "rondo run: " << code.status().message() << "\n";
  return no_program ? kNoProgram : kNoSuchProgram;
}

absl::StatusOr<int> PrintStatus(const RunOptions& options) {
  RONDO_ASSIGN_OR_RETURN(const std::string run_dir, RunFolder(options.run_dir));
  auto text = AskStatus(run_dir);
  if (absl::IsNotFound(text.status()) || absl::IsUnavailable(text.status()))
    return absl::UnavailableError("nothing runs in " + run_dir);
  RONDO_RETURN_IF_ERROR(text.status());
  std::cout << *text << "\n";
  return kExitOk;
}

// How many of the words are ours: up to "--" or to the first that is no option,
// which is CMD. An option that we do not know is ours too, and refused: it may
// be a limit that is misspelt.
int OwnWords(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--" || word.size() < 2 || word[0] != '-') return i;
    const CLI::Option* option =
        app.get_option_no_throw(word.substr(0, word.find('=')));
    const bool takes_next = option != nullptr &&
                            option->get_expected_max() > 0 &&
                            word.find('=') == std::string::npos;
    if (takes_next && i + 1 < argc && strcmp(argv[i + 1], "--") != 0) ++i;
  }
  return argc;
}

// For as long as the loop runs.
void BoundLog(EventLoop& loop) {
  CutLog(STDERR_FILENO, kArbiterLog, kMostLogBytes);
  loop.RunAfter(kLogLook, [&loop] { BoundLog(loop); });
}

}  // namespace

int RunCommand(int argc, char** argv) {
  RunOptions options;
  CLI::App app("Run a program with a share of a GPU.", "rondo run");
  app.add_option("--memory", options.memory,
                 "GPU memory that it may use: 8Gi, 512Mi; at least 64Mi; "
                 "default: no limit")
      ->type_name("QUANTITY");
  app.add_option("--weight", options.weight,
                 "its share of GPU time relative to others that want it: 0.001 "
                 "to 1000")
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_option("--class", options.cls,
                 "latency (goes first), standard, or batch (takes turns while "
                 "a latency program is there)")
      ->type_name("CLASS")
      ->capture_default_str();
  app.add_option("--limit", options.limit,
                 "most of the GPU's time that it may have, even alone: 0.001 "
                 "to 1; 0.5 is half")
      ->type_name("PART")
      ->capture_default_str();
  app.add_option("--gpu", options.gpu,
                 "index of the GPU, as nvidia-smi counts; default: the one "
                 "that CUDA_VISIBLE_DEVICES names, else 0")
      ->type_name("INDEX");
  app.add_option("--run-dir", options.run_dir,
                 "where runs that share a GPU meet; default: one folder a user")
      ->type_name("DIR")
      ->envname("RONDO_RUN_FOLDER");
  app.add_flag("--status", options.status,
               "print what runs there now, as JSON; no CMD");
  app.add_option("CMD", options.words, "the program and its arguments")
      ->type_name("");
  app.footer(
      "Exit status: that of CMD, 128 + n after signal n, 127 where there is no "
      "such program, 126 where it cannot be executed;\nwhere it could not be "
      "started so: 1 a failure that may "
      "pass (no driver, nothing runs), 2 bad usage.");
  app.positionals_at_end();
  const int own = OwnWords(app, argc, argv);
  try {
    app.parse(agent::ReversedWords(own, argv));
  } catch (const CLI::ParseError& error) {
    return ReportParse(app, error, std::cout, std::cerr);
  }
  for (int i = own; i < argc; ++i)
    if (i > own || std::string(argv[i]) != "--")
      options.words.emplace_back(argv[i]);
  // Empty, as of a variable that is not set, is no amount.
  options.has_memory = app.count("--memory") > 0;
  options.has_gpu = app.count("--gpu") > 0;
  if (options.words.empty() != options.status) {
    std::cerr << UsageError("rondo run", options.status
                                             ? "--status takes no CMD"
                                             : "CMD is required")
              << "\n";
    return kExitUsage;
  }
  const absl::StatusOr<int> code =
      options.status ? PrintStatus(options) : Run(options);
  if (code.ok()) return *code;
  std::cerr << "rondo run: " << code.status().message() << "\n";
  return ExitCode(code.status());
}

int RunArbiterCommand(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: rondo run-arbiter DIR (started by rondo run)\n";
    return kExitUsage;
  }
  // Leave the terminal and its signals: later runs of other sessions depend on
  // this process.
  if (const pid_t pid = fork(); pid != 0) _exit(pid < 0 ? kExitFailure : 0);
  setsid();
  // What the run of another session left open would stay open: whoever reads
  // from a pipe of it would wait for this process.
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
  // Nor is this process bound as the first run is: it serves all of them in
  // time, and goes on where its log may not grow.
  signal(SIGXFSZ, SIG_IGN);
  if (getpriority(PRIO_PROCESS, 0) > 0) setpriority(PRIO_PROCESS, 0, 0);
  // rondo run, which started this, holds them back for itself.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (const char* name = getenv("RONDO_LOG_LEVEL"))
    SetLogLevel(ParseLogLevel(name).value_or(LogLevel::kInfo));
  // Several for each program. The first run's limit is for its own.
  AllowDescriptors(kDescriptors);
  CallsInFlight calls;
  rm::NotedSystem system(rm::RealSystem(), calls);
  EventLoop loop;
  // Before the arbiter, whose end may wait for the driver.
  Ending ending(calls);
  // The folder may be removed, as that of a user who logs out is, and another
  // take its name, with an arbiter and sockets of its own. (And it would keep
  // the first run's folder in use.)
  if (chdir(argv[1]) != 0) {
    LogError(ErrnoStatus(absl::StrCat("arbiter: cd ", argv[1])).message());
    return kExitFailure;
  }
  auto arbiter = Arbiter::Create(
      loop, system, {.run_dir = argv[1], .home = ".", .calls = &calls});
  if (arbiter.ok()) BoundLog(loop);
  // Standard output is the starter's pipe: closing it says that the socket is
  // there (or that another's is).
  close(STDOUT_FILENO);
  open("/dev/null", O_WRONLY | O_CLOEXEC);
  // Several programs started at once: each may start one, one serves.
  if (absl::IsAlreadyExists(arbiter.status())) {
    LogDebug("arbiter: ", arbiter.status().message());
    return kExitOk;
  }
  if (!arbiter.ok()) {
    LogError("arbiter: ", arbiter.status().message());
    return ExitCode(arbiter.status());
  }
  loop.Run();
  ending.Begin(kExitOk);
  return kExitOk;
}

}  // namespace rondo::run
