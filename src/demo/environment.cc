// SPDX-License-Identifier: Apache-2.0
#include "demo/environment.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace rondo::demo {
namespace {

bool PassesOn(absl::string_view entry) {
  const absl::string_view name = entry.substr(0, entry.find('='));
  return name == "PATH" || name == "HOME" || name == "TMPDIR" ||
         name == "LLVM_PROFILE_FILE" || absl::StartsWith(name, "GRPC_") ||
         absl::EndsWith(name, "SAN_OPTIONS");
}

}  // namespace

std::vector<std::string> PlainEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (PassesOn(*entry)) environment.emplace_back(*entry);
  return environment;
}

}  // namespace rondo::demo
