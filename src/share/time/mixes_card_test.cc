// SPDX-License-Identifier: Apache-2.0
//
// The simulated GPU beside the real one: the same mixes, and what each program
// keeps of its speed alone. Measured on one H200 with driver 580.159.04, means
// of the programs of a kind and of all rounds.
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "share/time/test_mixes.h"

namespace rondo::share {
namespace {

constexpr double kWithin = 0.10;

// What a figure of the card says of the model.
// The card's figures under Rondo are of rules that have changed since: a row
// that differs now is no fault of the model's.
enum class Says { kNone, kAgrees, kDiffers };
using enum Says;

struct Row {
  const char* mix;
  std::string_view program;
  double stock;  // of alone, on the card
  Says on_stock;
  double rondo = 0;
  Says on_rondo = kNone;
};
constexpr Row kRows[] = {
    {"decoder + 2 train", "decoder", 0.772, kDiffers},
    {"decoder + 2 train", "train", 0.410, kAgrees},
    {"graph + decoder + 2 train", "graph", 0.106, kAgrees},
    {"graph + decoder + 2 train", "decoder", 0.641, kDiffers},
    {"graph + decoder + 2 train", "train", 0.393, kAgrees},
    {"fps30 + saturate + train + long_kernels", "fps30", 1, kAgrees, 1,
     kAgrees},
    {"fps30 + saturate + train + long_kernels", "saturate", 0.272, kAgrees,
     0.283, kAgrees},
    {"fps30 + saturate + train + long_kernels", "train", 0.267, kDiffers, 0.328,
     kAgrees},
    {"fps30 + saturate + train + long_kernels", "long_kernels", 0.274, kAgrees,
     0.281, kAgrees},
    {"saturate + train", "saturate", 0.523, kDiffers},
    {"saturate + train", "train", 0.520, kAgrees},
    {"2 saturate + train + long_kernels", "saturate", 0.241, kAgrees, 0.254,
     kAgrees},
    {"2 saturate + train + long_kernels", "train", 0.238, kDiffers, 0.249,
     kDiffers},
    {"2 saturate + train + long_kernels", "long_kernels", 0.245, kAgrees, 0.258,
     kAgrees},
    {"4 notebook + train", "notebook", 0.315, kAgrees, 0.378, kDiffers},
    {"4 notebook + train", "train", 0.466, kDiffers, 0.498, kAgrees},
    {"20 x 100 us + 1 1 ms kernels", "20 x 100 us", 0.757, kDiffers, 0.921,
     kAgrees},
    {"20 x 100 us + 1 1 ms kernels", "1 ms kernels", 0.816, kAgrees, 0.808,
     kAgrees},
    {"20 x 100 us + 3 1 ms kernels", "20 x 100 us", 0.366, kAgrees, 0.922,
     kAgrees},
    {"20 x 100 us + 3 1 ms kernels", "1 ms kernels", 0.263, kAgrees, 0.268,
     kAgrees},
    {"20 x 100 us + 7 1 ms kernels", "20 x 100 us", 0.260, kAgrees, 0.921,
     kAgrees},
    {"20 x 100 us + 7 1 ms kernels", "1 ms kernels", 0.115, kAgrees, 0.115,
     kAgrees},
    {"1 x 100 us + 3 1 ms kernels", "1 x 100 us", 0.026, kDiffers, 0.427,
     kDiffers},
    {"1 x 100 us + 3 1 ms kernels", "1 ms kernels", 0.294, kAgrees, 0.270,
     kAgrees},
    {"small_train + saturate", "small_train", 29.465, kAgrees, 25.700,
     kDiffers},
    {"small_train + saturate", "saturate", 0.745, kAgrees, 0.767, kAgrees},
    {"3 data_train", "data_train", 7.649, kAgrees, 7.764, kAgrees},
};

// Of alone; the mean of those of that name. Of the two whose speed alone was
// not measured on the card, steps a second.
double InModel(const Row& row, Way way) {
  const Mix& mix = MixNamed(row.mix);
  const Outcomes& outcomes = Measured(mix, way);
  double sum = 0;
  int programs = 0;
  for (size_t i = 0; i < mix.programs.size(); ++i) {
    if (mix.programs[i].name != row.program) continue;
    const Outcome& mixed = outcomes.programs[i];
    const Outcome& alone = Alone(mix.programs[i]);
    ++programs;
    if (row.program == "small_train" || row.program == "data_train") {
      sum += mixed.rate;
    } else if (row.program == "decoder") {
      sum += mixed.rate / alone.rate;  // tokens a second there
    } else {
      sum += mixed.speed / alone.speed;
    }
  }
  EXPECT_GT(programs, 0) << row.mix << ": " << row.program;
  return sum / programs;
}

void Compare(const Row& row, const char* way, double model, double card,
             Says expected) {
  if (expected == kNone) return;
  const double difference = model / card - 1;
  std::printf("| %s | %.*s | %s | %.3f | %.3f | %+.0f %%%s |\n", row.mix,
              static_cast<int>(row.program.size()), row.program.data(), way,
              model, card, 100 * difference,
              expected == kDiffers ? ", known" : "");
  if (expected == kAgrees) {
    EXPECT_LE(std::abs(difference), kWithin)
        << row.mix << ": " << row.program << " " << way;
  }
}

TEST(MixesOnTheCard, AreAsInTheModel) {
  std::printf(
      "| mix | program | way | model | card | difference |\n"
      "|---|---|---|---|---|---|\n");
  for (const Row& row : kRows) {
    Compare(row, "stock", InModel(row, Way::kStock), row.stock, row.on_stock);
    if (row.on_rondo != kNone)
      Compare(row, "Rondo", InModel(row, Way::kRondo), row.rondo, row.on_rondo);
  }
}

}  // namespace
}  // namespace rondo::share
