// SPDX-License-Identifier: Apache-2.0

#include "config/yaml.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "config/yaml_scalar.h"
#include "config/yaml_text.h"
#include "yaml-cpp/depthguard.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"

namespace rondo::config::yaml {
namespace {

// Leaves yaml-cpp's parser from inside an event; never leaves this file.
struct Stop {
  Error error;
};

[[noreturn]] void Fail(Mark mark, std::string message, bool limit = false) {
  throw Stop{{mark, limit, std::move(message)}};
}

Mark ToMark(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {mark.line + 1, mark.column + 1};
}

// Builds the tree of one document from yaml-cpp's events.
class Builder : public YAML::EventHandler {
 public:
  // `text` is the document; `lines_before` shifts the marks of its nodes.
  Builder(absl::string_view text, int lines_before)
      : text_(text), lines_before_(lines_before) {}

  NodePtr root() const { return root_; }
  bool root_is_flow() const { return root_is_flow_; }
  // From now on a further document is an error.
  void ExpectEnd() { expect_end_ = true; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (expect_end_) Fail(Place(mark), "a second document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto node = std::make_shared<Node>();
    node->mark = Place(mark);
    // Of nothing after "key:" the place is that of whatever comes next.
    if (!stack_.empty() && stack_.back().has_key &&
        stack_.back().key.mark.line < node->mark.line)
      node->mark = stack_.back().key.mark;
    node->json = "null";
    CheckNull(mark);
    Add(std::move(node), anchor, /*merge=*/false);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto it = anchors_.find(anchor);
    if (it == anchors_.end()) {
      Fail(Place(mark), "anchor value contains itself");
    }
    Add(it->second, YAML::NullAnchor, /*merge=*/false);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    CheckTab(mark);
    auto node = std::make_shared<Node>();
    node->mark = Place(mark);
    node->quoted = tag == "!";
    const std::string short_tag = node->quoted ? "!!str" : ShortTag(tag);
    std::string error;
    if (!ResolveScalar(short_tag, value, *node, error)) {
      Fail(node->mark, std::move(error));
    }
    if (node->quoted && !QuoteCloses(text_, mark.pos)) {
      Fail(Place(mark), "found unexpected end of stream inside quotes");
    }
    key_at_ = mark.pos;
    const bool merge =
        value == "<<" && (short_tag.empty() || short_tag == "!!merge");
    Add(std::move(node), anchor, merge);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    Open(mark, Kind::kSequence, anchor, style);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Open(mark, Kind::kMap, anchor, style);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    std::shared_ptr<Node> node;
    YAML::anchor_t anchor;
    bool flow = false;
    // A map between a key and its value.
    bool has_key = false;
    bool merge = false;
    Entry key;
    // Of the keys of a map; true: from a merge.
    std::map<std::string, std::pair<size_t, bool>> index;
  };

  Mark Place(const YAML::Mark& mark) const {
    Mark place = ToMark(mark);
    if (place.line > 0) place.line += lines_before_;
    return place;
  }

  // In block context a line must not be indented with a tab.
  void CheckTab(const YAML::Mark& mark) const {
    if (!stack_.empty() && stack_.back().flow) return;
    if (TabBefore(text_, mark.pos)) {
      Fail(Place(mark), "found a tab character that violates indentation");
    }
  }

  // yaml-cpp reads a value that is not written as null; go-yaml refuses some.
  void CheckNull(const YAML::Mark& mark) const {
    if (stack_.empty()) {
      const size_t at = static_cast<size_t>(mark.pos);
      if (NothingAt(text_, at) && at < text_.size()) {
        Fail(Place(mark), "did not find expected node content");
      }
      return;
    }
    const Level& level = stack_.back();
    if (level.flow && level.node->kind == Kind::kSequence &&
        NothingAt(text_, mark.pos)) {
      Fail(Place(mark), "did not find expected node content");
    }
    if (!level.flow && level.has_key && !KeyHasColon(text_, key_at_)) {
      Fail(Place(mark), "could not find expected ':'");
    }
  }

  void Open(const YAML::Mark& mark, Kind kind, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style) {
    if (stack_.size() >= kMaxDepth) {
      Fail(Place(mark), absl::StrCat("nested deeper than ", kMaxDepth), true);
    }
    if (!stack_.empty() && stack_.back().node->kind == Kind::kMap &&
        !stack_.back().has_key) {
      Fail(Place(mark),
           "invalid map key: a list or a map, or a bracket "
           "that is not closed");
    }
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->mark = Place(mark);
    Level level;
    level.node = std::move(node);
    level.anchor = anchor;
    level.flow = style == YAML::EmitterStyle::Flow;
    if (stack_.empty()) root_is_flow_ = level.flow;
    CheckTab(mark);
    stack_.push_back(std::move(level));
  }

  void Close() {
    Level level = std::move(stack_.back());
    stack_.pop_back();
    Add(std::move(level.node), level.anchor, /*merge=*/false);
  }

  // A finished node goes into the open list or map, or becomes the root.
  void Add(std::shared_ptr<const Node> node, YAML::anchor_t anchor,
           bool merge) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = stack_.back();
    level.node->nodes += node->nodes;
    if (level.node->nodes > kMaxNodes) {
      Fail(node->mark,
           absl::StrCat("document contains excessive aliasing: more than ",
                        kMaxNodes, " values"),
           true);
    }
    if (level.node->kind == Kind::kSequence) {
      level.node->items.push_back(std::move(node));
    } else if (!level.has_key) {
      StartEntry(level, *node, merge);
    } else {
      FinishEntry(level, std::move(node));
    }
  }

  static void StartEntry(Level& level, const Node& key, bool merge) {
    level.has_key = true;
    level.merge = merge;
    level.key.mark = key.mark;
    if (!merge && !ScalarKey(key, level.key.key)) {
      Fail(key.mark, key.kind == Kind::kNull
                         ? "unsupported map key: null"
                         : "invalid map key: a list or a map, or a bracket "
                           "that is not closed");
    }
  }

  static void FinishEntry(Level& level, NodePtr value) {
    level.has_key = false;
    if (!level.merge) {
      level.key.value = std::move(value);
      Put(level, level.key, /*merged=*/false);
      return;
    }
    // go-yaml applies a merge where it stands: it overrides what is above it.
    if (value->kind == Kind::kMap) {
      for (const Entry& entry : value->entries) {
        Put(level, entry, /*merged=*/true);
      }
      return;
    }
    bool maps = value->kind == Kind::kSequence;
    for (size_t i = value->items.size(); maps && i-- > 0;) {
      maps = value->items[i]->kind == Kind::kMap;
      for (const Entry& entry : value->items[i]->entries) {
        Put(level, entry, /*merged=*/true);
      }
    }
    if (!maps) {
      Fail(value->mark,
           "map merge requires map or sequence of maps as the value");
    }
  }

  // To overrule what a merge brought is what merges are for; to overrule what
  // was written out is a repeated key.
  static void Put(Level& level, const Entry& entry, bool merged) {
    Node& map = *level.node;
    auto [it, added] =
        level.index.emplace(entry.key, std::pair(map.entries.size(), merged));
    auto& [at, was_merged] = it->second;
    if (added) return map.entries.push_back(entry);
    if (!was_merged) map.overruled.push_back(map.entries[at]);
    was_merged = merged;
    map.entries[at] = entry;
  }

  absl::string_view text_;
  int lines_before_;
  bool expect_end_ = false;
  bool root_is_flow_ = false;
  size_t key_at_ = 0;  // offset of the last scalar
  NodePtr root_;
  std::vector<Level> stack_;
  std::map<YAML::anchor_t, NodePtr> anchors_;
};

// yaml-cpp's messages name its own grammar; these name what to look for.
struct Wording {
  const char* theirs;
  const char* ours;
};
constexpr Wording kWordings[] = {
    {"end of sequence flow not found",
     "did not find expected ',' or ']': a `[` is not closed"},
    {"end of map flow not found",
     "did not find expected ',' or '}': a `{` is not closed"},
    {"illegal flow end", "a `]` or `}` closes nothing that is open"},
    {"illegal map value",
     "mapping values are not allowed in this context: a second `: ` on a line, "
     "or wrong indentation"},
    {"illegal EOF in scalar", "found unexpected end of stream inside quotes"},
    {"end of map not found",
     "did not find expected key: check the indentation"},
    {"end of sequence not found",
     "did not find expected '-' indicator: check the indentation"},
};

Error Translate(const YAML::Exception& exception, absl::string_view text) {
  Mark mark = ToMark(exception.mark);
  for (int line : {mark.line, mark.line - 1}) {
    if (line > 0 && IndentedWithTab(text, line)) {
      return {
          {line, 1}, false, "found a tab character that violates indentation"};
    }
  }
  if (dynamic_cast<const YAML::DeepRecursion*>(&exception)) {
    return {mark, true, absl::StrCat("nested deeper than ", kMaxDepth)};
  }
  for (const Wording& wording : kWordings) {
    if (exception.msg == wording.theirs) return {mark, false, wording.ours};
  }
  return {mark, false, exception.msg};
}

// yaml-cpp ends a document where it cannot read on. go-yaml does so too, and
// then drops the rest, if the rest stands further left than a block document;
// in line with it, the rest is an error.
void CheckRest(YAML::Parser& parser, Builder& builder, const Piece& piece,
               Parsed& parsed) {
  Mark rest;
  try {
    builder.ExpectEnd();
    parser.HandleNextDocument(builder);
    return;
  } catch (const Stop& stop) {
    rest = stop.error.mark;
  } catch (const YAML::Exception& exception) {
    rest = ToMark(exception.mark);
    rest.line += piece.lines_before;
  }
  const Node& root = *parsed.documents[0];
  const bool block = !builder.root_is_flow() &&
                     (root.kind == Kind::kMap || root.kind == Kind::kSequence);
  if (block && rest.column >= root.mark.column) {
    Fail(rest, "did not find expected key or '-' indicator");
  }
  parsed.ignored = rest;
}

// One document: `piece` holds nothing else.
Parsed ParsePiece(const Piece& piece) {
  Parsed parsed;
  parsed.error = CheckEdges(piece.text);
  if (parsed.error) return parsed;
  try {
    Builder builder(piece.text, piece.lines_before);
    std::istringstream stream{std::string(piece.text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    NodePtr root = builder.root();
    parsed.documents.push_back(root ? root : std::make_shared<Node>());
    CheckRest(parser, builder, piece, parsed);
    return parsed;
  } catch (const Stop& stop) {
    parsed.error = stop.error;
  } catch (const YAML::Exception& exception) {
    parsed.error = Translate(exception, piece.text);
    parsed.error->mark.line += piece.lines_before;
  } catch (const std::exception& exception) {
    parsed.error = Error{{1, 1}, false, exception.what()};
  }
  parsed.documents.clear();
  return parsed;
}

}  // namespace

Parsed Parse(absl::string_view text) {
  Parsed parsed;
  parsed.error = CheckText(text);
  if (parsed.error) return parsed;
  const std::vector<Piece> pieces = SplitDocuments(text);
  if (pieces.empty()) {
    parsed.documents.push_back(std::make_shared<Node>());
    return parsed;
  }
  parsed = ParsePiece(pieces[0]);
  if (pieces.size() > 1 && !parsed.ignored) {
    parsed.ignored = Mark{pieces[1].lines_before + 1, 1};
  }
  return parsed;
}

Parsed ParseAll(absl::string_view text) {
  Parsed all;
  all.error = CheckText(text);
  if (all.error) return all;
  for (const Piece& piece : SplitDocuments(text)) {
    Parsed one = ParsePiece(piece);
    all.error = one.error;
    if (all.error) break;
    all.documents.push_back(one.documents[0]);
  }
  if (all.documents.empty() && !all.error) {
    all.documents.push_back(std::make_shared<Node>());
  }
  return all;
}

}  // namespace rondo::config::yaml
