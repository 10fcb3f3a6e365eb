// SPDX-License-Identifier: Apache-2.0
//
// Reads one value of a known type out of a node, with one wording for "wrong
// type". Pure; any thread.

#ifndef RONDO_CONFIG_READ_VALUE_H_
#define RONDO_CONFIG_READ_VALUE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "config/problem.h"
#include "config/suggest.h"
#include "config/yaml.h"

namespace rondo::config {

// "the string "4"", "a list": what stands there.
std::string Have(const yaml::Node& node);

// "`replicas` must be an integer, not the string "4"" as an error at the node.
// `wanted` has its article.
Problem WrongType(absl::string_view what, absl::string_view wanted,
                  const yaml::Node& node);

// Each returns false after appending a problem. Null is not of any type; the
// callers know what it means at their place.
bool ReadString(const yaml::Node& node, absl::string_view what,
                std::string& value, std::vector<Problem>& problems);
bool ReadBool(const yaml::Node& node, absl::string_view what, bool& value,
              std::vector<Problem>& problems);
bool ReadInt(const yaml::Node& node, absl::string_view what, int64_t& value,
             std::vector<Problem>& problems);
// False without a problem for null.
bool ReadMap(const yaml::Node& node, absl::string_view what,
             std::vector<Problem>& problems);

// Calls `each(key of the section, entry)` for the known keys of a map, in the
// order in which NVIDIA's parser takes them (sorted by the text of the key; of
// `Flags` and `flags` the latter counts), after warning of the unknown ones.
void ForEachKey(const yaml::Node& map, const Section& section,
                std::vector<Problem>& problems,
                const std::function<void(absl::string_view key,
                                         const yaml::Entry& entry)>& each);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_READ_VALUE_H_
