// SPDX-License-Identifier: Apache-2.0
#include "config/amount.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "config/duration.h"
#include "config/problem.h"

namespace rondo::config {
namespace {

constexpr size_t kMostShown = 64;
constexpr char kSuchAs[] = "write a quantity such as ";
constexpr char kAcceptedMemory[] =
    "write a quantity such as 8Gi, at least 64Mi";

bool Number(absl::string_view text, double& number) {
  // It would take hexadecimal numbers too.
  return text.find_first_of("xX") == absl::string_view::npos &&
         absl::SimpleAtod(text, &number) && std::isfinite(number);
}

// What is wrong with any number alike; empty: nothing of that.
std::string CommonMistake(absl::string_view text) {
  if (absl::StripAsciiWhitespace(text).empty()) return "is empty";
  if (absl::StartsWith(text, "-")) return "is negative";
  if (absl::EndsWith(text, "%")) return "is a percentage";
  if (absl::StrContains(text, ',')) return "has a comma in it";
  return "";
}

// "GB", "gi", "Mib" as Kubernetes would have them; empty for no such thing.
std::string NearestUnit(absl::string_view unit) {
  std::string lower = absl::AsciiStrToLower(unit);
  if (lower.size() > 1 && lower.back() == 'b') lower.pop_back();
  if (lower.size() == 2 && lower[1] == 'i') lower.pop_back();
  for (const char* known : {"Ki", "Mi", "Gi", "Ti"})
    if (lower == std::string(1, absl::ascii_tolower(known[0]))) return known;
  return "";
}

// What may have been meant by a text that is no amount; empty: no idea.
std::string Guess(absl::string_view text) {
  const auto fits = [](const std::string& guess) {
    const auto bytes = ParseQuantity(guess);
    return bytes.ok() && *bytes >= kLeastSlotMemory;
  };
  std::string clean = absl::StrReplaceAll(
      text, {{" ", ""}, {"\t", ""}, {"\n", ""}, {",", "."}, {"+", ""}});
  if (fits(clean)) return clean;
  const size_t end = clean.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string::npos) return "";
  const std::string unit = NearestUnit(clean.substr(end));
  if (unit.empty()) return "";
  clean.resize(end);
  clean += unit;
  return fits(clean) ? clean : "";
}

// Nothing but a number, and so few bytes that GiB or MiB were meant.
std::optional<Mistake> NoUnit(absl::string_view text) {
  if (text.size() > kMostShown) return std::nullopt;
  double number = 0;
  if (text.find_first_not_of("0123456789.") != absl::string_view::npos ||
      !Number(text, number) || number >= kLeastSlotMemory)
    return std::nullopt;
  Mistake mistake{.wrong = number == 0 ? "is no memory at all"
                                       : "has no unit, so it means bytes",
                  .remedy = kAcceptedMemory};
  if (number > 0 && number < 512)
    mistake.remedy = absl::StrCat(kSuchAs, text, "Gi");
  else if (number >= 512 && number < 1 << 20)
    mistake.remedy = absl::StrCat(kSuchAs, text, "Mi");
  return mistake;
}

std::string NoQuantity(absl::string_view text) {
  if (text.find_first_of(" \t\n\r") != absl::string_view::npos)
    return "has a space in it";
  const size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == absl::string_view::npos)
    return "is not an amount of memory";
  const absl::string_view unit = text.substr(end);
  if (unit[0] == 'x' || unit[0] == 'X') return "is not a decimal number";
  return absl::StrCat("has the unknown unit ", Shown(unit));
}

}  // namespace

std::string Shown(absl::string_view text) {
  return text.size() <= kMostShown
             ? absl::StrCat("\"", Printable(text), "\"")
             : absl::StrCat("\"", Printable(text.substr(0, kMostShown)),
                            "...\"");
}

std::string Describe(absl::string_view text, const Mistake& mistake) {
  return absl::StrCat(Shown(text), " ", mistake.wrong, ": ", mistake.remedy);
}

std::optional<Mistake> ReadSlotMemory(absl::string_view text, uint64_t& bytes) {
  if (auto mistake = NoUnit(text)) return mistake;
  Mistake mistake{.wrong = CommonMistake(text), .remedy = kAcceptedMemory};
  const auto read = ParseQuantity(text);
  if (read.ok() && *read >= kLeastSlotMemory) {
    bytes = *read;
    return std::nullopt;
  }
  if (read.ok()) {
    mistake.wrong =
        *read == 0 ? "is no memory at all"
                   : absl::StrCat("is under ", FormatQuantity(kLeastSlotMemory),
                                  ", too small for any CUDA program");
    return mistake;
  }
  if (absl::IsOutOfRange(read.status())) {
    mistake.wrong = std::string(read.status().message());
    return mistake;
  }
  if (mistake.wrong.empty()) mistake.wrong = NoQuantity(text);
  // Texts of any length come in; a slip of an amount is short.
  const std::string guess = text.size() <= kMostShown ? Guess(text) : "";
  if (!guess.empty()) mistake.remedy = absl::StrCat(kSuchAs, guess);
  return mistake;
}

std::optional<Mistake> ReadNumber(absl::string_view text,
                                  const NumberRange& range, double& number) {
  const auto inside = [&](double value) {
    return value <= range.most &&
           (range.above_least ? value > range.least : value >= range.least);
  };
  double value = 0;
  const bool is_number = Number(text, value);
  if (is_number && inside(value)) {
    number = value;
    return std::nullopt;
  }
  Mistake mistake{.wrong = "", .remedy = range.accepted};
  if (is_number)
    mistake.wrong = value > range.most ? absl::StrCat("is above ", range.most)
                    : range.above_least
                        ? absl::StrCat("is not above ", range.least)
                        : absl::StrCat("is under ", range.least);
  else if (mistake.wrong = CommonMistake(text); mistake.wrong.empty())
    mistake.wrong = "is not a number";
  std::string clean = absl::StrReplaceAll(text.substr(0, kMostShown),
                                          {{",", "."}, {" ", ""}, {"%", ""}});
  if (!Number(clean, value)) return mistake;
  if (absl::EndsWith(text, "%") || (range.is_part && value >= 2)) value /= 100;
  if (inside(value)) mistake.remedy = absl::StrCat("write ", value);
  return mistake;
}

}  // namespace rondo::config
