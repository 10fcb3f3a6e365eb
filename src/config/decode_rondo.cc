// SPDX-License-Identifier: Apache-2.0
//
// `rondo:`, the one strict part: unknown keys and values are errors.

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/suggest.h"
#include "config/amount.h"
#include "config/duration.h"
#include "config/read_value.h"
#include "config/spec.h"

namespace rondo::config {
namespace {

using std::chrono::microseconds;
using yaml::Kind;
using yaml::Node;

void Bad(const Node& node, std::string message, std::string hint,
         std::vector<Problem>& problems) {
  problems.push_back(MakeProblem(Code::kRondoValue, node.mark.line,
                                 node.mark.column, std::move(message),
                                 std::move(hint)));
}

// NVIDIA's plugin reads none of it: a wrong type here is our difference.
void BadType(const Node& node, absl::string_view name, absl::string_view wanted,
             std::string hint, std::vector<Problem>& problems) {
  Problem problem = WrongType(name, wanted, node);
  problem.code = Code::kRondoValue;
  if (problem.hint.empty()) problem.hint = std::move(hint);
  problems.push_back(std::move(problem));
}

template <typename T>
struct Word {
  const char* text;
  T value;
};

// YAML 1.1 reads a bare `off` as false: taken as the word that was written.
template <typename T, size_t N>
void ReadWord(const Node& node, absl::string_view key,
              const Word<T> (&words)[N], T& value,
              std::vector<Problem>& problems) {
  std::string given;
  if (node.kind == Kind::kString || node.kind == Kind::kBool) given = node.text;
  std::vector<std::string> known;
  for (const Word<T>& word : words) {
    if (given == word.text) {
      value = word.value;
      return;
    }
    known.push_back(word.text);
  }
  const std::string near = NearestWord(given, known);
  std::string hint =
      near.empty() ? "" : absl::StrCat("did you mean ", near, "? ");
  absl::StrAppend(&hint, "Values: ", absl::StrJoin(known, ", "));
  if (key == "memory" && !given.empty() && absl::ascii_isdigit(given[0]))
    hint = "a size is `slotMemory`; `memory` is enforce, observe or off";
  Bad(node,
      given.empty()
          ? absl::StrCat("`rondo.", key, "` must be a word, not ", Have(node))
          : absl::StrCat("`rondo.", key, "` is not a known word: ", given),
      hint, problems);
}

void ReadMemory(const Node& node, RondoSpec& spec,
                std::vector<Problem>& problems) {
  if (node.kind == Kind::kString && node.text == "auto") return;
  if (node.kind != Kind::kString && node.kind != Kind::kInt &&
      node.kind != Kind::kFloat) {
    BadType(node, "rondo.slotMemory", "auto or an amount of memory",
            "write auto or a quantity such as 8Gi", problems);
    return;
  }
  const std::string text = node.kind == Kind::kInt ? node.json : node.text;
  uint64_t bytes = 0;
  if (const auto mistake = ReadSlotMemory(text, bytes)) {
    Bad(node,
        absl::StrCat("`rondo.slotMemory`: ", Shown(node.text), " ",
                     mistake->wrong),
        mistake->remedy + ", or auto", problems);
    return;
  }
  spec.options.slot_memory_bytes = bytes;
  spec.options.slot_memory_line = node.mark.line;
  spec.options.slot_memory_column = node.mark.column;
}

std::string DurationMistake(absl::string_view text) {
  const size_t unit = text.find_first_not_of("0123456789.");
  const bool starts = unit != 0 && !text.empty();
  const char* wrong = "is not a duration";
  if (text.empty())
    wrong = "is empty";
  else if (starts && unit == absl::string_view::npos)
    wrong = "has no unit";
  else if (absl::StrContains(text, ' '))
    wrong = "has a space in it";
  else if (absl::StrContains(text, ','))
    wrong = "has a comma in it";
  else if (starts)
    wrong = "has a unit that is none of us, ms, s, m, h";
  return absl::StrCat(Shown(text), " ", wrong);
}

void ReadDuration(const Node& node, absl::string_view key, microseconds least,
                  microseconds most, microseconds& value,
                  std::vector<Problem>& problems) {
  const std::string accepted =
      absl::StrCat("write a duration from ", FormatDuration(least), " to ",
                   FormatDuration(most), ", such as ", FormatDuration(value));
  const std::string name = absl::StrCat("rondo.", key);
  if (node.kind != Kind::kString) {
    const bool number = node.kind == Kind::kInt || node.kind == Kind::kFloat;
    BadType(node, name, number ? "a duration with its unit" : "a duration",
            accepted, problems);
    return;
  }
  auto duration = ParseGoDuration(node.text);
  if (!duration.ok()) {
    Bad(node, absl::StrCat("`", name, "`: ", DurationMistake(node.text)),
        accepted, problems);
  } else if (*duration < least || *duration > most) {
    Bad(node,
        absl::StrCat("`", name, "`: ", Shown(node.text), " is ",
                     *duration < least ? "under " : "above ",
                     FormatDuration(*duration < least ? least : most)),
        accepted, problems);
  } else {
    value = std::chrono::duration_cast<microseconds>(*duration);
  }
}

void ReadKey(absl::string_view key, const Node& node, RondoSpec& spec,
             std::vector<Problem>& problems) {
  using namespace std::chrono_literals;
  RondoOptions& options = spec.options;
  if (key == "memory") {
    spec.memory_mark = node.mark;
    constexpr Word<MemoryMode> kWords[] = {{"enforce", MemoryMode::kEnforce},
                                           {"observe", MemoryMode::kObserve},
                                           {"off", MemoryMode::kOff}};
    ReadWord(node, key, kWords, options.memory, problems);
  } else if (key == "slotMemory") {
    ReadMemory(node, spec, problems);
  } else if (key == "managed") {
    constexpr Word<ManagedMode> kWords[] = {{"count", ManagedMode::kCount},
                                            {"ignore", ManagedMode::kIgnore}};
    ReadWord(node, key, kWords, options.managed, problems);
  } else if (key == "period") {
    ReadDuration(node, key, 1ms, 10s, options.period, problems);
  } else if (key == "turn") {
    ReadDuration(node, key, 10ms, 60s, options.turn, problems);
  } else if (key == "standardTakesTurns") {
    if (node.kind == Kind::kBool) {
      problems.push_back(MakeProblem(
          Code::kRondoNoEffect, node.mark.line, node.mark.column,
          "`rondo.standardTakesTurns` has no effect any more",
          "take it out; standard tenants take turns where it helps"));
    } else {
      BadType(node, "rondo.standardTakesTurns", "true or false",
              "take it out: it has no effect any more", problems);
    }
  } else if (key == "injection") {
    spec.injection_mark = node.mark;
    constexpr Word<Injection> kWords[] = {{"env", Injection::kEnv},
                                          {"file", Injection::kFile},
                                          {"cdi", Injection::kCdi},
                                          {"none", Injection::kNone}};
    Injection injection = Injection::kNone;
    ReadWord(node, key, kWords, injection, problems);
    spec.injection = injection;
  } else if (key == "onAgentLoss") {
    constexpr Word<OnAgentLoss> kWords[] = {{"closed", OnAgentLoss::kClosed},
                                            {"open", OnAgentLoss::kOpen}};
    ReadWord(node, key, kWords, options.on_agent_loss, problems);
  }
}

}  // namespace

void DecodeRondo(const Node& rondo, RondoSpec& spec,
                 std::vector<Problem>& problems) {
  spec.options.present = true;
  spec.mark = rondo.mark;
  if (rondo.kind == Kind::kNull) return;
  if (rondo.kind != Kind::kMap) {
    Bad(rondo, "`rondo` must be a map",
        "write for example `rondo: {memory: enforce}`", problems);
    return;
  }
  ForEachKey(rondo, *FindSection("rondo"), problems,
             [&](absl::string_view key, const yaml::Entry& entry) {
               ReadKey(key, *entry.value, spec, problems);
             });
  // Whoever writes the key wants Rondo's controls; memory accounting needs the
  // library in the pod.
  const bool wanted = spec.options.memory != MemoryMode::kOff;
  spec.options.injection =
      spec.injection.value_or(wanted ? Injection::kEnv : Injection::kNone);
  if (spec.options.memory == MemoryMode::kEnforce &&
      spec.options.injection == Injection::kNone) {
    problems.push_back(MakeProblem(
        Code::kRondoValue, spec.injection_mark.line, spec.injection_mark.column,
        "`memory: enforce` has no effect with `injection: none`: nothing in "
        "the "
        "pod would keep the limit",
        "use injection env, file or cdi, or memory observe"));
  }
  if (spec.options.slot_memory_bytes &&
      spec.options.memory != MemoryMode::kEnforce) {
    problems.push_back(MakeProblem(
        Code::kRondoNoEffect, spec.options.slot_memory_line,
        spec.options.slot_memory_column,
        absl::StrCat(
            "`rondo.slotMemory` limits nothing: `memory` is ",
            spec.options.memory == MemoryMode::kOff ? "off" : "observe"),
        "add `memory: enforce`"));
  }
}

}  // namespace rondo::config
