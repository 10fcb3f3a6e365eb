// SPDX-License-Identifier: Apache-2.0
#include "share/time/test_mixes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rondo::share {
namespace {

using enum By;

constexpr Ns kFrame = 33'333 * kUs;

constexpr Program kDecoder{"decoder", Decoder, kMedian};
constexpr Program kGraph{"graph", [](unsigned) { return GraphService(); },
                         kMedian};
constexpr Program kFps{"fps30", [](unsigned) { return Fps30(); }, kInTime};
constexpr Program kNotebook{"notebook", Notebook, kMean};
constexpr Program kDataTrain{"data_train", DataTrain};
constexpr Program kSmallTrain{"small_train",
                              [](unsigned) { return SmallTrain(); }};
constexpr Program kSaturate{"saturate", [](unsigned) { return Saturate(); }};
constexpr Program kLongKernels{"long_kernels",
                               [](unsigned) { return LongKernels(); }};
constexpr Program kOneKernel{
    "1 x 100 us",
    [](unsigned seed) { return Requests(1, 100 * kUs, 2 * kMs, seed); },
    kMedian};
constexpr Program kRare{
    "rare 20 x 100 us",
    [](unsigned seed) { return Requests(20, 100 * kUs, 60 * kMs, seed); },
    kMedian};
// Two seconds of tokens, two of none.
constexpr Program kComes{
    "decoder that comes",
    [](unsigned seed) { return ComesAndGoes(Decoder(seed), 180, 2'000 * kMs); },
    kMedian};

Outcome OutcomeOf(By by, const SimulatedGpu::Process& process, Ns window) {
  const double seconds = static_cast<double>(window) / 1e9;
  Outcome out{.rate = static_cast<double>(process.units) / seconds,
              .busy = static_cast<double>(process.work) / 1e9 / seconds};
  std::vector<Ns> times = process.times;
  std::sort(times.begin(), times.end());
  const auto n = static_cast<double>(times.size());
  if (!times.empty()) {
    out.median = times[times.size() / 2];
    out.p99 = times[times.size() * 99 / 100];
    out.mean = std::accumulate(times.begin(), times.end(), 0.0) / n;
  }
  if (by == kRate) {
    out.speed = out.rate;
  } else if (times.empty()) {
    out.speed = 0;
  } else if (by == kInTime) {
    const auto in_time = std::count_if(times.begin(), times.end(),
                                       [](Ns t) { return t <= kFrame; });
    out.speed = static_cast<double>(in_time) / n;
  } else {
    out.speed =
        1e9 / (by == kMean ? out.mean : static_cast<double>(out.median));
  }
  return out;
}

}  // namespace

constexpr Program kTrain{"train", [](unsigned) { return Train(); }};
constexpr Program kRequests{
    "20 x 100 us",
    [](unsigned seed) { return Requests(20, 100 * kUs, 10 * kMs, seed); },
    kMedian};
// They may lose what the quicker requester rightly takes.
constexpr Program kKernels{"1 ms kernels",
                           [](unsigned) { return Kernels(kMs); }, kRate, 0.90};

Program As(TenantClass cls, Program program) {
  program.cls = cls;
  return program;
}

Mix Beside(const Program& first, int count, const Program& others) {
  Mix mix{absl::StrCat(first.name, " + ", count, " ", others.name), {first}};
  mix.programs.insert(mix.programs.end(), count, others);
  return mix;
}

const std::vector<Mix>& Mixes() {
  static const std::vector<Mix> mixes = [] {
    std::vector<Mix> all = {
        {"decoder + 2 train", {kDecoder, kTrain, kTrain}},
        {"decoder that comes + 2 train", {kComes, kTrain, kTrain}},
        {"graph + decoder + 2 train", {kGraph, kDecoder, kTrain, kTrain}},
        {"graph + 3 train", {kGraph, kTrain, kTrain, kTrain}},
        {"fps30 + saturate + train + long_kernels",
         {kFps, kSaturate, kTrain, kLongKernels}},
        {"small_train + saturate", {kSmallTrain, kSaturate}},
        {"saturate + train", {kSaturate, kTrain}, 20, true},
        {"2 saturate + train + long_kernels",
         {kSaturate, kSaturate, kTrain, kLongKernels},
         20,
         true},
        {"4 notebook + train",
         {kNotebook, kNotebook, kNotebook, kNotebook, kTrain},
         600},
        {"8 notebook", std::vector<Program>(8, kNotebook), 600},
        {"3 data_train", std::vector<Program>(3, kDataTrain), 120},
        // An idle context that stays on the GPU must not pass for work, nor a
        // training that pauses for one that may take turns.
        {"requests + 2 data_train", {kRequests, kDataTrain, kDataTrain}, 60},
        {"requests + data_train + saturate",
         {kRequests, kDataTrain, kSaturate},
         60},
        {"graph + 2 data_train", {kGraph, kDataTrain, kDataTrain}, 60},
        {"rare requests + saturate", {kRare, kSaturate}},
        {"rare requests + 3 saturate",
         {kRare, kSaturate, kSaturate, kSaturate}},
    };
    for (int others : {1, 3, 7})
      all.push_back(Beside(kRequests, others, kKernels));
    all.push_back(Beside(kOneKernel, 3, kKernels));
    return all;
  }();
  return mixes;
}

const Mix& MixNamed(const std::string& name) {
  const auto mix = std::find_if(Mixes().begin(), Mixes().end(),
                                [&](const Mix& m) { return m.name == name; });
  EXPECT_NE(mix, Mixes().end()) << name;
  return mix == Mixes().end() ? Mixes().front() : *mix;
}

Outcomes Run(const Mix& mix, Way way) {
  SharedGpu shared;
  SimulatedGpu& gpu = shared.gpu;
  for (size_t i = 0; i < mix.programs.size(); ++i) {
    const Program& program = mix.programs[i];
    Script script = program.script(static_cast<unsigned>(i + 1));
    if (way == Way::kStock) {
      gpu.Add(i + 1, std::move(script));
    } else {
      shared.Add(i + 1, {program.cls, 1, 1}, std::move(script));
    }
  }
  const auto run = [&](Ns until) {
    way == Way::kStock ? gpu.RunUntil(until) : shared.RunUntil(until);
  };
  const Ns warm = 3'000 * kMs;
  const Ns window = mix.seconds * 1'000 * kMs;
  run(warm);
  for (auto& [id, process] : gpu.processes()) {
    process.times.clear();
    process.units = process.work = 0;
  }
  shared.modes.clear();
  run(warm + window);
  Outcomes out;
  for (size_t i = 0; i < mix.programs.size(); ++i)
    out.programs.push_back(
        OutcomeOf(mix.programs[i].by, gpu.process(i + 1), window));
  for (const auto& [mode, span] : shared.modes)
    out.modes[mode] = static_cast<double>(span) / static_cast<double>(window);
  return out;
}

const Outcomes& Measured(const Mix& mix, Way way) {
  static auto& known = *new std::map<std::pair<std::string, Way>, Outcomes>();
  const std::pair key{mix.name, way};
  if (!known.contains(key)) known[key] = Run(mix, way);
  return known[key];
}

const Outcome& Alone(const Program& program) {
  const bool long_units =
      program.by == kMean || std::string(program.name) == "data_train";
  return Measured({program.name, {program}, long_units ? 120 : 20}, Way::kStock)
      .programs[0];
}

}  // namespace rondo::share
