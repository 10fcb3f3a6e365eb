// SPDX-License-Identifier: Apache-2.0

#include "config/yaml_scalar.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace rondo::config::yaml {
namespace {

template <size_t N>
bool IsOneOf(absl::string_view text, const char* const (&words)[N]) {
  for (const char* word : words) {
    if (text == word) return true;
  }
  return false;
}

constexpr const char* kTrue[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                 "True", "TRUE", "on",  "On",  "ON"};
constexpr const char* kFalse[] = {"n",     "N",     "no",  "No",  "NO", "false",
                                  "False", "FALSE", "off", "Off", "OFF"};
constexpr const char* kNullWords[] = {"", "~", "null", "Null", "NULL"};
constexpr const char* kNotFinite[] = {".nan",  ".NaN",  ".NAN",  ".inf",
                                      ".Inf",  ".INF",  "+.inf", "+.Inf",
                                      "+.INF", "-.inf", "-.Inf", "-.INF"};

struct Integer {
  bool negative = false;
  uint64_t magnitude = 0;
};

// strconv.ParseInt/ParseUint with base 0, after '_' was removed: a sign, then
// 0x, 0o, 0b or 0 (octal), else decimal.
std::optional<Integer> ParseInteger(absl::string_view text) {
  Integer result;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    result.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = text[1] | 0x20;
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  const char* end = text.data() + text.size();
  auto [stop, error] =
      std::from_chars(text.data(), end, result.magnitude, base);
  if (text.empty() || stop != end || error != std::errc()) return std::nullopt;
  const uint64_t limit = uint64_t{1} << 63;
  if (result.negative && result.magnitude > limit) return std::nullopt;
  return result;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool LooksLikeFloat(absl::string_view text) {
  size_t i = 0;
  auto digits = [&] {
    size_t from = i;
    while (i < text.size() && absl::ascii_isdigit(text[i])) ++i;
    return i - from;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  if (digits() > 0) {
    if (i < text.size() && text[i] == '.') {
      ++i;
      digits();
    }
  } else {
    if (i >= text.size() || text[i] != '.') return false;
    ++i;
    if (digits() == 0) return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

void SetInteger(Integer value, Node& node) {
  const uint64_t limit = uint64_t{1} << 63;
  node.json = absl::StrCat(value.negative && value.magnitude ? "-" : "",
                           value.magnitude);
  if (value.magnitude >= limit &&
      !(value.negative && value.magnitude == limit)) {
    node.kind = Kind::kFloat;
    return;
  }
  node.kind = Kind::kInt;
  node.integer = value.negative ? -static_cast<int64_t>(value.magnitude - 1) - 1
                                : static_cast<int64_t>(value.magnitude);
  if (value.magnitude == 0) node.integer = 0;
}

// A float whose JSON is an integer decodes into an int: 4.0, 1e2.
void SetFloat(double value, Node& node) {
  node.kind = Kind::kFloat;
  node.json = GoFloat(value);
  int64_t integer = 0;
  if (absl::SimpleAtoi(node.json, &integer)) {
    node.kind = Kind::kInt;
    node.integer = integer;
  }
}

// The untagged meaning. True unless the value is not finite.
bool ResolvePlain(absl::string_view text, Node& node) {
  node.kind = Kind::kString;
  if (IsOneOf(text, kTrue) || IsOneOf(text, kFalse)) {
    node.kind = Kind::kBool;
    node.boolean = IsOneOf(text, kTrue);
    node.json = node.boolean ? "true" : "false";
    return true;
  }
  if (IsOneOf(text, kNullWords)) {
    node.kind = Kind::kNull;
    node.json = "null";
    return true;
  }
  if (IsOneOf(text, kNotFinite)) return false;
  const char first = text[0];
  double number = 0;
  if (first == '.') {
    if (LooksLikeFloat(text) && absl::SimpleAtod(text, &number) &&
        std::isfinite(number)) {
      SetFloat(number, node);
    }
  } else if (absl::ascii_isdigit(first) || first == '+' || first == '-') {
    const std::string plain = absl::StrReplaceAll(text, {{"_", ""}});
    if (auto integer = ParseInteger(plain)) {
      SetInteger(*integer, node);
    } else if (LooksLikeFloat(plain) && absl::SimpleAtod(plain, &number) &&
               std::isfinite(number)) {
      SetFloat(number, node);
    }
  }
  return true;
}

}  // namespace

bool ResolveScalar(absl::string_view tag, absl::string_view text, Node& node,
                   std::string& error) {
  node.text = std::string(text);
  node.kind = Kind::kString;
  if (tag == "!!binary") {
    if (!absl::Base64Unescape(text, &node.text)) {
      error = "!!binary value contains invalid base64 data";
      return false;
    }
    return true;
  }
  const bool typed = tag == "!!int" || tag == "!!float" || tag == "!!bool" ||
                     tag == "!!null" || tag == "!!timestamp";
  if (!tag.empty() && !typed) return true;
  if (!ResolvePlain(text, node)) {
    error = absl::StrCat("unsupported value: ", text);
    return false;
  }
  const bool number = node.kind == Kind::kInt || node.kind == Kind::kFloat;
  const bool fits = tag.empty() ||
                    (tag == "!!int" && node.kind == Kind::kInt) ||
                    (tag == "!!float" && number) ||
                    (tag == "!!bool" && node.kind == Kind::kBool) ||
                    (tag == "!!null" && node.kind == Kind::kNull);
  if (!fits) error = absl::StrCat("cannot decode `", text, "` as a ", tag);
  return fits;
}

bool ScalarKey(const Node& node, std::string& key) {
  switch (node.kind) {
    case Kind::kString:
      key = node.text;
      return true;
    case Kind::kBool:
    case Kind::kInt:
      key = node.json;
      return true;
    case Kind::kFloat: {
      double value = 0;
      if (!absl::SimpleAtod(node.json, &value)) return false;
      key = absl::StrFormat("%g", value);
      return true;
    }
    default:
      return false;
  }
}

std::string GoFloat(double value) {
  if (value == 0) return std::signbit(value) ? "-0" : "0";
  const double magnitude = std::abs(value);
  char buffer[400];
  const bool exponent = magnitude < 1e-6 || magnitude >= 1e21;
  auto result = std::to_chars(
      buffer, buffer + sizeof(buffer), value,
      exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(buffer, result.ptr);
  // Go prints e-9 where C++ prints e-09.
  const size_t at = text.find("e-0");
  if (at != std::string::npos) text.erase(at + 2, 1);
  return text;
}

std::string GoQuote(absl::string_view text, bool html) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = text[i];
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || (html && (c == '<' || c == '>' || c == '&'))) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else if (absl::StartsWith(text.substr(i), "\xe2\x80\xa8") ||
               absl::StartsWith(text.substr(i), "\xe2\x80\xa9")) {
      out += text[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace rondo::config::yaml
