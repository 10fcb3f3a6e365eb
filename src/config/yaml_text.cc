// SPDX-License-Identifier: Apache-2.0

#include "config/yaml_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rondo::config::yaml {
namespace {

constexpr absl::string_view kBlank = " \t\r\n";

// Length of the UTF-8 sequence at the start of `text` if YAML allows the
// character, else 0.
size_t AllowedCharacter(absl::string_view text) {
  const unsigned char c = text[0];
  if (c < 0x80) {
    const bool allowed =
        (c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n' || c == '\r';
    return allowed ? 1 : 0;
  }
  const size_t size = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  if (c < 0xc2 || c > 0xf4 || text.size() < size) return 0;
  uint32_t point = c & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    const unsigned char next = text[i];
    if ((next & 0xc0) != 0x80) return 0;
    point = point << 6 | (next & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool allowed = point >= kLeast[size] && point <= 0x10ffff &&
                       (point >= 0xa0 || point == 0x85) &&
                       !(point >= 0xd800 && point <= 0xdfff) &&
                       point != 0xfffe && point != 0xffff;
  return allowed ? size : 0;
}

bool IsMarker(absl::string_view line, absl::string_view marker) {
  return absl::StartsWith(line, marker) &&
         (line.size() == 3 || absl::StrContains(kBlank, line[3]));
}

// Not blank, not a comment, not a directive.
bool IsContent(absl::string_view line) {
  const size_t first = line.find_first_not_of(kBlank);
  return first != absl::string_view::npos && line[first] != '#' &&
         line[0] != '%';
}

// Past tags, anchors, blanks and comments.
size_t SkipProperties(absl::string_view text, size_t at) {
  while (at < text.size()) {
    const char c = text[at];
    if (absl::StrContains(kBlank, c)) {
      ++at;
    } else if (c == '!' || c == '&') {
      at = std::min(text.find_first_of(kBlank, at), text.size());
    } else if (c == '#' && at > 0 && absl::StrContains(kBlank, text[at - 1])) {
      at = std::min(text.find('\n', at), text.size());
    } else {
      break;
    }
  }
  return at;
}

// The offset after the closing quote; npos if there is none.
size_t QuoteEnd(absl::string_view text, size_t at) {
  const char quote = text[at];
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != quote) {
        return i + 1;
      }
      ++i;
    }
  }
  return absl::string_view::npos;
}

bool IsQuote(absl::string_view text, size_t at) {
  return at < text.size() && (text[at] == '"' || text[at] == '\'');
}

}  // namespace

std::optional<Error> CheckText(absl::string_view text) {
  if (text.size() > kMaxBytes) {
    return Error{
        {1, 1}, true, absl::StrCat("larger than ", kMaxBytes >> 20, " MiB")};
  }
  Mark mark{1, 1};
  while (!text.empty()) {
    const size_t size = AllowedCharacter(text);
    if (size == 0) {
      return Error{mark, false,
                   "control characters are not allowed (the file must be "
                   "UTF-8 text)"};
    }
    mark.column++;
    if (text[0] == '\n') mark = {mark.line + 1, 1};
    text.remove_prefix(size);
  }
  return std::nullopt;
}

std::vector<Piece> SplitDocuments(absl::string_view text) {
  std::vector<Piece> pieces;
  size_t start = 0;
  int start_line = 0;
  bool open = false;  // content or "---" seen since `start`
  int line_number = 0;
  auto cut = [&](size_t end) {
    if (open) pieces.push_back({text.substr(start, end - start), start_line});
    open = false;
  };
  for (size_t at = 0; at < text.size(); ++line_number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t next = std::min(end + 1, text.size());
    const absl::string_view line = text.substr(at, end - at);
    if (IsMarker(line, "...")) {
      cut(next);
      start = next;
      start_line = line_number + 1;
    } else if (IsMarker(line, "---")) {
      if (open) {
        cut(at);
        start = at;
        start_line = line_number;
      }
      open = true;
    } else {
      open = open || IsContent(line);
    }
    at = next;
  }
  cut(text.size());
  return pieces;
}

std::optional<Error> CheckEdges(absl::string_view document) {
  absl::string_view rest = document;
  for (int line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const absl::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (IsContent(text)) break;
    if (absl::StartsWith(text, "%YAML") && !absl::StrContains(text, "1.1")) {
      return Error{{line, 1}, false, "found incompatible YAML document"};
    }
    if (absl::StartsWith(text, "%") && !absl::StartsWith(text, "%YAML") &&
        !absl::StartsWith(text, "%TAG")) {
      return Error{{line, 1}, false, "found unknown directive name"};
    }
  }
  const int lines = std::count(document.begin(), document.end(), '\n') + 1;
  const size_t last = document.rfind('\n') + 1;  // npos + 1 is 0
  if (last < document.size() && document[last] == '\t' &&
      TabBefore(document, document.size())) {
    return Error{
        {lines, 1}, false, "found a tab character that violates indentation"};
  }
  return std::nullopt;
}

bool TabBefore(absl::string_view text, size_t at) {
  const size_t from = text.find_last_not_of(" \t", at == 0 ? 0 : at - 1);
  const size_t first = from == absl::string_view::npos ? 0 : from + 1;
  if (first >= at || (first > 0 && text[first - 1] != '\n')) return false;
  return absl::StrContains(text.substr(first, at - first), '\t');
}

bool IndentedWithTab(absl::string_view text, int line) {
  for (int i = 1; i < line; ++i) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  const size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  return absl::StrContains(text.substr(0, first), '\t');
}

bool QuoteCloses(absl::string_view text, size_t at) {
  at = SkipProperties(text, at);
  return !IsQuote(text, at) || QuoteEnd(text, at) != absl::string_view::npos;
}

bool KeyHasColon(absl::string_view text, size_t at) {
  const size_t before = text.find_last_not_of(" \t", at == 0 ? 0 : at - 1);
  if (at > 0 && before != absl::string_view::npos && text[before] == '?') {
    return true;
  }
  at = SkipProperties(text, at);
  if (IsQuote(text, at)) {
    at = QuoteEnd(text, at);
    if (at == absl::string_view::npos) return false;
    at = std::min(text.find_first_not_of(" \t", at), text.size());
    return at < text.size() && text[at] == ':';
  }
  const size_t end = std::min(text.find('\n', at), text.size());
  for (size_t colon = text.find(':', at); colon < end;
       colon = text.find(':', colon + 1)) {
    if (colon + 1 >= text.size() ||
        absl::StrContains(kBlank, text[colon + 1])) {
      return true;
    }
  }
  return false;
}

bool NothingAt(absl::string_view text, size_t at) {
  at = SkipProperties(text, at);
  return at >= text.size() || text[at] == ',' || text[at] == ']' ||
         text[at] == '}';
}

std::string ShortTag(const std::string& tag) {
  constexpr absl::string_view kLong = "tag:yaml.org,2002:";
  if (tag == "?" || tag.empty()) return "";
  if (absl::StartsWith(tag, kLong)) {
    return absl::StrCat("!!", tag.substr(kLong.size()));
  }
  return tag;
}

}  // namespace rondo::config::yaml
