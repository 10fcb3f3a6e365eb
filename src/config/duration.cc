// SPDX-License-Identifier: Apache-2.0

#include "config/duration.h"

#include <cmath>
#include <iterator>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "config/yaml_scalar.h"

namespace rondo::config {
namespace {

struct Unit {
  const char* name;
  double size;
};

constexpr Unit kDurations[] = {
    {"ns", 1},   {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3},
    {"ms", 1e6}, {"s", 1e9},  {"m", 60e9},        {"h", 3600e9},
};

constexpr Unit kQuantities[] = {
    {"Ei", 1152921504606846976.0},
    {"Pi", 1125899906842624.0},
    {"Ti", 1099511627776.0},
    {"Gi", 1073741824.0},
    {"Mi", 1048576.0},
    {"Ki", 1024.0},
    {"E", 1e18},
    {"P", 1e15},
    {"T", 1e12},
    {"G", 1e9},
    {"M", 1e6},
    {"k", 1e3},
    {"", 1},
};

absl::Status Invalid(absl::string_view what, absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("time: ", what, " ", yaml::GoQuote(text, false)));
}

bool IsNumberCharacter(char c) { return absl::ascii_isdigit(c) || c == '.'; }

// Takes "12.5" off the front. False if there is no digit.
bool TakeNumber(absl::string_view& text, double& value) {
  size_t end = 0;
  while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  size_t digits = end;
  if (end < text.size() && text[end] == '.') {
    ++end;
    while (end < text.size() && absl::ascii_isdigit(text[end])) {
      ++end;
      ++digits;
    }
  }
  if (digits == 0) return false;
  std::string number(text.substr(0, end));
  text.remove_prefix(end);
  return absl::SimpleAtod(number, &value);
}

// Takes "e9" off the front. "E" alone is the unit of 10^18.
bool TakeExponent(absl::string_view& text, double& value) {
  if (text.size() < 2 || absl::ascii_tolower(text[0]) != 'e') return false;
  int exponent = 0;
  // SimpleAtoi would take spaces too.
  if (text.find_first_not_of("+-0123456789", 1) != absl::string_view::npos ||
      !absl::SimpleAtoi(text.substr(1), &exponent))
    return false;
  text = "";
  value *= std::pow(10.0, exponent);
  return true;
}

}  // namespace

absl::StatusOr<std::chrono::nanoseconds> ParseGoDuration(
    absl::string_view text) {
  absl::string_view rest = text;
  const bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+'))
    rest.remove_prefix(1);
  if (rest == "0") return std::chrono::nanoseconds(0);
  if (rest.empty()) return Invalid("invalid duration", text);
  double total = 0;
  while (!rest.empty()) {
    double number = 0;
    if (!TakeNumber(rest, number)) return Invalid("invalid duration", text);
    size_t end = 0;
    while (end < rest.size() && !IsNumberCharacter(rest[end])) ++end;
    const absl::string_view name = rest.substr(0, end);
    if (name.empty()) return Invalid("missing unit in duration", text);
    const Unit* unit = nullptr;
    for (const Unit& candidate : kDurations) {
      if (name == candidate.name) unit = &candidate;
    }
    if (unit == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("time: unknown unit ", yaml::GoQuote(name, false),
                       " in duration ", yaml::GoQuote(text, false)));
    }
    rest.remove_prefix(end);
    total += number * unit->size;
    if (total >= 9223372036854775808.0)
      return Invalid("invalid duration", text);
  }
  return std::chrono::nanoseconds(
      static_cast<int64_t>(negative ? -total : total));
}

absl::StatusOr<uint64_t> ParseQuantity(absl::string_view text) {
  absl::string_view rest = text;
  double number = 0;
  const Unit* unit = nullptr;
  if (TakeNumber(rest, number)) {
    if (TakeExponent(rest, number) && rest.empty())
      unit = &kQuantities[std::size(kQuantities) - 1];
    for (const Unit& candidate : kQuantities) {
      if (rest == candidate.name) unit = &candidate;
    }
  }
  if (unit == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "` is not a quantity"));
  }
  const double bytes = number * unit->size;
  if (bytes >= 9223372036854775808.0)
    return absl::OutOfRangeError("is more memory than can be counted");
  if (bytes != std::floor(bytes))
    return absl::OutOfRangeError("is not a whole number of bytes");
  return static_cast<uint64_t>(bytes);
}

std::string FormatQuantity(uint64_t bytes) {
  constexpr const char* kNames[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  int unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < 6) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrCat(bytes, kNames[unit]);
}

std::string FormatDuration(std::chrono::microseconds duration) {
  const int64_t us = duration.count();
  if (us % 1'000'000 == 0) return absl::StrCat(us / 1'000'000, "s");
  if (us % 1'000 == 0) return absl::StrCat(us / 1'000, "ms");
  return absl::StrCat(us, "us");
}

}  // namespace rondo::config
