// SPDX-License-Identifier: Apache-2.0
#include "share/time/early_leavers.h"

#include <gtest/gtest.h>

namespace rondo::share {
namespace {

constexpr double kWindowUs = 1'000'000;

// A tenant that comes onto the GPU once a rotation.
Stays Of(double due_us, double slice_us, double stay_us, double rotation_us,
         int groups = 1) {
  const double count = kWindowUs / rotation_us * groups;
  return {due_us, slice_us, stay_us * count, count, groups};
}

struct Case {
  const char* what;
  std::vector<Stays> tenants;
  double factor;
  std::vector<bool> leaves;
};

TEST(EarlyLeavers, Table) {
  const Case cases[] = {
      {"both use all",
       {Of(30e3, 30e3, 30e3, 40e3), Of(10e3, 10e3, 10e3, 40e3)},
       1,
       {false, false}},
      {"3:1, kernels of 20 ms with a wait each",
       {Of(30e3, 30e3, 20e3, 30e3), Of(10e3, 10e3, 10e3, 30e3)},
       2. / 3,
       {true, false}},
      {"the same, the other's slice already shortened",
       {Of(30e3, 30e3, 20e3, 26.8e3), Of(10e3, 6667, 6667, 26.8e3)},
       2. / 3,
       {true, false}},
      {"wants little: the other ran on and on",
       {Of(20e3, 20e3, 1e3, 51e3), Of(20e3, 20e3, 50e3, 51e3)},
       1,
       {false, false}},
      {"alone", {Of(40e3, 40e3, 250e3, 250e3)}, 1, {false}},
      {"leaves no more",
       {Of(30e3, 30e3, 30e3, 37e3), Of(10e3, 6667, 6667, 37e3)},
       1,
       {false, false}},
      {"both leave early",
       {Of(20e3, 20e3, 5e3, 6.2e3), Of(20e3, 20e3, 1e3, 6.2e3)},
       0.05,
       {false, true}},
      {"two processes beside one",
       {Of(10e3, 10e3, 5e3, 30.2e3, 2), Of(20e3, 20e3, 20e3, 30.2e3)},
       0.5,
       {true, false}},
      {"did not run",
       {Stays{20e3, 20e3}, Of(20e3, 20e3, 90e3, 90e3)},
       1,
       {false, false}},
  };
  for (const Case& c : cases) {
    std::vector<Stays> tenants = c.tenants;
    EXPECT_NEAR(SliceFactor(&tenants, kWindowUs), c.factor, 0.01) << c.what;
    for (size_t i = 0; i < tenants.size(); ++i)
      EXPECT_EQ(tenants[i].leaves, c.leaves[i]) << c.what << ", tenant " << i;
  }
}

}  // namespace
}  // namespace rondo::share
