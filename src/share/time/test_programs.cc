// SPDX-License-Identifier: Apache-2.0
#include "share/time/test_programs.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace rondo::share {
namespace {

using Words = std::vector<std::string>;
using Unit = std::vector<Op>;

// False: it is no number of us.
bool ParseUs(const std::string& word, Ns* out) {
  double us = 0;
  if (!absl::SimpleAtod(word, &us) || !(us >= 0 && us < 1e9)) return false;
  *out = std::llround(us * kUs);
  return true;
}

bool ParseHead(const Words& words, Model* model) {
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> field =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (field.first == "flight" &&
        !absl::SimpleAtoi(field.second, &model->flight))
      return false;
  }
  return true;
}

bool ParseOp(const Words& words, Op* op) {
  if (words[0] == "L") {
    op->kind = Op::kLaunch;
    return words.size() == 3 && ParseUs(words[1], &op->cpu) &&
           ParseUs(words[2], &op->gpu);
  }
  if (words[0] == "W") {
    op->kind = Op::kSleep;
    return words.size() == 2 && ParseUs(words[1], &op->cpu);
  }
  op->kind = words[0] == "S" ? Op::kSync : Op::kUnit;
  return words.size() == 1 && (words[0] == "S" || words[0] == "U");
}

Model Recorded(const std::string& kind) {
  absl::StatusOr<Model> model =
      ReadModel(absl::StrCat(MODELS "/", kind, ".model"));
  if (model.ok()) return *std::move(model);
  ADD_FAILURE() << model.status();
  return {};
}

Script AsRecorded(const std::string& kind) {
  Model model = Recorded(kind);
  Script script{.flight = model.flight};
  for (const Unit& unit : model.units) {
    script.ops.insert(script.ops.end(), unit.begin(), unit.end());
    script.ops.push_back({Op::kUnit});
  }
  return script;
}

// The same, its pauses left out: whoever calls this has others.
std::vector<Unit> Work(const std::string& kind) {
  Model model = Recorded(kind);
  for (Unit& unit : model.units)
    std::erase_if(unit, [](const Op& op) { return op.kind == Op::kSleep; });
  return std::move(model.units);
}

// A unit that is waited for, its time kept.
void AppendWaited(const Op& begin, const Unit& unit, Script* script) {
  script->ops.push_back(begin);
  script->ops.insert(script->ops.end(), unit.begin(), unit.end());
  script->ops.push_back({Op::kSync});
  script->ops.push_back({Op::kUnit});
}

Script Due(const std::string& kind, Ns period) {
  Script script;
  for (const Unit& unit : Work(kind))
    AppendWaited({Op::kDue, period}, unit, &script);
  return script;
}

double Uniform(std::mt19937& dice, double from, double to) {
  // std::uniform_real_distribution differs between libraries.
  return from + (to - from) * static_cast<double>(dice()) / 4294967296.0;
}
Ns Around(std::mt19937& dice, double ns) {
  return std::llround(ns * Uniform(dice, 0.9, 1.1));
}

}  // namespace

absl::StatusOr<Model> ReadModel(const std::string& path) {
  std::ifstream file(path);
  Model model;
  Unit unit;
  std::string line;
  int number = 0;
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", number, ": ", what));
  };
  if (!file) return error("cannot be read");
  while (std::getline(file, line)) {
    ++number;
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty()) continue;
    if (words[0] == "#") {
      if (!ParseHead(words, &model)) return error("flight is no number");
      continue;
    }
    Op op{Op::kUnit};
    if (!ParseOp(words, &op))
      return error(absl::StrCat("neither L, S, W nor U: ", line));
    if (op.kind != Op::kUnit) {
      unit.push_back(op);
    } else {
      model.units.push_back(std::exchange(unit, {}));
    }
  }
  if (!unit.empty()) return error("the last unit has no end");
  if (model.units.empty()) return error("no unit");
  return model;
}

Script Train() { return AsRecorded("train"); }
Script SmallTrain() { return AsRecorded("small_train"); }
Script Saturate() { return AsRecorded("saturate"); }
Script LongKernels() { return AsRecorded("long_kernels"); }

Script Decoder(unsigned seed) {
  // The host on which it was recorded took 14 ms for a token. The one on which
  // the mixes were measured took 10, and so does this.
  constexpr double kHost = 0.72;
  // Gaps that are always the same lock into the slices of the others: then
  // chance decides once, and for the whole run, how a token meets them.
  std::mt19937 dice(seed);
  Script script;
  const std::vector<Unit> units = Work("decoder");
  for (int repeat = 0; repeat < 8; ++repeat)
    for (Unit unit : units) {
      for (Op& op : unit)
        op.cpu = Around(dice, static_cast<double>(op.cpu) * kHost);
      AppendWaited({Op::kBegin}, unit, &script);
    }
  return script;
}

Script GraphService() { return Due("graph", 40 * kMs); }
Script Fps30() { return Due("fps30", 33'333 * kUs); }

Script Notebook(unsigned seed) {
  constexpr double kChunkS = 0.004;
  std::mt19937 dice(seed);
  const auto pause = [&](double part) {
    return Op{Op::kSleep, std::llround(1e9 * part * Uniform(dice, 0.5, 3))};
  };
  Script script;
  const std::vector<Unit> units = Work("notebook");
  size_t next = 0;
  script.ops.push_back(pause(0.5));
  for (int cell = 0; cell < 100 && !units.empty(); ++cell) {
    const auto chunks = static_cast<int>(Uniform(dice, 0.1, 0.6) / kChunkS);
    for (int i = 0; i < chunks; ++i)
      AppendWaited({Op::kBegin}, units[next++ % units.size()], &script);
    script.ops.push_back(pause(1));
  }
  return script;
}

Script DataTrain(unsigned seed) {
  std::mt19937 dice(seed);
  Script script;
  const std::vector<Unit> units = Work("data_train");
  for (size_t step = 0; step < 200 && !units.empty(); ++step) {
    script.ops.push_back(
        {Op::kSleep, std::llround(1e6 * Uniform(dice, 30, 60))});
    AppendWaited({Op::kBegin}, units[(step + seed) % units.size()], &script);
  }
  return script;
}

Script Requests(int kernels, Ns each, Ns think, unsigned seed) {
  std::mt19937 dice(seed);
  Script script;
  for (int request = 0; request < 200; ++request) {
    script.ops.push_back(
        {Op::kSleep, Around(dice, static_cast<double>(think))});
    AppendWaited({Op::kBegin}, Unit(kernels, {Op::kLaunch, 3 * kUs, each}),
                 &script);
  }
  return script;
}

Script Kernels(Ns each) {
  return {.ops = {{Op::kLaunch, 3 * kUs, each}, {Op::kUnit}}, .depth = 3};
}

Script ComesAndGoes(const Script& script, int units, Ns away) {
  Script out = script;
  out.ops.clear();
  for (int done = 0; done < units;) {
    for (const Op& op : script.ops) {
      out.ops.push_back(op);
      if (op.kind == Op::kUnit && ++done == units) break;
    }
    if (script.ops.empty()) return out;
  }
  out.ops.push_back({Op::kSleep, away});
  return out;
}

}  // namespace rondo::share
