// SPDX-License-Identifier: Apache-2.0

#include "config/merge.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/suggest.h"
#include "config/flag_table.h"
#include "config/yaml_scalar.h"

namespace rondo::config {
namespace {

template <typename T>
struct Word {
  T value;
  const char* text;
};

constexpr Word<MigStrategy> kMigWords[] = {{MigStrategy::kNone, "none"},
                                           {MigStrategy::kSingle, "single"},
                                           {MigStrategy::kMixed, "mixed"}};
constexpr Word<DeviceListStrategy> kListWords[] = {
    {DeviceListStrategy::kEnvvar, "envvar"},
    {DeviceListStrategy::kVolumeMounts, "volume-mounts"},
    {DeviceListStrategy::kCdiAnnotations, "cdi-annotations"},
    {DeviceListStrategy::kCdiCri, "cdi-cri"}};
constexpr Word<DeviceIdStrategy> kIdWords[] = {
    {DeviceIdStrategy::kUuid, "uuid"}, {DeviceIdStrategy::kIndex, "index"}};
constexpr Word<AllocationPolicy> kPolicyWords[] = {
    {AllocationPolicy::kDistributed, "distributed"},
    {AllocationPolicy::kPacked, "packed"},
    {AllocationPolicy::kSpread, "spread"}};

template <typename T, size_t N>
const char* FindWord(const Word<T> (&words)[N], T value) {
  for (const Word<T>& word : words) {
    if (word.value == value) return word.text;
  }
  return "";
}

template <typename T, size_t N>
std::optional<T> FindValue(const Word<T> (&words)[N], const std::string& text) {
  for (const Word<T>& word : words) {
    if (text == word.text) return word.value;
  }
  return std::nullopt;
}

template <typename T, size_t N>
std::string Hint(const Word<T> (&words)[N], const std::string& given) {
  std::vector<std::string> known;
  for (const Word<T>& word : words) known.push_back(word.text);
  const std::string near = NearestWord(given, known);
  return near.empty() ? absl::StrCat("values: ", absl::StrJoin(known, ", "))
                      : absl::StrCat("did you mean ", near, "?");
}

// Where a value came from decides how its errors read.
struct Source {
  const char* variable = nullptr;  // of the environment
  bool command_line = false;
  yaml::Mark mark;  // of the file
};

class Merger {
 public:
  Merger(const Spec& spec, const Overrides& overrides, const Getenv& getenv,
         std::vector<Problem>& problems)
      : spec_(spec),
        overrides_(overrides),
        getenv_(getenv),
        problems_(problems) {}

  void String(const char* key, std::string& value) {
    if (auto given = Find(key)) value = given->empty() ? "" : given->front();
  }

  void Bool(const char* key, bool& value) {
    auto given = Find(key);
    if (!given || given->empty()) return;
    const std::string& text = given->front();
    if (source_.variable != nullptr && text.empty()) {
      value = false;
      return;
    }
    const std::optional<bool> parsed = ParseBool(text);
    if (parsed) {
      value = *parsed;
    } else if (source_.command_line) {
      Report(absl::StrCat("invalid boolean value ", yaml::GoQuote(text, false),
                          " for -", FindFlag(key)->names[0], ": parse error"),
             "write true or false");
    } else {
      Report(
          absl::StrCat("could not parse ", yaml::GoQuote(text, false),
                       " as bool value from environment variable ",
                       yaml::GoQuote(source_.variable, false), " for flag ",
                       FindFlag(key)->names[0], ": strconv.ParseBool: parsing ",
                       yaml::GoQuote(text, false), ": invalid syntax"),
          "write true or false");
    }
  }

  template <typename T, size_t N>
  void OneWord(const char* key, const Word<T> (&words)[N],
               absl::string_view error, T& value) {
    auto given = Find(key);
    if (!given) return;
    const std::string text = given->empty() ? "" : given->front();
    if (auto found = FindValue(words, text)) {
      value = *found;
    } else {
      Report(absl::StrCat(error, text), Hint(words, text));
    }
  }

  void ListStrategies(std::vector<DeviceListStrategy>& value) {
    auto given = Find("plugin.deviceListStrategy");
    if (!given) return;
    std::vector<DeviceListStrategy> known;
    std::vector<std::string> unknown;
    for (const std::string& word : *given) {
      auto found = FindValue(kListWords, word);
      if (!found) {
        unknown.push_back(word);
      } else if (std::find(known.begin(), known.end(), *found) == known.end()) {
        known.push_back(*found);
      }
    }
    if (unknown.empty()) {
      value = known;
      if (!known.empty()) return;
      problems_.push_back(MakeProblem(
          Code::kFlagIgnored, source_.mark.line, source_.mark.column,
          "no device list strategy: containers would get no GPU",
          "remove the key, or name one"));
      return;
    }
    // NVIDIA's parser takes any list from a file. One unknown word beside a
    // known one must not take the node's GPUs away.
    if (source_.mark.line > 0 && !known.empty()) {
      problems_.push_back(MakeProblem(
          Code::kFlagIgnored, source_.mark.line, source_.mark.column,
          absl::StrCat("unknown device list strategy ignored: ",
                       absl::StrJoin(unknown, ", "),
                       " (NVIDIA's plugin refuses to start with it)"),
          Hint(kListWords, unknown[0])));
      value = known;
      return;
    }
    Report(absl::StrCat("invalid --device-list-strategy option: invalid "
                        "strategy: ",
                        unknown[0]),
           Hint(kListWords, unknown[0]));
  }

  void Ints(const char* key, std::vector<int>& value) {
    auto given = Find(key);
    if (!given) return;
    value.clear();
    for (const std::string& text : *given) {
      int number = 0;
      if (!absl::SimpleAtoi(text, &number)) {
        Report(absl::StrCat("could not parse ", yaml::GoQuote(text, false),
                            " as int slice value for flag ",
                            FindFlag(key)->names[0]),
               "write 0 or remove it");
        return;
      }
      value.push_back(number);
    }
  }

  void Words(const char* key, std::string& value) {
    if (auto given = Find(key)) value = absl::StrJoin(*given, ",");
  }

  void Report(std::string message, std::string hint = "",
              Code code = Code::kFlagValue) {
    if (source_.variable != nullptr) {
      hint = absl::StrCat(source_.variable, " in the environment sets it",
                          hint.empty() ? "" : "; ", hint);
    }
    problems_.push_back(MakeProblem(code, source_.mark.line,
                                    source_.mark.column, std::move(message),
                                    std::move(hint)));
  }

 private:
  std::optional<std::vector<std::string>> Find(const char* key) {
    const FlagInfo& flag = *FindFlag(key);
    source_ = Source();
    if (auto it = overrides_.command_line.find(key);
        it != overrides_.command_line.end()) {
      source_.command_line = true;
      return Override(
          flag, it->second,
          absl::StrCat("--", flag.names[0], " on the command line"));
    }
    for (const char* variable : flag.environment) {
      if (variable == nullptr || !getenv_) continue;
      if (auto value = getenv_(variable)) {
        source_.variable = variable;
        return Override(flag, *value,
                        absl::StrCat(variable, " in the environment"));
      }
    }
    auto it = spec_.flags.find(key);
    if (it == spec_.flags.end()) return std::nullopt;
    source_.mark = it->second.mark;
    return it->second.values;
  }

  std::vector<std::string> Override(const FlagInfo& flag,
                                    const std::string& text,
                                    const std::string& by) {
    std::vector<std::string> values = Split(flag, text);
    auto it = spec_.flags.find(flag.key);
    if (it != spec_.flags.end() && it->second.values != values) {
      problems_.push_back(MakeProblem(
          Code::kFlagOverridden, it->second.mark.line, it->second.mark.column,
          absl::StrCat("`", flag.key, "` of the file is overridden by ", by,
                       ": ", text)));
    }
    return values;
  }

  static std::vector<std::string> Split(const FlagInfo& flag,
                                        const std::string& text) {
    if (flag.type != FlagType::kStringList && flag.type != FlagType::kIntList) {
      return {text};
    }
    std::vector<std::string> words;
    for (absl::string_view word : absl::StrSplit(text, ',')) {
      words.emplace_back(absl::StripAsciiWhitespace(word));
    }
    return words;
  }

  const Spec& spec_;
  const Overrides& overrides_;
  const Getenv& getenv_;
  std::vector<Problem>& problems_;
  Source source_;
};

void MergeImex(const Spec& spec, Merger& merger, Imex& imex,
               std::vector<Problem>& problems) {
  imex.required = spec.imex_required;
  for (int64_t id : spec.imex_channels) {
    // Anything but 0 is refused below; out of range stays out of range.
    imex.channel_ids.push_back(
        static_cast<int>(std::clamp<int64_t>(id, INT32_MIN, INT32_MAX)));
  }
  merger.Ints("imex.channelIDs", imex.channel_ids);
  merger.Bool("imex.required", imex.required);
  const std::vector<int>& ids = imex.channel_ids;
  if (ids.empty() || (ids.size() == 1 && ids[0] == 0)) return;
  problems.push_back(MakeProblem(
      Code::kImex, spec.imex_mark.line, spec.imex_mark.column,
      absl::StrCat("invalid IMEX channel IDs: invalid IMEX config: channelIDs "
                   "must be [] or [0]; found [",
                   absl::StrJoin(ids, " "), "]"),
      "write [0] or []"));
}

}  // namespace

std::optional<bool> ParseBool(absl::string_view text) {
  for (const char* word : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == word) return true;
  }
  for (const char* word : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

const char* ToWord(MigStrategy value) { return FindWord(kMigWords, value); }
const char* ToWord(DeviceListStrategy value) {
  return FindWord(kListWords, value);
}
const char* ToWord(DeviceIdStrategy value) { return FindWord(kIdWords, value); }
const char* ToWord(AllocationPolicy value) {
  return FindWord(kPolicyWords, value);
}

void MergeFlags(const Spec& spec, const Overrides& overrides,
                const Getenv& getenv, Plan& plan,
                std::vector<Problem>& problems) {
  Merger merger(spec, overrides, getenv, problems);
  Flags& flags = plan.flags;
  merger.OneWord("migStrategy", kMigWords,
                 "unknown MIG strategy: ", flags.mig_strategy);
  merger.Bool("failOnInitError", flags.fail_on_init_error);
  merger.String("mpsRoot", flags.mps_root);
  merger.String("nvidiaDriverRoot", flags.nvidia_driver_root);
  merger.String("nvidiaDevRoot", flags.nvidia_dev_root);
  if (flags.nvidia_dev_root.empty()) {
    flags.nvidia_dev_root = flags.nvidia_driver_root;
  }
  merger.Bool("gdrcopyEnabled", flags.gdrcopy_enabled);
  merger.Bool("gdsEnabled", flags.gds_enabled);
  merger.Bool("mofedEnabled", flags.mofed_enabled);
  merger.Bool("useNodeFeatureAPI", flags.use_node_feature_api);
  merger.String("deviceDiscoveryStrategy", flags.device_discovery_strategy);
  const std::string& discovery = flags.device_discovery_strategy;
  if (discovery != "auto" && discovery != "nvml" && discovery != "tegra") {
    merger.Report(
        absl::StrCat("invalid --device-discovery-strategy option ", discovery),
        "values: auto, nvml, tegra");
  }
  merger.Bool("plugin.passDeviceSpecs", flags.pass_device_specs);
  merger.ListStrategies(flags.device_list_strategies);
  merger.OneWord(
      "plugin.deviceIDStrategy", kIdWords,
      "invalid --device-id-strategy option: ", flags.device_id_strategy);
  merger.String("plugin.cdiAnnotationPrefix", flags.cdi_annotation_prefix);
  merger.String("plugin.nvidiaCTKPath", flags.nvidia_cdi_hook_path);
  merger.String("plugin.containerDriverRoot", flags.container_driver_root);
  merger.OneWord("plugin.sharedDevicesAllocationPolicy", kPolicyWords,
                 "invalid --shared-devices-allocation-policy option: ",
                 flags.allocation_policy);
  merger.String("configFile", flags.config_file);
  merger.String("kubeletSocket", flags.kubelet_socket);
  merger.Words("cdiFeatureFlags", flags.cdi_feature_flags);
  merger.Words("cdiDisableHooks", flags.cdi_disable_hooks);
  MergeImex(spec, merger, plan.imex, problems);
}

}  // namespace rondo::config
