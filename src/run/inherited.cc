// SPDX-License-Identifier: Apache-2.0
#include "run/inherited.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "share/shim_library.h"

namespace rondo::run {
namespace {

namespace fs = std::filesystem;

// Not of the kernel's own, and not dead: those have no memory.
bool IsProgram(const fs::path& process) {
  const auto pages = ReadFile(process / "statm");
  return pages.ok() && !absl::StartsWith(*pages, "0 ");
}

void Look(const std::string& run_dir, Inherited* found) {
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    int pid = 0;
    if (!absl::SimpleAtoi(at->path().filename().string(), &pid) ||
        pid == getpid())
      continue;
    const auto environment = ReadFile(at->path() / "environ");
    if (!environment.ok()) continue;  // it has ended, or is another user's
    if (environment->empty()) found->uncertain |= IsProgram(at->path());
    std::string slot = SlotIn(*environment, run_dir);
    if (slot.empty() && !IsWhole(*environment))
      slot = SlotInMaps(ReadFile(at->path() / "maps").value_or(""), run_dir);
    if (!slot.empty()) found->slots.insert(std::move(slot));
  }
}

}  // namespace

std::string SlotIn(absl::string_view environment, absl::string_view run_dir) {
  absl::string_view slot, folder;
  for (absl::string_view word : absl::StrSplit(environment, '\0')) {
    if (absl::ConsumePrefix(&word, "RONDO_SLOTS="))
      slot = word;
    else if (absl::ConsumePrefix(&word, "RONDO_RUN_DIR="))
      folder = word;
  }
  return folder == run_dir ? std::string(slot) : "";
}

bool IsWhole(absl::string_view environment) {
  absl::ConsumeSuffix(&environment, absl::string_view("\0", 1));
  for (const absl::string_view word : absl::StrSplit(environment, '\0')) {
    const size_t name = word.find('=');
    // A title may have one too, behind words.
    if (name == 0 || name == word.npos ||
        absl::StrContains(word.substr(0, name), ' '))
      return false;
  }
  return true;
}

std::string SlotInMaps(absl::string_view maps, absl::string_view run_dir) {
  const std::string folder = absl::StrCat(" ", run_dir, "/");
  const std::string file = absl::StrCat("/", share::kShimName);
  for (absl::string_view line : absl::StrSplit(maps, '\n')) {
    const size_t at = line.find(folder);
    if (at == line.npos) continue;
    line.remove_prefix(at + folder.size());
    absl::ConsumeSuffix(&line, " (deleted)");
    const size_t number = line.rfind('-');
    if (absl::ConsumeSuffix(&line, file) && !absl::StrContains(line, '/') &&
        number < line.size())
      return absl::StrCat(line.substr(0, number),
                          "::", line.substr(number + 1));
  }
  return "";
}

Inherited InheritedSlots(const std::string& run_dir) {
  Inherited found;
  // Twice: a child may come where the first look has passed, and its parent,
  // which it has the slot from, end before that comes to it.
  for (int i = 0; i < 2; ++i) Look(run_dir, &found);
  return found;
}

}  // namespace rondo::run
