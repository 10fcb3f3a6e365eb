// SPDX-License-Identifier: Apache-2.0

#include "config/compile.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::config {
namespace {

using testing::HasSubstr;

// One problem a line: "warning misplaced-key 4:3 message (hint)".
std::string Problems(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& p : problems) {
    absl::StrAppend(&out, SeverityName(p.severity), " ", CodeName(p.code), " ",
                    p.line, ":", p.column, " ", p.message,
                    p.hint.empty() ? "" : absl::StrCat(" (", p.hint, ")"),
                    "\n");
  }
  return out;
}

std::string Share(absl::string_view entry, absl::string_view more = "") {
  return absl::StrCat("sharing: {timeSlicing: {resources: [{", entry, "}]}}\n",
                      more);
}

struct Row {
  const char* name;
  std::string text;
  bool ok;
  const char* problem;  // part of Problems(); empty = none at all
};

class RulesTest : public testing::TestWithParam<Row> {};

TEST_P(RulesTest, GivesTheVerdictAndTheProblem) {
  const CompileResult result = Compile(GetParam().text);
  EXPECT_EQ(result.ok(), GetParam().ok) << Problems(result.problems);
  EXPECT_THAT(Problems(result.problems), HasSubstr(GetParam().problem));
  if (*GetParam().problem == '\0') {
    EXPECT_THAT(result.problems, testing::IsEmpty());
  }
}

std::string RowName(const testing::TestParamInfo<Row>& info) {
  return info.param.name;
}

// Numbers are issues of NVIDIA/k8s-device-plugin unless another is named.
INSTANTIATE_TEST_SUITE_P(
    PublicBugs, RulesTest,
    testing::Values(
        Row{"Issue1433RenameByDefaultUnderFlags",
            "flags:\n  renameByDefault: true\n" +
                Share("name: gpu, replicas: 2"),
            true,
            "warning misplaced-key 2:3 unknown key `renameByDefault` in "
            "`flags`: ignored (`renameByDefault` belongs in "
            "`sharing.timeSlicing`)"},
        Row{"Issue1433ManyReplicas", Share("name: gpu, replicas: 16384"), true,
            "warning replicas-high 1:59 16384 replicas of one device: pods "
            "that are busy at once get 1/16384 of its time each"},
        Row{"Kubernetes109304ListTooLong", Share("name: gpu, replicas: 70000"),
            false, "(at most 61844 fit)"},
        Row{"Issue353ShareOnlyGpu0",
            Share("name: gpu, devices: [0], replicas: 4"), true,
            "info nvidia-drops 1:58 `devices` takes effect here"},
        Row{"Issue404DifferentCounts",
            "sharing: {timeSlicing: {resources: [{name: gpu, devices: [0], "
            "replicas: 4}, {name: gpu, devices: [1], replicas: 2}]}}",
            true, "info nvidia-drops"},
        Row{"Issue628CustomName",
            Share("name: gpu, rename: nvidia.com/gpu-dev, replicas: 2"), true,
            "info nvidia-drops 1:57 `rename` takes effect here; NVIDIA's "
            "plugin drops it and advertises nvidia.com/gpu"},
        Row{"Issue990MapInsteadOfList",
            "sharing:\n  timeSlicing:\n    resources:\n      name: gpu\n"
            "      replicas: 4\n",
            false, "must be a list of entries"},
        Row{"Issue1548MpsOneReplica",
            "sharing: {mps: {resources: [{name: gpu, replicas: 1}]}}", false,
            "error mps-unsupported 1:16"},
        Row{"Issue1726Mps",
            "sharing: {mps: {resources: [{name: gpu, replicas: 4}]}}", false,
            "MPS sharing is not supported"},
        Row{"GpuOperator1310TimeSlicedMig",
            "flags: {migStrategy: mixed}\n" +
                Share("name: nvidia.com/mig-1g.5gb, replicas: 2"),
            true, "warning mig-sharing 2:24"},
        Row{"WholeGpusBesideMig",
            "flags: {migStrategy: mixed}\n" + Share("name: gpu, replicas: 2"),
            true, ""},
        Row{"AllGpusInMigMode",
            "flags: {migStrategy: single}\n" + Share("name: gpu, replicas: 2"),
            true, "warning mig-sharing 2:24"},
        Row{"AnotherVendor", Share("name: amd.com/gpu, replicas: 2"), false,
            "(only nvidia.com/gpu and nvidia.com/mig-<profile> can be "
            "shared)"}),
    RowName);

INSTANTIATE_TEST_SUITE_P(
    Keys, RulesTest,
    testing::Values(
        Row{"Plain", Share("name: nvidia.com/gpu, replicas: 2"), true, ""},
        Row{"TimeSlicingAtTheTop",
            "timeSlicing: {resources: [{name: gpu, replicas: 2}]}", true,
            "`timeSlicing` belongs in `sharing`"},
        Row{"ReplicasOutsideTheEntry",
            "sharing: {timeSlicing: {replicas: 2, resources: [{name: gpu, "
            "replicas: 2}]}}",
            true, "belongs in an entry of `sharing.timeSlicing.resources`"},
        Row{"PluginFlagUnderFlags", "flags: {passDeviceSpecs: true}", true,
            "`passDeviceSpecs` belongs in `flags.plugin`"},
        Row{"MisspeltElsewhere", "sharing: {migStratgy: mixed}", true,
            "did you mean `migStrategy`? It belongs in `flags`"},
        Row{"WrongCaseInside",
            "sharing: {timeSlicing: {RenameByDefault: true, resources: [{name: "
            "gpu, replicas: 2}]}}",
            true, "Upper and lower case differ here"},
        Row{"AManifest", "apiVersion: v1\nkind: ConfigMap", true,
            "The config is the text under a key of its `data`"},
        Row{"MigsForMig", "resources: {migs: []}", true, "did you mean `mig`?"},
        Row{"UnmatchedName", Share("name: nvidia.com/gpus, replicas: 2"), true,
            "(did you mean nvidia.com/gpu?)"},
        Row{"SharedNameListed",
            Share("name: nvidia.com/gpu.shared, replicas: 2"), true,
            "(give the name before renaming: nvidia.com/gpu)"},
        Row{"MigNameWithoutMixed",
            Share("name: nvidia.com/mig-1g.5gb, replicas: 2"), true,
            "only with `flags.migStrategy: mixed`"},
        Row{"SecondDocument", "version: v1\n---\nsharing: {}\n", true,
            "warning extra-document 2:1"},
        Row{"FirstLineIndented", " version: v1\nsharing: {}\n", true,
            "warning extra-document 2:1"},
        Row{"TwiceTheSame",
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}, "
            "{name: gpu, replicas: 2}]}}",
            true, "warning resource-twice"},
        Row{"TwoResourcesOneName",
            "flags: {migStrategy: mixed}\nsharing: {timeSlicing: {resources: "
            "[{name: gpu, rename: x, replicas: 2}, {name: mig-1g.5gb, rename: "
            "x, replicas: 2}]}}",
            false, "error rename-clash"},
        Row{"UnquotedMigIndex", Share("name: gpu, devices: [0:1], replicas: 2"),
            true, "info yaml-trap"}),
    RowName);

INSTANTIATE_TEST_SUITE_P(
    RondoKey, RulesTest,
    testing::Values(
        Row{"Empty", "rondo:\n", true, ""},
        Row{"All",
            Share("name: gpu, replicas: 2") +
                "\nrondo: {memory: enforce, slotMemory: 16Gi, managed: "
                "ignore, period: 40ms, turn: 500ms, injection: file, "
                "onAgentLoss: open}",
            true, ""},
        Row{"UnknownKeyIsAnError", "rondo: {memroy: enforce}", false,
            "error rondo-key 1:9 unknown key `memroy` in `rondo` (did you mean "
            "`memory`?)"},
        Row{"WrongCaseIsUnknown", "Rondo: {}", true, "did you mean `rondo`?"},
        Row{"MemoryWord", "rondo: {memory: enforced}", false,
            "did you mean enforce?"},
        Row{"MemoryOn", "rondo: {memory: on}", false,
            "is not a known word: on"},
        Row{"ManagedWord", "rondo: {managed: off}", false,
            "`rondo.managed` is not a known word: off (Values: count, ignore)"},
        Row{"SlotMemoryWithoutUnit", "rondo: {slotMemory: 16}", false,
            "write a quantity such as 16Gi, or auto"},
        Row{"SlotMemoryJunk", "rondo: {slotMemory: 16GB}", false,
            "has the unknown unit \"GB\""},
        Row{"PeriodWithoutUnit", "rondo: {period: 40}", false,
            "must be a duration with its unit, not the number 40"},
        Row{"PeriodJunk", "rondo: {period: 40 ms}", false,
            "\"40 ms\" has a space in it"},
        Row{"PeriodRange", "rondo: {period: 1h}", false,
            "is above 10s (write a duration from 1ms to 10s"},
        Row{"InjectionByCdi",
            Share("name: gpu, replicas: 2") + "\nrondo: {injection: cdi}", true,
            ""},
        Row{"StandardTakesTurns",
            Share("name: gpu, replicas: 2") +
                "\nrondo: {standardTakesTurns: true}",
            true,
            "warning rondo-no-effect 3:29 `rondo.standardTakesTurns` has no "
            "effect any more (take it out; standard tenants take turns where "
            "it helps)"},
        Row{"StandardTakesTurnsFalse",
            Share("name: gpu, replicas: 2") +
                "\nrondo: {standardTakesTurns: no}",
            true, "warning rondo-no-effect 3:29 `rondo.standardTakesTurns`"},
        Row{"StandardTakesTurnsIsNotSuggested",
            "rondo: {standardTakesTurn: true}", false,
            "(known keys: memory, slotMemory, managed, period, turn, "
            "injection, onAgentLoss)"},
        Row{"NothingIsShared", "rondo: {memory: enforce}", true,
            "warning rondo-no-effect 1:8 `rondo` has no effect: nothing is "
            "shared"},
        Row{"OffAndNothingShared", "rondo: {memory: off}", true, ""},
        Row{"SlotMemoryOnlyObserved",
            Share("name: gpu, replicas: 2") + "\nrondo: {slotMemory: 16Gi}",
            true,
            "warning rondo-no-effect 3:21 `rondo.slotMemory` limits nothing: "
            "`memory` is observe (add `memory: enforce`)"},
        Row{"SlotMemoryOfNoAccount",
            Share("name: gpu, replicas: 2") +
                "\nrondo: {memory: off, slotMemory: 16Gi}",
            true, "limits nothing: `memory` is off"},
        Row{"WeightOfAPod", "rondo: {memory: enforce, weight: 3}", false,
            "(it is set for each pod, by the annotation `rondo/weight`)"},
        Row{"ASizeAsMemory", "rondo: {memory: 8Gi}", false,
            "(a size is `slotMemory`; `memory` is enforce, observe or off)"},
        Row{"StandardTakesTurnsWord", "rondo: {standardTakesTurns: \"yes\"}",
            false, "`rondo.standardTakesTurns` must be true or false"},
        Row{"StandardTakesTurnsNumber", "rondo: {standardTakesTurns: 1}", false,
            "`rondo.standardTakesTurns` must be true or false"},
        Row{"InjectionWord", "rondo: {injection: cdl}", false,
            "did you mean cdi? Values: env, file, cdi, none"},
        Row{"EnforceWithoutInjection",
            "rondo: {memory: enforce, injection: none}", false,
            "nothing in the pod would keep the limit"},
        Row{"NotAMap", "rondo: enforce", false,
            "`rondo` must be a map (write for example `rondo: {memory: "
            "enforce}`)"}),
    RowName);

TEST(CompileTest, AllProblemsAreReportedInOrder) {
  const CompileResult result = Compile(
      "version: v2\n"
      "sharng: {}\n"
      "sharing:\n"
      "  timeSlicing:\n"
      "    resources:\n"
      "    - replicas: 1\n"
      "    - name: GPU\n");
  EXPECT_EQ(
      Problems(result.problems),
      "error version 1:10 unknown version: v2 (write `version: v1`)\n"
      "warning unknown-key 2:1 unknown key `sharng` in the top level: "
      "ignored (did you mean `sharing`?)\n"
      "error missing 6:7 no resource name specified (add `name: "
      "nvidia.com/gpu`)\n"
      "error replicas 6:17 number of replicas must be >= 2 (to leave a "
      "resource unshared, remove its entry)\n"
      "error missing 7:7 no replicas specified (add `replicas: 4`)\n"
      "error resource-name 7:13 incorrect format for resource name "
      "'nvidia.com/GPU': [a lowercase RFC 1123 subdomain must consist of "
      "lower case alphanumeric characters, '-' or '.', and must start and "
      "end with an alphanumeric character]\n");
  EXPECT_THAT(std::string(ToStatus(result.problems).message()),
              HasSubstr("; and 4 more"));
}

TEST(CompileTest, ProblemsCarryNoControlCharacters) {
  EXPECT_EQ(Compile("version: |\n  v1\n").problems.at(0).message,
            "unknown version: v1\\n");
  EXPECT_EQ(Compile("\"\\e[31m\\x7f\": 1\n").problems.at(0).message,
            "unknown key `\\x1b[31m\\x7f` in the top level: ignored");
}

TEST(CompileTest, AbsentRondoKeyMeansNvidiasBehaviour) {
  const RondoOptions absent = Compile("version: v1").plan->rondo;
  EXPECT_FALSE(absent.present);
  EXPECT_EQ(absent.memory, MemoryMode::kObserve);
  EXPECT_EQ(absent.injection, Injection::kNone);
  const RondoOptions present = Compile("rondo: {memory: enforce}").plan->rondo;
  EXPECT_TRUE(present.present);
  EXPECT_EQ(present.injection, Injection::kEnv);
  const RondoOptions off = Compile("rondo: {memory: off}").plan->rondo;
  EXPECT_EQ(off.memory, MemoryMode::kOff);
  EXPECT_EQ(off.injection, Injection::kNone);
}

TEST(CompileTest, RondoValuesReachThePlan) {
  const RondoOptions options =
      Compile(
          "rondo: {slotMemory: 1.5Gi, period: 20ms, turn: 1s, injection: cdi}")
          .plan->rondo;
  EXPECT_EQ(options.injection, Injection::kCdi);
  EXPECT_EQ(options.slot_memory_bytes, uint64_t{1536} << 20);
  EXPECT_EQ(options.period, std::chrono::milliseconds(20));
  EXPECT_EQ(options.turn, std::chrono::seconds(1));
}

TEST(CompileTest, AKeyThatWentIsOneWarningAndAnErrorIfStrict) {
  for (const char* value : {"true", "false", "yes"}) {
    CompileResult result = Compile(
        Share("name: gpu, replicas: 2",
              absl::StrCat("rondo:\n  standardTakesTurns: ", value, "\n")));
    EXPECT_TRUE(result.ok());
    const std::string told =
        " rondo-no-effect 3:23 `rondo.standardTakesTurns` has no effect any "
        "more (take it out; standard tenants take turns where it helps)\n";
    EXPECT_EQ(Problems(result.problems), "warning" + told);
    MakeStrict(result.problems);
    EXPECT_EQ(Problems(result.problems), "error" + told);
  }
}

TEST(CompileTest, SharingReachesThePlan) {
  const CompileResult result = Compile(
      "sharing:\n  timeSlicing:\n    renameByDefault: true\n"
      "    failRequestsGreaterThanOne: yes\n    resources:\n"
      "    - {name: gpu, devices: [0, \"GPU-4cf8db2d-06c0-7d70-1a51-"
      "e59b25b2c16c\"], replicas: 4}\n"
      "    - {name: gpu, devices: 1, rename: gpu.big, replicas: 2}\n");
  ASSERT_TRUE(result.ok());
  const Sharing& sharing = result.plan->sharing;
  EXPECT_TRUE(sharing.fail_requests_greater_than_one);
  ASSERT_EQ(sharing.resources.size(), 2u);
  EXPECT_EQ(sharing.resources[0].rename, "nvidia.com/gpu.shared");
  ASSERT_EQ(sharing.resources[0].devices.list.size(), 2u);
  EXPECT_EQ(sharing.resources[0].devices.list[1].kind, DeviceRef::Kind::kUuid);
  EXPECT_EQ(sharing.resources[1].rename, "nvidia.com/gpu.big");
  EXPECT_EQ(sharing.resources[1].devices.count, 1);
  EXPECT_EQ(sharing.resources[1].line, 7);
}

TEST(CompileTest, HashNamesTheText) {
  EXPECT_EQ(Compile("version: v1").plan->hash,
            Compile("version: v1").plan->hash);
  EXPECT_NE(Compile("version: v1").plan->hash,
            Compile("version: v1 ").plan->hash);
  EXPECT_EQ(Compile("").plan->hash.size(), 16u);
}

TEST(CompileTest, TheListBoundIsThatOfTheEncodedMessage) {
  // Encoded by hand: 2 + (2 + 42 + digits) + (2 + 9) + 6 bytes a device.
  const int most = MaxReplicasThatFit(1);
  int64_t bytes = 0;
  for (int n = 0; n <= most; ++n) {
    if (n == most) {
      EXPECT_LE(bytes, 4 << 20);
    }
    bytes += 63 + std::to_string(n).size();
  }
  EXPECT_GT(bytes, 4 << 20);
  EXPECT_NEAR(MaxReplicasThatFit(8), most / 8, 200);
  Plan plan = *Compile(Share("name: gpu, replicas: 10000")).plan;
  EXPECT_TRUE(CheckDeviceListSize(plan, {{"nvidia.com/gpu", 6}}).empty());
  EXPECT_EQ(CheckDeviceListSize(plan, {{"nvidia.com/gpu", 8}}).size(), 1u);
  EXPECT_TRUE(
      CheckDeviceListSize(plan, {{"nvidia.com/mig-1g.5gb", 8}}).empty());
}

}  // namespace
}  // namespace rondo::config
