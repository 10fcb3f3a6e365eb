// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/prefer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "deviceplugin/test_node.h"

namespace rondo::deviceplugin {
namespace {

using config::AllocationPolicy;

// "A0-2 B5" -> A::0, A::1, A::2, B::5.
std::vector<std::string> Ids(const std::string& text) {
  std::vector<std::string> ids;
  for (const absl::string_view part :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::vector<std::string> range = absl::StrSplit(part.substr(1), '-');
    const int first = range[0][0] - '0';
    const int last = range.back()[0] - '0';
    for (int n = first; n <= last; ++n)
      ids.push_back(ReplicaId(part.substr(0, 1), n));
  }
  return ids;
}

struct Case {
  std::string name;
  AllocationPolicy policy;
  std::vector<NamedDevice> devices;
  std::string available;
  std::string required;
  int size;
  std::string expected;
};

class PreferTable : public ::testing::TestWithParam<Case> {};

TEST_P(PreferTable, Answers) {
  const Case& row = GetParam();
  const auto view = TestView(row.devices);
  std::vector<std::string> available = Ids(row.available);
  const std::vector<std::string> required = Ids(row.required);
  std::mt19937 random(1);
  // The order of the request does not matter (D15).
  for (int round = 0; round < 5; ++round) {
    PreferRequest request;
    request.available.assign(available.begin(), available.end());
    request.required.assign(required.begin(), required.end());
    request.size = row.size;
    const auto answer = Prefer(*view, row.policy, {}, request);
    EXPECT_EQ(answer.ok() ? absl::StrJoin(*answer, " ")
                          : absl::StrCat("error ", answer.status().message()),
              row.expected);
    std::shuffle(available.begin(), available.end(), random);
  }
}

constexpr auto kDistributed = AllocationPolicy::kDistributed;
constexpr auto kPacked = AllocationPolicy::kPacked;
constexpr auto kSpread = AllocationPolicy::kSpread;

INSTANTIATE_TEST_SUITE_P(
    Peer, PreferTable,
    ::testing::Values(
        Case{"distributed_3_and_5_of_8_free",
             kDistributed,
             {{"A", 8}, {"B", 8}},
             "A0-2 B0-4",
             "",
             2,
             "B::0 B::1"},
        Case{"packed_3_and_5_of_8_free",
             kPacked,
             {{"A", 8}, {"B", 8}},
             "A0-2 B0-4",
             "",
             2,
             "A::0 A::1"},
        Case{"required_counts_as_in_use",
             kDistributed,
             {{"A", 4}, {"B", 4}},
             "A0-3 B0-3",
             "A0",
             2,
             "A::0 B::0"},
        Case{"counts_not_fractions",
             kDistributed,
             {{"A", 2}, {"B", 8}},
             "A0-1 B0-7",
             "",
             4,
             "A::0 B::0 A::1 B::1"},
        Case{"size_0", kDistributed, {{"A", 4}}, "A0-3", "", 0, ""},
        Case{"required_already_enough",
             kDistributed,
             {{"A", 4}},
             "A0-3",
             "A1-2",
             2,
             "A::1 A::2"},
        Case{"too_few",
             kDistributed,
             {{"A", 4}},
             "A0-1",
             "",
             3,
             "error not enough available devices to satisfy allocation"},
        Case{"too_few_known",
             kPacked,
             {{"A", 2}},
             "A0-1 Z0",
             "",
             3,
             "error not enough available devices to satisfy allocation"},
        Case{"unknown_ids_dropped",
             kDistributed,
             {{"A", 2}},
             "Z0-5 A1",
             "",
             1,
             "A::1"},
        Case{"packed_goes_on_filling",
             kPacked,
             {{"A", 4}, {"B", 4}},
             "A0-3 B2-3",
             "",
             3,
             "B::2 B::3 A::0"}),
    [](const auto& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Spread, PreferTable,
    ::testing::Values(Case{"issue_491_distributed_stacks_a_container",
                           kDistributed,
                           {{"A", 8}, {"B", 8}},
                           "A0-2 B0-7",
                           "",
                           2,
                           "B::0 B::1"},
                      Case{"pr_1936_spread_takes_distinct_gpus",
                           kSpread,
                           {{"A", 8}, {"B", 8}},
                           "A0-2 B0-7",
                           "",
                           2,
                           "B::0 A::0"},
                      Case{"operator_386_required_counts",
                           kSpread,
                           {{"A", 8}, {"B", 8}},
                           "A0-2 B0-7",
                           "B0",
                           2,
                           "B::0 A::0"},
                      Case{"more_than_gpus",
                           kSpread,
                           {{"A", 8}, {"B", 8}},
                           "A0-2 B0-7",
                           "",
                           4,
                           "B::0 A::0 B::1 A::1"},
                      Case{"one_gpu_left",
                           kSpread,
                           {{"A", 8}, {"B", 8}},
                           "A0-2",
                           "",
                           2,
                           "A::0 A::1"}),
    [](const auto& row) { return row.param.name; });

TEST(Prefer, EightGpusOfAThousandReplicas) {
  // The peer's vector: half of all free at random, 8 wanted; distributed goes
  // to the few GPUs with the least in use, spread to eight of them.
  std::vector<NamedDevice> devices;
  for (int i = 0; i < 8; ++i) devices.push_back({GpuUuid(i), 1000});
  const auto view = TestView(devices);
  std::vector<std::string> ids;
  for (const NamedDevice& device : devices) {
    for (int n = 0; n < 1000; ++n) ids.push_back(ReplicaId(device.uuid, n));
  }
  std::mt19937 random(3);
  std::shuffle(ids.begin(), ids.end(), random);
  PreferRequest request;
  request.available.assign(ids.begin(), ids.begin() + 5000);
  request.size = 8;
  const auto distinct = [&](AllocationPolicy policy) {
    const auto answer = Prefer(*view, policy, {}, request);
    EXPECT_TRUE(answer.ok());
    std::set<std::string> gpus;
    for (const std::string& id : *answer)
      gpus.insert(std::string(ParseDeviceId(id)->uuid));
    EXPECT_EQ(answer->size(), 8u);
    return gpus.size();
  };
  EXPECT_LE(distinct(kDistributed), 3u);
  EXPECT_EQ(distinct(kSpread), 8u);
}

std::string Aligned(const std::vector<std::string>& available,
                    const std::vector<std::string>& required, int size) {
  const auto view = TestView({{"A"}, {"B"}, {"C"}, {"D"}});
  const LinkScores links = {{{"A", "C"}, 400}, {{"B", "D"}, 400},
                            {{"A", "B"}, 20},  {{"C", "D"}, 20},
                            {{"A", "D"}, 10},  {{"B", "C"}, 10}};
  PreferRequest request;
  request.available.assign(available.begin(), available.end());
  request.required.assign(required.begin(), required.end());
  request.size = size;
  const auto answer = Prefer(*view, kPacked, links, request);
  return answer.ok() ? absl::StrJoin(*answer, " ")
                     : std::string(answer.status().message());
}

TEST(Prefer, WholeGpusFollowTheLinksWhateverThePolicy) {
  EXPECT_EQ(Aligned({"D", "C", "B", "A"}, {}, 2), "A C");
  EXPECT_EQ(Aligned({"A", "B", "C", "D"}, {"B"}, 2), "B D");
  EXPECT_EQ(Aligned({"B", "C", "D"}, {}, 2), "B D");
}

TEST(Prefer, WholeGpusEmptyWhereNothingCanBeAdvised) {
  EXPECT_EQ(Aligned({"A", "B"}, {}, 3), "");
  EXPECT_EQ(Aligned({"A", "B"}, {}, 0), "");
  EXPECT_EQ(Aligned({"A", "B"}, {"A", "B"}, 1), "");
  EXPECT_EQ(Aligned({"A", "B"}, {"C"}, 1), "");
}

TEST(Prefer, Issue231ALostGpuIsDroppedNotAnError) {
  EXPECT_EQ(Aligned({"A", "LOST", "C"}, {}, 2), "A C");
}

TEST(Prefer, MigDevicesGoOneByOne) {
  Resource resource;
  resource.name = "nvidia.com/gpu";
  for (const char* uuid : {"MIG-1", "MIG-2", "MIG-3"}) {
    Device device;
    device.uuid = uuid;
    device.mig = true;
    resource.devices.push_back(device);
  }
  const View view = MakeView(resource, {true, true, true}, {});
  PreferRequest request;
  request.available = {"MIG-3", "MIG-2"};
  request.size = 1;
  const auto answer = Prefer(view, kDistributed, {}, request);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(absl::StrJoin(*answer, " "), "MIG-2");
}

}  // namespace
}  // namespace rondo::deviceplugin
