// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_command.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/status.h"
#include "base/usage.h"
#include "sim/driver/node_driver.h"
#include "sim/models.h"
#include "sim/node.h"
#include "sim/profile.h"
#include "sim/run_program.h"
#include "sim/state.h"

namespace rondo::sim {
namespace {

struct Options {
  std::string profile, state, gpu, fault, memory = "0";
  uint64_t xid = 0;
  SimProcess process;
  bool remove = false;
};

int Fail(const absl::Status& status) {
  std::cerr << "rondo sim: " << status.message() << "\n";
  return ExitCode(status);
}

std::string Absolute(const std::string& path) {
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(path, ignored);
  return ignored ? path : absolute.lexically_normal().string();
}

absl::StatusOr<Node> OpenNode(const std::string& state) {
  if (!state.empty()) return Node::Open(state);
  const char* const named = getenv(kStateVariable);
  if (named == nullptr || *named == '\0')
    return absl::InvalidArgumentError(absl::StrCat(
        "which node? Give --state DIR, or run inside `rondo sim` (",
        kStateVariable, " is not set)"));
  return Node::Open(named);
}

int List() {
  std::cout << absl::StrFormat("%-16s %-26s %10s %5s %6s %7s  %s\n", "MODEL",
                               "NAME", "MEMORY", "CC", "POWER", "NVLINKS",
                               "MIG PROFILES");
  for (const Model& m : Models()) {
    std::string mig;
    for (const MigProfileModel& p : m.mig)
      absl::StrAppend(&mig, mig.empty() ? "" : " ", p.name);
    std::cout << absl::StrFormat(
        "%-16s %-26s %6d MiB %5s %4d W %7d  %s\n", m.id, m.name, m.memory_mib,
        absl::StrCat(m.compute_major, ".", m.compute_minor), m.power_limit,
        m.nvlinks, mig.empty() ? "-" : mig);
  }
  return kExitOk;
}

int Fault(const Options& options) {
  absl::StatusOr<Node> node = OpenNode(options.state);
  if (!node.ok()) return Fail(node.status());
  const absl::StatusOr<Place> place = node->Find(options.gpu);
  if (!place.ok()) return Fail(place.status());
  absl::Status status;
  if (options.fault == "xid")
    status = options.xid == 0
                 ? absl::InvalidArgumentError("xid takes a number: xid 79")
                 : node->Xid(place->gpu, options.xid, place->mig_slot);
  else if (options.fault == "lost")
    status = node->Lose(place->gpu);
  else if (options.fault == "ecc")
    status = node->EccError(place->gpu);
  else
    status = node->Clear(place->gpu);
  return status.ok() ? kExitOk : Fail(status);
}

int Process(Options options) {
  absl::StatusOr<Node> node = OpenNode(options.state);
  if (!node.ok()) return Fail(node.status());
  const absl::StatusOr<Place> place = node->Find(options.gpu);
  if (!place.ok()) return Fail(place.status());
  const auto bytes = ParseBytes(options.memory);
  if (!bytes.ok()) return Fail(bytes.status());
  options.process.used_bytes = *bytes;
  options.process.mig_slot = place->mig_slot;
  const absl::Status status =
      options.remove ? node->RemoveProcess(place->gpu, options.process.pid)
                     : node->SetProcess(place->gpu, options.process);
  return status.ok() ? kExitOk : Fail(status);
}

// Points the loader and the libraries at the node, for the program to come.
void SetEnvironment(const Node& node) {
  const auto now = [](const char* name) {
    const char* const value = getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  for (const auto& [name, value] :
       driver::Environment(node, now("LD_LIBRARY_PATH"), now("LD_PRELOAD")))
    setenv(name.c_str(), value.c_str(), 1);
  // Rondo's agent takes the node's /proc, /sys and /dev for the machine's.
  setenv("RONDO_ROOT", node.dir().c_str(), 1);
  // Its programs share with each other, not with those of another machine.
  setenv("RONDO_RUN_FOLDER", (node.dir() + "/rondo-run").c_str(), 1);
}

// Runs the driver of a staged node until told to end.
int Drive(const Options& options) {
  sigset_t end;
  sigemptyset(&end);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&end, signal);
  sigprocmask(SIG_BLOCK, &end, nullptr);
  const absl::StatusOr<Node> node = OpenNode(options.state);
  if (!node.ok()) return Fail(node.status());
  const auto driver = driver::NodeDriver::Start(node->dir());
  if (!driver.ok()) return Fail(driver.status());
  std::cout << "The driver of " << node->dir() << " runs." << std::endl;
  int signal = 0;
  sigwait(&end, &signal);
  return kExitOk;
}

int Stage(const Options& options, char** command) {
  if (options.profile.empty())
    return Fail(
        absl::InvalidArgumentError("give --profile, such as 8xH100; `rondo sim "
                                   "list` shows the models"));
  if (options.state.empty() && command == nullptr)
    return Fail(absl::InvalidArgumentError(
        "give a program to run after --, or --state DIR to stage a node"));
  std::optional<TempDir> temporary;
  std::string dir = Absolute(options.state);
  if (options.state.empty()) {
    absl::StatusOr<TempDir> made = TempDir::Create("rondo-sim");
    if (!made.ok()) return Fail(made.status());
    temporary.emplace(*std::move(made));
    dir = temporary->path();
  }
  const absl::StatusOr<Node> node = Node::Create(options.profile, dir);
  if (!node.ok()) return Fail(node.status());
  if (command != nullptr) {
    const auto driver = driver::NodeDriver::Start(dir);
    if (!driver.ok()) return Fail(driver.status());
    SetEnvironment(*node);
    return RunProgram(command);
  }
  std::cout << absl::StrCat(
      "A node of ", node->gpu_count(), " GPUs is staged in ", dir, "\n",
      "  LD_LIBRARY_PATH=", dir, "/usr/lib64  for programs to run on it\n",
      "  rondo sim fault --state ", dir, " --gpu 0 xid 79  to break it\n");
  return kExitOk;
}

void AddOptions(CLI::App* app, Options* o) {
  app->add_option("--profile", o->profile,
                  "GPUs of the node: 8xH100, 2xA100+3g.40gb+3g.40gb,T4 or a "
                  "YAML file; `rondo sim list` shows the models; default: none")
      ->type_name("PROFILE");
  app->add_option(
         "--state", o->state,
         "keep the node in this folder, laid out as a driver root; default: a "
         "temporary one")
      ->type_name("DIR");
  app->require_subcommand(0, 1);
  app->add_subcommand("list", "print the GPU models");

  app->add_subcommand("driver", "run the kernel driver of a staged node")
      ->add_option("--state", o->state,
                   "the node; default: that of $RONDO_SIM_STATE")
      ->type_name("DIR");
  CLI::App* fault = app->add_subcommand("fault", "break or mend a GPU");
  CLI::App* process =
      app->add_subcommand("process", "put a process on a GPU, or remove it");
  for (CLI::App* sub : {fault, process}) {
    sub->add_option("--state", o->state,
                    "the node; default: that of $RONDO_SIM_STATE")
        ->type_name("DIR");
    sub->add_option("--gpu,--uuid", o->gpu,
                    "its index, or the UUID of a GPU or MIG device")
        ->required()
        ->type_name("GPU");
  }
  fault->add_option("fault", o->fault, "xid N, lost, ecc or clear")
      ->required()
      ->check(CLI::IsMember({"xid", "lost", "ecc", "clear"}));
  fault->add_option("number", o->xid, "the Xid")->check(CLI::Range(1, 1023));
  process->add_option("--pid", o->process.pid, "its pid on the host")
      ->required()
      ->check(CLI::Range(1, 1 << 22))
      ->type_name("PID");
  process->add_option("--memory", o->memory, "what it holds: 2GiB, 512MiB")
      ->capture_default_str()
      ->type_name("AMOUNT");
  process->add_option("--sm", o->process.sm_percent, "its share of time, %")
      ->check(CLI::Range(0, 100))
      ->capture_default_str()
      ->type_name("PERCENT");
  process
      ->add_option("--memory-utilization", o->process.memory_percent,
                   "its share of memory traffic, %")
      ->check(CLI::Range(0, 100))
      ->capture_default_str()
      ->type_name("PERCENT");
  process->add_flag("--graphics", o->process.graphics, "it draws");
  process->add_flag("--remove", o->remove, "take it off the GPU");
  // Last: subcommands made after it would inherit it.
  app->footer(
      "A program to run on the node follows after --:\n"
      "  rondo sim --profile 8xH100 -- CMD...\n"
      "Exit status: that of CMD, 128 + n after signal n, 127 where there is no "
      "such program;\nwithout one: 0 fine, 1 a failure that may pass (try "
      "again), 2 bad usage.");
  for (CLI::App* sub : app->get_subcommands(nullptr)) sub->footer(kExitHelp);
}

}  // namespace

int SimCommand(int argc, char** argv) {
  // What follows "--" belongs to the program, whatever it looks like.
  int own = 1;
  while (own < argc && strcmp(argv[own], "--") != 0) ++own;
  char** const command = own + 1 < argc ? argv + own + 1 : nullptr;
  Options options;
  CLI::App app("Run programs on a simulated GPU node.", "rondo sim");
  AddOptions(&app, &options);
  try {
    app.parse(own, argv);
  } catch (const CLI::ParseError& e) {
    if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr &&
        app.get_subcommands().empty() &&
        !app.remaining().front().starts_with('-'))
      return Fail(absl::InvalidArgumentError(
          absl::StrCat("what is '", app.remaining().front(),
                       "'? A program to run follows after --")));
    return ReportParse(app, e, std::cout, std::cerr);
  }
  if (app.got_subcommand("list")) return List();
  if (app.got_subcommand("driver")) return Drive(options);
  if (app.got_subcommand("fault")) return Fault(options);
  if (app.got_subcommand("process")) return Process(options);
  return Stage(options, command);
}

}  // namespace rondo::sim
