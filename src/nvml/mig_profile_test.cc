// SPDX-License-Identifier: Apache-2.0
#include "nvml/mig_profile.h"

#include "gtest/gtest.h"
#include "nvml/nvml_constants.h"

namespace rondo::nvml {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Sizes as NVML gives them on the named GPU; texts as nvidia-smi prints them.
TEST(MigProfile, TextIsThatOfNvidiasTools) {
  const struct {
    const char* gpu;
    uint64_t gpu_mib;
    int gpu_slices, compute_slices;
    uint64_t memory_mib;
    const char* suffix;
    const char* text;
  } kRows[] = {
      {"A100 40GB", 40960, 1, 1, 4864, "", "1g.5gb"},
      {"A100 40GB", 40960, 1, 1, 4864, "+me", "1g.5gb+me"},
      {"A100 40GB", 40960, 1, 1, 9856, "", "1g.10gb"},
      {"A100 40GB", 40960, 2, 2, 9856, "", "2g.10gb"},
      {"A100 40GB", 40960, 3, 1, 19968, "", "1c.3g.20gb"},
      {"A100 40GB", 40960, 3, 2, 19968, "", "2c.3g.20gb"},
      {"A100 40GB", 40960, 7, 7, 40192, "", "7g.40gb"},
      {"A100 80GB", 81920, 1, 1, 9728, "", "1g.10gb"},
      {"A100 80GB", 81920, 2, 2, 19968, "", "2g.20gb"},
      {"A100 80GB", 81920, 4, 4, 40192, "", "4g.40gb"},
      {"A100 80GB", 81920, 7, 7, 80640, "", "7g.80gb"},
      {"A30", 24576, 1, 1, 5952, "", "1g.6gb"},
      {"A30", 24576, 4, 4, 24192, "", "4g.24gb"},
      {"H100 80GB", 81559, 1, 1, 9984, "+me.all", "1g.10gb+me.all"},
      {"H100 80GB", 81559, 1, 1, 20096, "", "1g.20gb"},
      {"H100 80GB", 81559, 3, 3, 40448, "+gfx", "3g.40gb+gfx"},
      {"H200", 143771, 1, 1, 16384, "", "1g.18gb"},
      {"H200", 143771, 2, 2, 33280, "-me", "2g.35gb-me"},
      {"H200", 143771, 3, 3, 71296, "", "3g.71gb"},
      {"H200", 143771, 7, 7, 143360, "", "7g.141gb"},
      {"unknown", 0, 1, 1, 4864, "", "1g.5gb"},
  };
  for (const auto& row : kRows)
    EXPECT_EQ(MigProfileText({row.gpu_slices, row.compute_slices,
                              row.memory_mib, row.gpu_mib * kMiB, row.suffix}),
              row.text)
        << row.gpu;
}

TEST(MigProfile, SuffixSaysWhatTheSlicesAreGoodFor) {
  EXPECT_EQ(MigProfileSuffix(abi::kProfile1Slice), "");
  EXPECT_EQ(MigProfileSuffix(abi::kProfile1SliceMemory), "");
  EXPECT_EQ(MigProfileSuffix(abi::kProfile1SliceMe), "+me");
  EXPECT_EQ(MigProfileSuffix(abi::kProfile2SliceMe), "+me");
  EXPECT_EQ(MigProfileSuffix(abi::kProfile2SliceAllMe), "+me.all");
  EXPECT_EQ(MigProfileSuffix(abi::kProfile4SliceGfx), "+gfx");
  EXPECT_EQ(MigProfileSuffix(abi::kProfile1SliceNoMe), "-me");
  EXPECT_EQ(MigProfileSuffix(0xFFFF), "");
}

}  // namespace
}  // namespace rondo::nvml
