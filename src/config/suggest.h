// SPDX-License-Identifier: Apache-2.0
//
// The keys of the config format, section by section, and what a user may have
// meant by a key that is not there. Pure; any thread.

#ifndef RONDO_CONFIG_SUGGEST_H_
#define RONDO_CONFIG_SUGGEST_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "config/problem.h"
#include "config/yaml.h"

namespace rondo::config {

// One map of the format.
struct Section {
  const char* path;  // "sharing.timeSlicing"; "" is the top
  const char* name;  // for a person
  // NVIDIA's parser takes the keys of outer structs in any case, those inside
  // timeSlicing, mps and the entries of a list only as written.
  bool any_case;
  std::vector<const char*> keys;
  // Accepted for one more release, so that a config need not change in the same
  // moment as the agent; whoever reads them warns. Never suggested.
  std::vector<const char*> gone = {};
};

// Never null: asking for a path that does not exist is a bug.
const Section* FindSection(absl::string_view path);

// The key of `section` that `key` stands for, or null.
const char* MatchKey(const Section& section, absl::string_view key);

// A warning for each key of `map` that `section` does not have, and for each
// that stands twice. In section "rondo" unknown keys are errors.
void CheckKeys(const yaml::Node& map, const Section& section,
               std::vector<Problem>& problems);

}  // namespace rondo::config

#endif  // RONDO_CONFIG_SUGGEST_H_
