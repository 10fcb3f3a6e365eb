// SPDX-License-Identifier: Apache-2.0
//
// Looks at YAML text itself, for what yaml-cpp accepts and go-yaml refuses: bad
// characters, unclosed quotes, keys without a colon. Pure; any thread.

#ifndef RONDO_CONFIG_YAML_TEXT_H_
#define RONDO_CONFIG_YAML_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "config/yaml.h"

namespace rondo::config::yaml {

// The text is too large, not UTF-8, or holds control characters.
std::optional<Error> CheckText(absl::string_view text);

// One document of a stream and the number of lines before it. A line that
// starts with "---" or "..." always separates, even inside a quoted scalar.
struct Piece {
  absl::string_view text;
  int lines_before = 0;
};
std::vector<Piece> SplitDocuments(absl::string_view text);

// Directives other than "%YAML 1.1" and "%TAG" are refused by go-yaml v2; so is
// a last line of blanks with a tab, unless it ends with a line break.
std::optional<Error> CheckEdges(absl::string_view document);

// Only blanks, at least one of them a tab, stand before `at` on its line.
bool TabBefore(absl::string_view text, size_t at);

// The line (1-based) is indented with a tab.
bool IndentedWithTab(absl::string_view text, int line);

// `at` is where a scalar starts, or the tag or anchor before it.
// A quoted scalar has its closing quote; true for any other.
bool QuoteCloses(absl::string_view text, size_t at);

// In block context: a ':' stands after the one-line key at `at`, or the key is
// written with '?'.
bool KeyHasColon(absl::string_view text, size_t at);

// A value that is not written at all: `at` points at a ',' or a closing
// bracket.
bool NothingAt(absl::string_view text, size_t at);

// "tag:yaml.org,2002:int" -> "!!int". yaml-cpp gives "?" to a plain scalar and
// "!" to a quoted one.
std::string ShortTag(const std::string& tag);

}  // namespace rondo::config::yaml

#endif  // RONDO_CONFIG_YAML_TEXT_H_
