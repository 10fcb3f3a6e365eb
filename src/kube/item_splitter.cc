// SPDX-License-Identifier: Apache-2.0
#include "kube/item_splitter.h"

namespace rondo::kube {
namespace {

constexpr size_t kMostKey = 16;  // more than "items" has

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

absl::Status ItemSplitter::Add(absl::string_view bytes) {
  for (const char c : bytes)
    if (absl::Status status = Take(c); !status.ok()) return status;
  return absl::OkStatus();
}

absl::Status ItemSplitter::Take(char c) {
  const bool starts = in_items_ && depth_ == 2 && !in_string_ && c == '{';
  if (starts) in_item_ = true;
  if (in_item_) {
    item_ += c;
    if (item_.size() > most_item_)
      return absl::ResourceExhaustedError("an item of the list is too long");
  } else if (!(in_items_ && depth_ == 2 && (c == ',' || IsSpace(c)))) {
    rest_ += c;  // without what stands between items
    if (rest_.size() > most_rest_)
      return absl::ResourceExhaustedError("the list is no list of items");
  }
  if (in_string_) {
    if (escaped_)
      escaped_ = false;
    else if (c == '\\')
      escaped_ = true;
    else if (c == '"')
      in_string_ = false;
    if (in_string_ && depth_ == 1 && word_.size() < kMostKey) word_ += c;
    return absl::OkStatus();
  }
  Structure(c);
  return in_item_ && depth_ == 2 ? EndItem() : absl::OkStatus();
}

void ItemSplitter::Structure(char c) {
  switch (c) {
    case '"':
      in_string_ = true;
      if (depth_ == 1) word_.clear();
      break;
    case '[':
    case '{':
      if (depth_ == 1) in_items_ = c == '[' && word_ == "items";
      ++depth_;
      break;
    case ']':
    case '}':
      --depth_;
      if (depth_ == 1) in_items_ = false;
      break;
    case ',':
      if (depth_ == 1) word_.clear();
      break;
    default:
      break;
  }
}

absl::Status ItemSplitter::EndItem() {
  in_item_ = false;
  absl::Status status = on_item_(item_);
  item_.clear();
  return status;
}

}  // namespace rondo::kube
