// SPDX-License-Identifier: Apache-2.0
#include "sim/profile.h"

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ShortProfile, CountsModelsAndMigDevices) {
  const auto profile =
      ParseShortProfile("2xA100, T4,H200+MIG,A100-40gb+2x1g.5gb+1g.5gb+me");
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->gpus.size(), 5);
  EXPECT_STREQ(profile->gpus[0].model->id, "A100-SXM4-80GB");
  EXPECT_FALSE(profile->gpus[0].mig_enabled);
  EXPECT_STREQ(profile->gpus[2].model->id, "T4");
  EXPECT_EQ(profile->gpus[3].mig, std::vector<std::string>(7, "1g.18gb"));
  EXPECT_THAT(profile->gpus[4].mig,
              ElementsAre("1g.5gb", "1g.5gb", "1g.5gb+me"));
}

TEST(ShortProfile, EveryModelIsFoundByItsNamesInAnyCase) {
  for (const char* text : {"H100", "h100-sxm5-80gb", "rtx-4090", "RTX4090",
                           "v100", "Tesla-T4", "A10", "H200-141GB"})
    EXPECT_TRUE(ParseShortProfile(text).ok()) << text;
}

TEST(ShortProfile, RefusesWithTheEntryAndTheRemedy) {
  const struct {
    const char* text;
    const char* error;
  } kRows[] = {
      {"B200", "'B200': no GPU model 'B200'; known are A100-SXM4-80GB"},
      {"0xT4", "'0xT4': a node has 1 to 16 GPUs"},
      {"99xT4", "a node has 1 to 16 GPUs"},
      {"9xT4,8xH100", "a node has at most 16 GPUs"},
      {"", "no GPU model ''"},
      {"T4+MIG", "T4 has no MIG; drop 'MIG'"},
      {"A100+1g.5gb", "no MIG profile '1g.5gb'; it has 1g.10gb, 1g.10gb+me"},
  };
  for (const auto& row : kRows) {
    const absl::Status status = ParseShortProfile(row.text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << row.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.error));
  }
}

TEST(YamlProfile, ReadsAll) {
  const auto profile = ParseYamlProfile(R"(
driver: 535.183.01
cuda: 12020
seed: node-b
links: [{between: [0, 1], count: 4}]
gpus:
- model: A100
  count: 2
  mig: [3g.40gb, 4x1g.10gb]
  numa: 1
- model: T4
  name: Tesla T4 (lab)
  uuid: GPU-00000000-0000-4000-8000-000000000001
  minor: 7
  memory: 8GiB
  ecc: false
  xidEvents: false
  processes:
  - {pid: 4242, memory: 2GiB, sm: 40, memoryUtilization: 10}
)",
                                        "node.yaml");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->driver_version, "535.183.01");
  EXPECT_EQ(profile->cuda_version, 12020);
  EXPECT_EQ(profile->seed, "node-b");
  ASSERT_EQ(profile->links.size(), 1);
  EXPECT_EQ(profile->links[0].count, 4);
  ASSERT_EQ(profile->gpus.size(), 3);
  EXPECT_EQ(profile->gpus[1].mig.size(), 5);
  EXPECT_EQ(profile->gpus[1].numa, 1);
  const GpuSpec& t4 = profile->gpus[2];
  EXPECT_EQ(t4.name, "Tesla T4 (lab)");
  EXPECT_EQ(t4.minor, 7);
  EXPECT_EQ(t4.memory_mib, 8192);
  EXPECT_EQ(t4.ecc, false);
  ASSERT_EQ(t4.processes.size(), 1);
  EXPECT_EQ(t4.processes[0].used_bytes, 2ull << 30);
  EXPECT_EQ(t4.processes[0].sm_percent, 40);
}

TEST(YamlProfile, ErrorsNameThePlace) {
  const struct {
    const char* yaml;
    const char* error;
  } kRows[] = {
      {"gpus:\n- modle: T4\n", "n.yaml:2:3: unknown key 'modle'; known here"},
      {"gpus:\n- model: T5\n", "n.yaml:2:3: no GPU model 'T5'"},
      {"gpus:\n- model: T4\n  count: many\n", "n.yaml:3:10: expected a number"},
      {"gpus:\n- model: T4\n  count: 17\n", "a node has 1 to 16 GPUs"},
      {"gpus:\n- model: T4\n  mig: [1g.5gb]\n", "n.yaml:3:8: T4 has no MIG"},
      {"gpus:\n- model: T4\n  memory: lots\n", "'lots' is not an amount"},
      {"gpus:\n- {model: T4, count: 2, minor: 1}\n", "count must be 1"},
      {"gpus:\n- {model: T4, processes: [{memory: 1Gi}]}\n", "needs a pid"},
      {"nvlink: some\n", "n.yaml:1:9: nvlink is model or none"},
      {"gpus: [{model: T4}]\nlinks: [{between: [0, 1], count: 1}]\n",
       "n.yaml:2:8: a link joins two of GPUs 0 to 0"},
      {"gpus: [\n", "n.yaml:"},
      {"just words\n", "n.yaml:1:1: expected a map with the key gpus"},
  };
  for (const auto& row : kRows) {
    const absl::Status status = ParseYamlProfile(row.yaml, "n.yaml").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << row.yaml << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.error));
  }
}

TEST(LoadProfile, APathIsAFile) {
  EXPECT_TRUE(absl::IsNotFound(LoadProfile("no-such.yaml").status()));
  auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const std::string path = dir->path() + "/node";
  ASSERT_TRUE(WriteFileAtomically(path, "gpus: [{model: T4}]").ok());
  EXPECT_EQ(LoadProfile(path)->gpus.size(), 1);
}

TEST(ParseBytes, TakesUnits) {
  EXPECT_EQ(*ParseBytes("2GiB"), 2ull << 30);
  EXPECT_EQ(*ParseBytes("1.5Gi"), 3ull << 29);
  EXPECT_EQ(*ParseBytes("512MiB"), 512ull << 20);
  EXPECT_EQ(*ParseBytes("4096"), 4096);
  for (const char* bad : {"", "GiB", "-1", "2 bananas", "1e30"})
    EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
}

}  // namespace
}  // namespace rondo::sim
