// SPDX-License-Identifier: Apache-2.0
#include "sim/profile.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "sim/state.h"

namespace rondo::sim {
namespace {

std::string ModelNames() {
  return absl::StrJoin(Models(), ", ", [](std::string* out, const Model& m) {
    out->append(m.id);
  });
}

// Splits "<count>x<rest>"; count is 1 where there is none.
int TakeCount(absl::string_view* text) {
  const size_t x = text->find_first_of("xX");
  int count = 0;
  if (x == absl::string_view::npos ||
      !absl::SimpleAtoi(text->substr(0, x), &count))
    return 1;
  text->remove_prefix(x + 1);
  return count;
}

// "a+b+me" -> {"a", "b+me"}: the media and graphics suffixes are part of a
// profile's name.
std::vector<std::string> SplitMigWords(absl::string_view text) {
  std::vector<std::string> words;
  for (absl::string_view word : absl::StrSplit(text, '+')) {
    const bool suffix = word == "me" || word == "me.all" || word == "gfx";
    if (suffix && !words.empty())
      absl::StrAppend(&words.back(), "+", word);
    else
      words.emplace_back(word);
  }
  return words;
}

// "1c.3g.40gb" -> "3g.40gb".
absl::string_view GpuInstancePart(absl::string_view name) {
  const size_t dot = name.find("c.");
  return dot == absl::string_view::npos ? name : name.substr(dot + 2);
}

absl::Status AddShortEntry(absl::string_view entry, Profile* profile) {
  entry = absl::StripAsciiWhitespace(entry);
  const absl::string_view whole = entry;
  const int count = TakeCount(&entry);
  if (count < 1 || count > static_cast<int>(kMaxGpus))
    return absl::InvalidArgumentError(
        absl::StrCat("'", whole, "': a node has 1 to ", kMaxGpus, " GPUs"));
  std::vector<std::string> words = SplitMigWords(entry);
  const Model* model = FindModel(words[0]);
  if (model == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("'", whole, "': no GPU model '", words[0], "'; known are ",
                     ModelNames()));
  words.erase(words.begin());
  GpuSpec spec;
  spec.model = model;
  spec.mig_enabled = !words.empty();
  auto mig = ExpandMig(*model, words);
  if (!mig.ok()) return Annotate(mig.status(), absl::StrCat("'", whole, "'"));
  spec.mig = *std::move(mig);
  profile->gpus.insert(profile->gpus.end(), count, spec);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandMig(
    const Model& model, const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (model.mig.empty())
      return absl::InvalidArgumentError(
          absl::StrCat(model.id, " has no MIG; drop '", word, "'"));
    if (absl::EqualsIgnoreCase(word, "MIG")) {
      out.insert(out.end(), model.mig[0].max_instances, model.mig[0].name);
      continue;
    }
    absl::string_view name = word;
    const int count = TakeCount(&name);
    bool known = false;
    for (const MigProfileModel& mig : model.mig)
      known |= mig.name == GpuInstancePart(name);
    if (!known || count < 1)
      return absl::InvalidArgumentError(absl::StrCat(
          model.id, " has no MIG profile '", name, "'; it has ",
          absl::StrJoin(model.mig, ", ",
                        [](std::string* text, const MigProfileModel& mig) {
                          text->append(mig.name);
                        })));
    out.insert(out.end(), count, std::string(name));
  }
  return out;
}

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  static constexpr struct {
    const char* suffix;
    uint64_t factor;
  } kUnits[] = {{"GiB", 1ull << 30},
                {"Gi", 1ull << 30},
                {"MiB", 1ull << 20},
                {"Mi", 1ull << 20},
                {"KiB", 1ull << 10},
                {"Ki", 1ull << 10},
                {"", 1}};
  for (const auto& unit : kUnits) {
    absl::string_view number = text;
    if (!absl::EndsWith(number, unit.suffix)) continue;
    number.remove_suffix(absl::string_view(unit.suffix).size());
    double value = 0;
    if (absl::SimpleAtod(number, &value) && value >= 0 && value < 1e15)
      return static_cast<uint64_t>(value * static_cast<double>(unit.factor));
    break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is not an amount of memory; write 2GiB or 512MiB"));
}

absl::StatusOr<Profile> ParseShortProfile(absl::string_view text) {
  Profile profile;
  for (absl::string_view entry : absl::StrSplit(text, ','))
    RONDO_RETURN_IF_ERROR(AddShortEntry(entry, &profile));
  if (profile.gpus.size() > kMaxGpus)
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': a node has at most ", kMaxGpus, " GPUs"));
  return profile;
}

absl::StatusOr<Profile> LoadProfile(absl::string_view text) {
  if (!absl::StrContains(text, '/') && !absl::EndsWith(text, ".yaml") &&
      !absl::EndsWith(text, ".yml"))
    return ParseShortProfile(text);
  const std::string path(text);
  RONDO_ASSIGN_OR_RETURN(const std::string yaml, ReadFile(path));
  return ParseYamlProfile(yaml, path);
}

}  // namespace rondo::sim
