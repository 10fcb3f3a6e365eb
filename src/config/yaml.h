// SPDX-License-Identifier: Apache-2.0
//
// YAML 1.1 text -> a small tree of our own, with the meaning that NVIDIA's
// plugin gives it (sigs.k8s.io/yaml: go-yaml v2, then JSON): yes/no/on/off are
// booleans, 010 is 8, 1e2 is the integer 100, keys become strings, the last of
// two equal keys wins, only the first document counts. JSON is a subset.
//
// Pure; any thread. Never throws, never recurses deeper than kMaxDepth; a text
// that is too large, too deep or an alias bomb is one Error. The only file that
// includes yaml-cpp is yaml.cc.

#ifndef RONDO_CONFIG_YAML_H_
#define RONDO_CONFIG_YAML_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rondo::config::yaml {

// A ConfigMap holds at most 1 MiB; a manifest may hold a few.
inline constexpr size_t kMaxBytes = 4 << 20;
inline constexpr int kMaxDepth = 100;
// Nodes of the tree with every alias written out.
inline constexpr uint64_t kMaxNodes = 1'000'000;

// A place in the text, 1-based; 0 = none.
struct Mark {
  int line = 0;
  int column = 0;
};

enum class Kind {
  kNull,
  kBool,
  kInt,
  kFloat,  // also integers beyond int64
  kString,
  kSequence,
  kMap
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Entry {
  std::string key;
  Mark mark;  // of the key
  NodePtr value;
};

struct Node {
  Kind kind = Kind::kNull;
  Mark mark;
  bool quoted = false;  // a scalar in quotes, or a block scalar
  bool boolean = false;
  int64_t integer = 0;
  // kString: the value. Other scalars: as written ("010", "yes").
  std::string text;
  // kBool, kInt, kFloat, kNull: as JSON ("8", "true").
  std::string json;
  std::vector<NodePtr> items;    // kSequence
  std::vector<Entry> entries;    // kMap, each key once, in order
  std::vector<Entry> overruled;  // kMap: earlier entries of a repeated key
  uint64_t nodes = 1;            // this one and all below, aliases written out

  // The entry with exactly this key, or null.
  const Entry* Find(absl::string_view key) const;
};

struct Error {
  Mark mark;
  bool limit = false;   // too large, too deep, too many aliases
  std::string message;  // "found a tab character that violates indentation"
};

struct Parsed {
  // In order. Parse gives at most one; an empty text gives one null node.
  std::vector<NodePtr> documents;
  std::optional<Error> error;  // of the document after the last one above
  // Parse: where text begins that does not count, because the first document
  // has ended before it.
  std::optional<Mark> ignored;
};

// The first document.
Parsed Parse(absl::string_view text);

// All documents, up to the first one that is broken.
Parsed ParseAll(absl::string_view text);

// One line of JSON with sorted keys, escaped as Go's encoding/json does it.
std::string ToJson(const Node& node);

// "string", "number", "bool", "array", "object" or "null": Go's word for a JSON
// value of the node's kind.
absl::string_view JsonKind(const Node& node);

}  // namespace rondo::config::yaml

#endif  // RONDO_CONFIG_YAML_H_
