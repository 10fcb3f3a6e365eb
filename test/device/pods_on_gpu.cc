// SPDX-License-Identifier: Apache-2.0
//
// What the key `rondo` and the annotations of pods give on a card, all the way
// that a pod goes: kubelet (a stand-in) asks the real agent, programs start
// with what it answers, annotations and the config are edited while they run,
// the agent is killed. A line each claim, with its numbers. Suspends and slices
// its own programs only; changes nothing on the card.
// Usage: pods_on_gpu PATH-OF-RONDO [CASE...]; run by test/device/run.

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "demo/supervise.h"
#include "ledger.h"
#include "pods.h"

namespace rondo::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr double kMiB = 1 << 20;
constexpr char kNoMemory[] = "CUDA_ERROR_OUT_OF_MEMORY";
constexpr milliseconds kPatience{5000};
constexpr std::chrono::seconds kInAll{150};
// In which the arbiter learns who wants what and puts it in force.
constexpr double kSettled = 1.5;
// Work without an end, which says often how far it is.
constexpr double kUs = 1000;
constexpr char kWork[] =
    " --kernel-us 1000 --kernels 1 --seconds 60 --progress 0.01";
// Measures, and so launches, while it has memory left: a kernel's first launch
// may need some.
constexpr char kLaunchFirst[] = " --turns 0";
// 20 kernels of 94 us, and pauses of 10 to 12 ms.
constexpr char kService[] =
    " --kernel-us 94 --kernels 20 --think-us 10000 --jitter-us 2000";

double Seconds(steady_clock::time_point since) {
  return std::chrono::duration<double>(steady_clock::now() - since).count();
}

std::string Mib(double bytes) {
  return absl::StrFormat("%.0f MiB", bytes / kMiB);
}

bool Refused(const Tenant& tenant) {
  return absl::StrContains(tenant->report(), kNoMemory);
}

// A GPU of that size, as the driver rounds it.
bool Sees(const Tenant& tenant, double bytes) {
  return std::abs(tenant->Number("total_bytes") - bytes) <= 2 * kMiB;
}

// Whether it became so within the second that docs/config.md names.
void SayInForce(Pods& pods, const std::string& claim,
                const std::function<bool(const json&)>& holds) {
  const auto took = pods.Until(claim, holds, kPatience);
  if (!took.ok())
    return pods.Say(false, claim, std::string(took.status().message()));
  pods.SayInTime(*took <= 1, claim,
                 absl::StrFormat("in force after %.0f ms", *took * 1e3));
}

absl::Status Memory(Pods& pods) {
  std::vector<Pod> placed;
  for (int i = 0; i < kReplicas; ++i) {
    RONDO_ASSIGN_OR_RETURN(Pod pod, pods.Place({}));
    placed.push_back(std::move(pod));
  }
  RONDO_ASSIGN_OR_RETURN(const json slot, pods.Slot(placed[0]));
  const double limit = slot["memoryLimitBytes"].get<double>();
  const double wanted = std::floor(limit / 2 / kMiB) * kMiB;
  std::vector<Tenant> tenants;
  std::vector<const Tenant*> all;
  std::vector<std::string> slots;
  // In the pod of the greedy one, and there before it.
  RONDO_ASSIGN_OR_RETURN(
      const Tenant second,
      pods.Run(&placed[0],
               absl::StrCat("--memory 256 --more 4096 --chunk 64 --kernel-us "
                            "1000 --warmup 0 --seconds 1",
                            kLaunchFirst)));
  for (const Pod& pod : placed) {
    const double bytes = tenants.empty() ? pods.card_bytes() : wanted;
    RONDO_ASSIGN_OR_RETURN(
        Tenant tenant,
        pods.Run(&pod, absl::StrFormat("--memory %.0f --chunk 64 --kernel-us "
                                       "1000 --warmup 0 --seconds 1%s",
                                       std::floor(bytes / kMiB),
                                       tenants.empty() ? kLaunchFirst : "")));
    tenants.push_back(std::move(tenant));
    slots.push_back(pod.grant.device_ids.at(0));
  }
  RONDO_RETURN_IF_ERROR(SayLedger(pods, "memory: the ledger is the driver's",
                                  slots, kReplicas + 1));
  for (const Tenant& tenant : tenants) all.push_back(&tenant);
  all.push_back(&second);
  RONDO_RETURN_IF_ERROR(RunAll(all));
  const Tenant& greedy = tenants[0];
  const double got = greedy->Number("memory_bytes");
  // Two contexts, what the second has, and a chunk.
  pods.Say(Refused(greedy) && got < limit && got > limit - 2048 * kMiB &&
               greedy->Number("requests") > 0,
           "memory: who wants the card is refused at its slot, and goes on",
           absl::StrFormat("got %s of a slot of %s, then %s; %.0f requests",
                           Mib(got), Mib(limit), kNoMemory,
                           greedy->Number("requests")));
  const double second_got = second->Number("memory_bytes");
  pods.Say(Refused(second) && second_got < 1024 * kMiB &&
               got + second_got < limit && second->Number("requests") > 0 &&
               Sees(second, limit),
           "memory: a second program of its pod has the same limit with it",
           absl::StrFormat("got %s, then %s; both %s; %.0f requests",
                           Mib(second_got), kNoMemory, Mib(got + second_got),
                           second->Number("requests")));
  bool served = true, sees = true;
  for (const Tenant& tenant : tenants) {
    sees &= Sees(tenant, limit);
    if (&tenant != &greedy)
      served &= !Refused(tenant) && tenant->Number("memory_bytes") == wanted &&
                tenant->Number("requests") > 0;
  }
  pods.Say(served, "memory: the others get theirs",
           absl::StrFormat("%s each, %.0f requests", Mib(wanted),
                           tenants[1]->Number("requests")));
  pods.Say(sees, "memory: each sees a GPU of its slot's size",
           absl::StrFormat("%.0f bytes, of %.0f", greedy->Number("total_bytes"),
                           pods.card_bytes()));
  return absl::OkStatus();
}

void SayShares(Pods& pods, const std::string& claim,
               const std::vector<double>& shares, double first) {
  const double part = shares[0] / (shares[0] + shares[1]);
  pods.SayInTime(
      std::abs(part - first) <= 0.02, claim,
      absl::StrFormat("%.3f and %.3f of the GPU's time, the first %.3f of "
                      "both (%.2f wanted)",
                      shares[0], shares[1], part, first));
}

absl::Status Weights(Pods& pods) {
  RONDO_ASSIGN_OR_RETURN(const Pod a, pods.Place({{"rondo/weight", "3"}}));
  RONDO_ASSIGN_OR_RETURN(const Pod b, pods.Place({{"rondo/weight", "1"}}));
  RONDO_ASSIGN_OR_RETURN(const Tenant first, pods.Run(&a, kWork));
  RONDO_ASSIGN_OR_RETURN(const Tenant second, pods.Run(&b, kWork));
  RONDO_RETURN_IF_ERROR(first->Begin());
  RONDO_RETURN_IF_ERROR(second->Begin());
  RONDO_RETURN_IF_ERROR(Pass(first, kSettled));
  RONDO_ASSIGN_OR_RETURN(std::vector<double> shares,
                         Shares({&first, &second}, 2, kUs));
  SayShares(pods, "weights: 3 and 1", shares, 0.75);
  pods.Annotate(a, {{"rondo/weight", "1"}});
  SayInForce(pods, "weights: edited to 1 and 1", [&](const json& node) {
    const json mine = Pods::Slot(node, a.grant.device_ids[0]);
    const json other = Pods::Slot(node, b.grant.device_ids[0]);
    if (!mine["sliceMicroseconds"].is_number() ||
        !other["sliceMicroseconds"].is_number())
      return false;
    const double ratio = mine["sliceMicroseconds"].get<double>() /
                         other["sliceMicroseconds"].get<double>();
    return mine["weight"] == 1 && ratio > 0.8 && ratio < 1.25;
  });
  RONDO_ASSIGN_OR_RETURN(shares, Shares({&first, &second}, 2, kUs));
  SayShares(pods, "weights: after the edit", shares, 0.5);
  return absl::OkStatus();
}

std::string ServiceText(const Tenant& tenant) {
  return absl::StrFormat("p50 %.0f, p90 %.0f, p99 %.0f, max %.0f us",
                         tenant->Number("p50"), tenant->Number("p90"),
                         tenant->Number("p99"), tenant->Number("max"));
}

absl::Status Latency(Pods& pods) {
  RONDO_ASSIGN_OR_RETURN(const Pod served,
                         pods.Place({{"rondo/class", "latency"}}));
  RONDO_ASSIGN_OR_RETURN(
      const Tenant alone,
      pods.Run(&served, absl::StrCat(kService, " --warmup 0.5 --seconds 4")));
  RONDO_RETURN_IF_ERROR(RunAll({&alone}));
  constexpr char kSpan[] = " --warmup 2 --seconds 6";
  RONDO_ASSIGN_OR_RETURN(const Tenant service,
                         pods.Run(&served, absl::StrCat(kService, kSpan)));
  std::vector<Tenant> batch;
  std::vector<const Tenant*> all = {&service};
  for (int i = 0; i < 3; ++i) {
    RONDO_ASSIGN_OR_RETURN(const Pod pod,
                           pods.Place({{"rondo/class", "batch"}}));
    RONDO_ASSIGN_OR_RETURN(
        Tenant tenant,
        pods.Run(&pod, absl::StrCat(" --kernel-us 1000 --kernels 4", kSpan)));
    batch.push_back(std::move(tenant));
  }
  for (const Tenant& tenant : batch) all.push_back(&tenant);
  RONDO_RETURN_IF_ERROR(RunAll(all));
  // On the simulated card a busy machine changes turns late, which costs a
  // request or two: there p90 has to do.
  const char* const which =
      getenv("RONDO_SIM_STATE") == nullptr ? "p99" : "p90";
  const double ratio = service->Number(which) / alone->Number(which);
  pods.SayInTime(
      ratio <= 1.15, "latency: a service beside three batch programs",
      absl::StrFormat("%s; alone %s: %s %.3f of alone (at most 1.15), "
                      "p99 %.3f",
                      ServiceText(service), ServiceText(alone), which, ratio,
                      service->Number("p99") / alone->Number("p99")));
  double sum = service->Number("share");
  bool progressed = true;
  std::vector<std::string> shares;
  for (const Tenant& tenant : batch) {
    const double share = tenant->Number("share");
    progressed &= share >= 0.15;
    sum += share;
    shares.push_back(absl::StrFormat("%.3f", share));
  }
  pods.SayInTime(
      progressed, "latency: all batch programs progressed",
      absl::StrFormat("shares %s (at least 0.15 each); all four %.3f",
                      absl::StrJoin(shares, ", "), sum));
  return absl::OkStatus();
}

absl::Status MemoryEdit(Pods& pods) {
  RONDO_ASSIGN_OR_RETURN(const Pod pod, pods.Place({{"rondo/memory", "4Gi"}}));
  const auto limit_is = [&](double mib) {
    return [&pod, mib](const json& node) {
      return Pods::Slot(node, pod.grant.device_ids[0])["memoryLimitBytes"] ==
             mib * kMiB;
    };
  };
  RONDO_RETURN_IF_ERROR(
      pods.Until("the annotation's limit", limit_is(4096), kPatience).status());
  RONDO_ASSIGN_OR_RETURN(
      const Tenant up,
      pods.Run(&pod, "--memory 1024 --more 5120 --chunk 64 --seconds 0"));
  RONDO_ASSIGN_OR_RETURN(
      const Tenant down,
      pods.Run(&pod, "--memory 512 --more 4096 --chunk 64 --seconds 0"));
  pods.Annotate(pod, {{"rondo/memory", "8Gi"}});
  SayInForce(pods, "edit: rondo/memory 4Gi to 8Gi", limit_is(8192));
  RONDO_RETURN_IF_ERROR(RunAll({&up}));
  pods.Say(up->Number("memory_bytes") == 6144 * kMiB,
           "edit: the running program has more",
           Mib(up->Number("memory_bytes")));
  // On a card (driver 580.159.04) a running program goes on seeing
  // the old one.
  RONDO_ASSIGN_OR_RETURN(const Tenant later,
                         pods.Run(&pod, "--memory 64 --seconds 0"));
  RONDO_RETURN_IF_ERROR(RunAll({&later}));
  pods.Say(Sees(later, 8192 * kMiB), "edit: one that starts now sees the size",
           Mib(later->Number("total_bytes")));
  pods.Annotate(pod, {{"rondo/memory", "3Gi"}});
  SayInForce(pods, "edit: rondo/memory 8Gi to 3Gi", limit_is(3072));
  RONDO_RETURN_IF_ERROR(RunAll({&down}));
  const double got = down->Number("memory_bytes");
  pods.Say(Refused(down) && got < 3072 * kMiB && got > 2048 * kMiB,
           "edit: the running program is refused at the new size",
           absl::StrCat(Mib(got), ", then ", kNoMemory));
  return absl::OkStatus();
}

absl::Status ConfigEdit(Pods& pods) {
  RONDO_ASSIGN_OR_RETURN(const Pod pod, pods.Place({}));
  RONDO_ASSIGN_OR_RETURN(const json slot, pods.Slot(pod));
  const double limit = slot["memoryLimitBytes"].get<double>();
  const double wanted = std::floor(limit / kMiB) + 4096;  // MiB
  const auto enforced = [&](bool on) {
    return [&pod, on](const json& node) {
      return Pods::Slot(node, pod.grant.device_ids[0])["memoryEnforced"] == on;
    };
  };
  RONDO_ASSIGN_OR_RETURN(
      const Tenant above,
      pods.Run(&pod, absl::StrFormat("--more %.0f --chunk 64 --kernel-us 1000 "
                                     "--seconds 60 --progress 0.01",
                                     wanted)));
  RONDO_ASSIGN_OR_RETURN(
      const Tenant late,
      pods.Run(&pod, absl::StrCat("--more 1024 --chunk 64 --kernel-us 1000 "
                                  "--seconds 0.3",
                                  kLaunchFirst)));
  RONDO_RETURN_IF_ERROR(pods.WriteConfig("observe"));
  SayInForce(pods, "config: enforce to observe", enforced(false));
  RONDO_RETURN_IF_ERROR(above->Begin());
  RONDO_RETURN_IF_ERROR(above->NextProgress().status());
  RONDO_ASSIGN_OR_RETURN(const json observed, pods.Slot(pod));
  pods.Say(observed["memoryUsedBytes"].get<double>() > wanted * kMiB,
           "config: under observe a running program passes its slot",
           absl::StrCat(Mib(observed["memoryUsedBytes"].get<double>()),
                        " counted, slot ", Mib(limit)));
  RONDO_RETURN_IF_ERROR(pods.WriteConfig("enforce"));
  SayInForce(pods, "config: observe to enforce", enforced(true));
  RONDO_RETURN_IF_ERROR(RunAll({&late}));
  pods.Say(Refused(late) && late->Number("memory_bytes") == 0 &&
               Sees(late, limit) && late->Number("requests") > 0,
           "config: enforced again, the pod gets nothing more and goes on",
           absl::StrFormat("got %s; sees %s; %.0f requests",
                           Mib(late->Number("memory_bytes")),
                           Mib(late->Number("total_bytes")),
                           late->Number("requests")));
  RONDO_ASSIGN_OR_RETURN(const std::vector<double> shares,
                         Shares({&above}, 0.3, 20 * kUs));
  pods.SayInTime(shares[0] > 0.9,
                 "config: who is above its slot keeps it, goes on",
                 absl::StrFormat("share %.3f", shares[0]));
  return absl::OkStatus();
}

// The bytes of each process, by pid, in those of the slots that a pod holds.
std::map<int, double> Held(const json& node,
                           const std::vector<std::string>& slots) {
  std::map<int, double> held;
  for (const std::string& id : slots) {
    const json slot = Pods::Slot(node, id);
    for (const json& process : slot["processes"])
      if (process["pid"].is_number() && !slot["pod"].is_null())
        held[process["pid"].get<int>()] = process["memoryBytes"].get<double>();
  }
  return held;
}

int SuspendedSlot(const json& node, const std::vector<std::string>& slots) {
  for (size_t i = 0; i < slots.size(); ++i)
    if (Pods::Slot(node, slots[i])["suspended"] == true)
      return static_cast<int>(i);
  return -1;
}

// A new agent beside programs that run: what they held before, in these slots.
absl::Status StartAgain(Pods& pods, const std::vector<std::string>& slots,
                        const json& before) {
  const auto begin = steady_clock::now();
  RONDO_RETURN_IF_ERROR(pods.StartAgent());
  const double registered = Seconds(begin);
  const auto held = Held(before, slots);
  const auto attached = pods.Until(
      "attached again",
      [&](const json& node) { return Held(node, slots) == held; }, kPatience);
  const double again = Seconds(begin);
  pods.Say(attached.ok() && held.size() == slots.size(),
           "new agent: all attached again, in their pods, with the same bytes",
           absl::StrFormat("registered after %.0f ms, attached after %.0f ms "
                           "%s",
                           registered * 1e3, again * 1e3,
                           attached.status().message()));
  RONDO_RETURN_IF_ERROR(SayLedger(pods, "new agent: the ledger is the driver's",
                                  slots, slots.size()));
  const auto turns = pods.Until(
      "turns", [&](const json& node) { return SuspendedSlot(node, slots) > 0; },
      kPatience);
  pods.Say(turns.ok(), "new agent: batch programs take turns again",
           absl::StrFormat("%.1f s after its start", Seconds(begin)));
  return absl::OkStatus();
}

absl::Status AgentKilled(Pods& pods) {
  std::vector<Tenant> tenants;
  std::vector<std::string> slots;
  for (const char* cls : {"latency", "batch", "batch"}) {
    RONDO_ASSIGN_OR_RETURN(const Pod pod, pods.Place({{"rondo/class", cls}}));
    const std::string options =
        cls == std::string("latency")
            ? absl::StrCat(kService, " --seconds 60 --progress 0.01")
            : kWork;
    RONDO_ASSIGN_OR_RETURN(
        Tenant tenant, pods.Run(&pod, absl::StrCat(options, " --memory 256")));
    tenants.push_back(std::move(tenant));
    slots.push_back(pod.grant.device_ids.at(0));
  }
  for (const Tenant& tenant : tenants) RONDO_RETURN_IF_ERROR(tenant->Begin());
  RONDO_RETURN_IF_ERROR(Pass(tenants[0], kSettled));
  int suspended = -1;
  json before;
  RONDO_RETURN_IF_ERROR(pods.Until(
                                "a batch program is suspended",
                                [&](const json& node) {
                                  before = node;
                                  suspended = SuspendedSlot(node, slots);
                                  return suspended > 0;
                                },
                                kPatience)
                            .status());
  const auto killed = steady_clock::now();
  pods.agent().Signal(SIGKILL);
  RONDO_RETURN_IF_ERROR(tenants[suspended]->NextProgress().status());
  const double first = Seconds(killed);
  pods.agent().Wait();
  // 100 ms are the shim's; a kernel beside two others, and telling, come after.
  pods.SayInTime(
      first <= 0.15, "agent killed: the suspended program runs",
      absl::StrFormat("a request done %.0f ms after the kill", first * 1e3));
  std::vector<const Tenant*> batch = {&tenants[1], &tenants[2]};
  RONDO_ASSIGN_OR_RETURN(const std::vector<double> shares,
                         Shares(batch, 1, kUs));
  RONDO_ASSIGN_OR_RETURN(const Progress p, tenants[0]->NextProgress());
  RONDO_RETURN_IF_ERROR(Pass(tenants[0], 0.5));
  RONDO_ASSIGN_OR_RETURN(const Progress q, tenants[0]->NextProgress());
  const double rate = (q.requests - p.requests) / (q.seconds - p.seconds);
  pods.SayInTime(shares[0] > 0.2 && shares[1] > 0.2 && rate > 20,
                 "agent killed: all run on",
                 absl::StrFormat("batch %.3f and %.3f of the GPU, service %.0f "
                                 "requests a second",
                                 shares[0], shares[1], rate));

  return StartAgain(pods, slots, before);
}

absl::Status TwoGpus(Pods& pods) {
  const std::string g0 = pods.gpus()[0], g1 = pods.gpus()[1];
  const auto on = [](const Pod& pod, const std::string& gpu,
                     const std::string& options) {
    return absl::StrCat("--device ", pod.Ordinal(gpu), " ", options);
  };
  {
    RONDO_ASSIGN_OR_RETURN(const Pod pod, pods.Place({}, {g0, g1}));
    RONDO_ASSIGN_OR_RETURN(
        const Tenant small,
        pods.Run(&pod, on(pod, g0, "--memory 1024 --chunk 64 --seconds 0")));
    RONDO_ASSIGN_OR_RETURN(
        const Tenant greedy,
        pods.Run(&pod,
                 on(pod, g1,
                    absl::StrFormat("--memory %.0f --chunk 64 --seconds 0.2%s",
                                    pods.card_bytes() / kMiB, kLaunchFirst))));
    RONDO_RETURN_IF_ERROR(
        SayLedger(pods, "two GPUs: each device's ledger is the driver's",
                  {pod.SlotOn(g0), pod.SlotOn(g1)}, 2));
    RONDO_ASSIGN_OR_RETURN(const json node, pods.Node());
    const json first = Pods::Slot(node, pod.SlotOn(g0));
    const json second = Pods::Slot(node, pod.SlotOn(g1));
    const double limit = second["memoryLimitBytes"].get<double>();
    const double used0 = first["memoryUsedBytes"].get<double>();
    const double used1 = second["memoryUsedBytes"].get<double>();
    RONDO_RETURN_IF_ERROR(RunAll({&small, &greedy}));
    const double got = greedy->Number("memory_bytes");
    pods.Say(Refused(greedy) && got < limit && got > limit - 1024 * kMiB &&
                 used1 > got && used1 <= limit && used0 < 2048 * kMiB &&
                 !Refused(small) && Sees(greedy, limit),
             "two GPUs: what is taken on the second counts there alone",
             absl::StrFormat("wanted the card, got %s; counted %s on the "
                             "second (slot %s), %s on the first",
                             Mib(got), Mib(used1), Mib(limit), Mib(used0)));
  }
  pods.EndPods();
  RONDO_ASSIGN_OR_RETURN(const Pod a,
                         pods.Place({{"rondo/weight", "3"}}, {g0, g1}));
  RONDO_ASSIGN_OR_RETURN(const Pod b,
                         pods.Place({{"rondo/weight", "1"}}, {g0, g1}));
  RONDO_ASSIGN_OR_RETURN(const Tenant first, pods.Run(&a, on(a, g1, kWork)));
  RONDO_ASSIGN_OR_RETURN(const Tenant second, pods.Run(&b, on(b, g1, kWork)));
  RONDO_ASSIGN_OR_RETURN(const Tenant other, pods.Run(&b, on(b, g0, kWork)));
  for (const Tenant* tenant : {&first, &second, &other})
    RONDO_RETURN_IF_ERROR((*tenant)->Begin());
  RONDO_RETURN_IF_ERROR(Pass(first, kSettled));
  RONDO_ASSIGN_OR_RETURN(const std::vector<double> shares,
                         Shares({&first, &second, &other}, 2, kUs));
  SayShares(pods, "two GPUs: weights 3 and 1 on the second", shares, 0.75);
  pods.SayInTime(shares[2] > 0.9,
                 "two GPUs: who is alone on the first has all of it",
                 absl::StrFormat("share %.3f", shares[2]));
  return absl::OkStatus();
}

// Of a case that a busy machine spoils (pods.h, SayInTime).
constexpr int kRuns = 3;

struct Case {
  const char* name;
  absl::Status (*run)(Pods&);
};
constexpr Case kCases[] = {
    {"memory", Memory},          {"weights", Weights},
    {"latency", Latency},        {"memory_edit", MemoryEdit},
    {"config_edit", ConfigEdit}, {"agent_killed", AgentKilled},
    {"two_gpus", TwoGpus}};

// False: it was skipped.
bool RunCase(Pods& pods, const Case& c) {
  if (c.run == TwoGpus && pods.gpus().size() < 2) {
    std::cout << "SKIPPED two_gpus: there is one GPU" << std::endl;
    return false;
  }
  for (int run = 1; run <= kRuns; ++run) {
    const auto begin = steady_clock::now();
    pods.BeginCase();
    const absl::Status status = c.run(pods);
    if (!status.ok()) pods.Say(false, c.name, std::string(status.message()));
    pods.EndPods();
    std::cout << absl::StreamFormat("        (%s: %.1f s)\n", c.name,
                                    Seconds(begin));
    if (!pods.unjudged()) return true;
  }
  std::cout << "SKIPPED " << c.name
            << ": the machine held the agent up in every run" << std::endl;
  return false;
}

int Run(const std::string& rondo, const std::vector<std::string>& wanted,
        const std::string& scratch) {
  Pods pods(rondo, scratch);
  const absl::Status started = pods.Start();
  if (!started.ok()) {
    std::cerr << "pods_on_gpu: " << started.message() << "\n";
    return ExitCode(started);
  }
  int skipped = 0;
  for (const Case& c : kCases) {
    if (!wanted.empty() &&
        std::find(wanted.begin(), wanted.end(), c.name) == wanted.end())
      continue;
    skipped += !RunCase(pods, c);
  }
  pods.agent().Signal(SIGTERM);
  const int code = pods.agent().Wait();
  pods.Say(code == 0, "the agent ends when told", absl::StrCat("exit ", code));
  std::cout << pods.ok() << " ok, " << pods.failed() << " failed, " << skipped
            << " skipped" << std::endl;
  return pods.failed() == 0 ? kExitOk : kExitFailure;
}

}  // namespace
}  // namespace rondo::device

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: pods_on_gpu PATH-OF-RONDO [CASE...]\n";
    return rondo::kExitUsage;
  }
  const auto scratch = rondo::TempDir::Create("rondo-pods");
  if (!scratch.ok()) {
    std::cerr << scratch.status().message() << "\n";
    return rondo::kExitFailure;
  }
  const std::vector<std::string> wanted(argv + 2, argv + argc);
  return rondo::demo::Supervise(
      [&] { return rondo::device::Run(argv[1], wanted, scratch->path()); },
      rondo::device::kInAll);
}
