// SPDX-License-Identifier: Apache-2.0
//
// What the arbiter makes of programs that were recorded on a card, each beside
// what the driver alone makes of them. A line a program: a change of a rule
// shows at once who gains and who loses.
#include <cctype>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rm/facts.h"
#include "share/time/test_mixes.h"

namespace rondo::share {
namespace {

constexpr auto kLatency = TenantClass::kLatency;
constexpr auto kBatch = TenantClass::kBatch;

double Ms(double ns) { return ns / kMs; }

// One number, as a table shows it; of few digits and no exponent.
std::string Speed(double speed) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f", speed < 10 ? 3 : 1, speed);
  return text;
}

void Print(const Mix& mix) {
  const Outcomes& stock = Measured(mix, Way::kStock);
  const Outcomes& rondo = Measured(mix, Way::kRondo);
  static constexpr const char* kModes[] = {"alone", "rotation", "visited",
                                           "served"};
  std::string modes;
  for (const auto& [mode, part] : rondo.modes)
    absl::StrAppend(&modes, " ", kModes[static_cast<int>(mode)], " ",
                    Speed(part));
  std::printf("%s;%s\n", mix.name.c_str(), modes.c_str());
  for (size_t i = 0; i < mix.programs.size(); ++i) {
    const Outcome& s = stock.programs[i];
    const Outcome& r = rondo.programs[i];
    std::printf("  %-20s stock %8s  Rondo %8s  ratio %6.3f",
                mix.programs[i].name, Speed(s.speed).c_str(),
                Speed(r.speed).c_str(), r.speed / s.speed);
    if (s.median > 0)
      std::printf(
          "  p50 %.2f -> %.2f ms  p99 %.2f -> %.2f ms",
          Ms(static_cast<double>(s.median)), Ms(static_cast<double>(r.median)),
          Ms(static_cast<double>(s.p99)), Ms(static_cast<double>(r.p99)));
    std::printf("\n");
  }
}

double OfStock(const Mix& mix, size_t i) {
  return Measured(mix, Way::kRondo).programs[i].speed /
         Measured(mix, Way::kStock).programs[i].speed;
}
double P99OfAlone(const Mix& mix, size_t i) {
  return static_cast<double>(Measured(mix, Way::kRondo).programs[i].p99) /
         static_cast<double>(Alone(mix.programs[i]).p99);
}
double Logs(const Mix& mix) {
  double sum = 0;
  for (size_t i = 0; i < mix.programs.size(); ++i)
    sum += std::log(OfStock(mix, i));
  return sum;
}

// --- without a word from their owners ----------------------------------------
class EachMix : public testing::TestWithParam<int> {
 protected:
  const Mix& mix() const { return Mixes()[GetParam()]; }
};

TEST_P(EachMix, LosesNothingToStock) {
  Print(mix());
  for (size_t i = 0; i < mix().programs.size(); ++i)
    EXPECT_GE(OfStock(mix(), i), mix().programs[i].least)
        << mix().name << ": " << mix().programs[i].name << " " << i + 1;
  const double mean =
      std::exp(Logs(mix()) / static_cast<double>(mix().programs.size()));
  std::printf("  geometric mean %.3f\n", mean);
  EXPECT_GE(mean, 0.97) << mix().name;
}

INSTANTIATE_TEST_SUITE_P(All, EachMix,
                         testing::Range(0, static_cast<int>(Mixes().size())),
                         [](const auto& info) {
                           std::string name;
                           for (char c : Mixes()[info.param].name)
                             name += std::isalnum(c) ? c : '_';
                           return name;
                         });

TEST(Mixes, GainTogether) {
  double sum = 0;
  size_t programs = 0;
  for (const Mix& mix : Mixes()) {
    sum += Logs(mix);
    programs += mix.programs.size();
  }
  const double mean = std::exp(sum / static_cast<double>(programs));
  std::printf("all: geometric mean %.3f\n", mean);
  EXPECT_GE(mean, 1.05);
}

// Those that always have work waste next to nothing between them.
TEST(Mixes, ThatFillTheGpuAddUpToAlone) {
  for (const Mix& mix : Mixes()) {
    if (!mix.fills) continue;
    double sum = 0;
    for (size_t i = 0; i < mix.programs.size(); ++i)
      sum += Measured(mix, Way::kRondo).programs[i].speed /
             Alone(mix.programs[i]).speed;
    std::printf("%s: %.3f of alone\n", mix.name.c_str(), sum);
    EXPECT_GE(sum, 0.985) << mix.name;
  }
}

TEST(Mixes, RequestsAreAsQuickAsAlone) {
  for (int others : {1, 3, 7}) {
    const Mix mix = Beside(kRequests, others, kKernels);
    EXPECT_LE(P99OfAlone(mix, 0), 1.5) << mix.name;
  }
  const Mix& one = MixNamed("1 x 100 us + 3 1 ms kernels");
  EXPECT_LE(Measured(one, Way::kRondo).programs[0].p99,
            Alone(one.programs[0]).p99 + kMs);
}

TEST(Mixes, FramesAreInTime) {
  EXPECT_EQ(
      Measured(MixNamed("fps30 + saturate + train + long_kernels"), Way::kRondo)
          .programs[0]
          .speed,
      1);
}

TEST(Mixes, NotebooksGainAndTheTrainingDoesNotPay) {
  const Mix& mix = MixNamed("4 notebook + train");
  for (size_t i = 0; i < 4; ++i)
    EXPECT_LE(1 / OfStock(mix, i), 0.95) << "notebook " << i + 1;
  EXPECT_GE(OfStock(mix, 4), 0.97);
}

// --- with annotations --------------------------------------------------------
class LatencyBesideBatch : public testing::TestWithParam<int> {};

TEST_P(LatencyBesideBatch, IsAsQuickAsAloneAndNeverSlowerThanOnStock) {
  const int others = GetParam();
  Mix mix = Beside(As(kLatency, kRequests), others, As(kBatch, kKernels));
  mix.name = "latency, batch: " + mix.name;
  Print(mix);
  std::printf("  p99 %.3f of alone\n", P99OfAlone(mix, 0));
  if (others <= 6) {
    EXPECT_LE(P99OfAlone(mix, 0), 1.5);
  }
  // A switch more or less is where in the round its request falls.
  EXPECT_LE(
      Measured(mix, Way::kRondo).programs[0].p99,
      Measured(mix, Way::kStock).programs[0].p99 + rm::kContextSwitchUs * kUs);
}
INSTANTIATE_TEST_SUITE_P(Numbers, LatencyBesideBatch,
                         testing::Values(2, 4, 6, 8, 10, 12));

TEST(Mixes, LatencyBesideStandardIsAsQuickAsAlone) {
  for (const Program& others : {kKernels, kTrain}) {
    Mix mix = Beside(As(kLatency, kRequests), 3, others);
    mix.name = "latency: " + mix.name;
    Print(mix);
    std::printf("  p99 %.3f of alone\n", P99OfAlone(mix, 0));
    EXPECT_LE(P99OfAlone(mix, 0), 1.25) << mix.name;
  }
}

// Who claims latency and never pauses has spent its credit, and does not keep
// the other one waiting.
TEST(Mixes, LatencyTenantThatNeverPausesHarmsNobody) {
  Mix mix = Beside(As(kLatency, kRequests), 1, As(kLatency, kKernels));
  mix.programs.insert(mix.programs.end(), 2, As(kBatch, kTrain));
  mix.name = "latency and one that never pauses + 2 batch train";
  Print(mix);
  std::printf("  p99 %.3f of alone\n", P99OfAlone(mix, 0));
  EXPECT_LE(P99OfAlone(mix, 0), 1.5);
  for (size_t i = 1; i < mix.programs.size(); ++i)
    EXPECT_GE(OfStock(mix, i), 0.90) << mix.programs[i].name << " " << i + 1;
}

// --- the files ---------------------------------------------------------------
TEST(ReadModel, ErrorsNameTheFileAndTheLine) {
  using testing::HasSubstr;
  const std::string path = testing::TempDir() + "/wrong.model";
  const std::pair<const char*, const char*> wrong[] = {
      {"# flight=1\nL 1 2\nL 1\nU\n", ":3: "},
      {"L 1 x\nU\n", ":1: "},
      {"L 1 -2\nU\n", ":1: "},
      {"# flight=x\nU\n", ":1: "},
      {"L 1 2\nU\nV\n", ":3: "},
      {"U\nL 1 2\n", ":2: "},
      {"# flight=1\n", ":1: "},
  };
  for (const auto& [text, place] : wrong) {
    std::ofstream(path) << text;
    const absl::StatusOr<Model> model = ReadModel(path);
    ASSERT_FALSE(model.ok()) << text;
    EXPECT_THAT(model.status().message(), HasSubstr(path + place)) << text;
  }
  EXPECT_THAT(ReadModel("/no/such.model").status().message(),
              HasSubstr("/no/such.model"));
}

}  // namespace
}  // namespace rondo::share
