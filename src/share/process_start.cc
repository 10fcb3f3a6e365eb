// SPDX-License-Identifier: Apache-2.0
#include "share/process_start.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace rondo::share {

// proc(5): the 22nd word of stat. The second is a name that the process
// chooses, blanks and brackets included.
uint64_t ProcessStart(int32_t pid) {
  if (pid <= 0) return 0;
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  if (!stat.ok()) return 0;
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return 0;
  // From ")" on, which is here the second word's end.
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::string_view(*stat).substr(name_end), ' ');
  uint64_t ticks = 0;
  if (words.size() <= 20 || !absl::SimpleAtoi(words[20], &ticks)) return 0;
  return ticks;
}

}  // namespace rondo::share
