// SPDX-License-Identifier: Apache-2.0
//
// Cuts the JSON of a list, {"metadata": ..., "items": [{...}, {...}]}, into its
// items as it comes, so that a list of any length takes no more memory than its
// longest item. Whether what is cut out is JSON is for its reader to say; so it
// is for the rest, which is the list without its items.
//
// One thread. ResourceExhausted where an item or the rest is too long.

#ifndef RONDO_KUBE_ITEM_SPLITTER_H_
#define RONDO_KUBE_ITEM_SPLITTER_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rondo::kube {

class ItemSplitter {
 public:
  using OnItem = std::function<absl::Status(absl::string_view item)>;

  // An error of on_item ends Add with it.
  ItemSplitter(size_t most_item, size_t most_rest, OnItem on_item)
      : most_item_(most_item),
        most_rest_(most_rest),
        on_item_(std::move(on_item)) {}

  absl::Status Add(absl::string_view bytes);
  // The list with an empty "items", once all of it was added. What is no list
  // is not valid JSON, or has something in its "items".
  const std::string& rest() const { return rest_; }

 private:
  absl::Status Take(char c);
  void Structure(char c);  // c is outside of strings and items
  absl::Status EndItem();

  const size_t most_item_, most_rest_;
  const OnItem on_item_;
  std::string rest_, item_;
  std::string word_;  // the last string of the outermost object, then its key
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
  bool in_items_ = false;  // within the array "items"
  bool in_item_ = false;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_ITEM_SPLITTER_H_
