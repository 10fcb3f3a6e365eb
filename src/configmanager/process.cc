// SPDX-License-Identifier: Apache-2.0
#include "configmanager/process.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"

namespace rondo::configmanager {

namespace fs = std::filesystem;

std::optional<pid_t> FindProcess(absl::string_view name) {
  std::optional<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(it->path().filename().string(), &pid) ||
        pid == getpid() || (found && *found < pid))
      continue;
    // Empty for a thread of the kernel, an error for a process that has gone
    // meanwhile: neither is the one.
    const auto words = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
    if (!words.ok() || words->empty()) continue;
    const absl::string_view first(words->c_str());
    if (first == name) found = pid;
  }
  return found;
}

bool HandlesSignal(pid_t pid, int signal) {
  const auto status = ReadFile(absl::StrCat("/proc/", pid, "/status"));
  if (!status.ok()) return false;
  // proc(5): masks in hexadecimal, bit 0 is signal 1.
  for (absl::string_view line : absl::StrSplit(*status, '\n'))
    for (const char* mask : {"SigBlk:", "SigIgn:", "SigCgt:"}) {
      uint64_t bits = 0;
      if (absl::ConsumePrefix(&line, mask) &&
          absl::SimpleHexAtoi(absl::StripAsciiWhitespace(line), &bits) &&
          (bits >> (signal - 1) & 1) != 0)
        return true;
    }
  return false;
}

}  // namespace rondo::configmanager
