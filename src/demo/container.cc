// SPDX-License-Identifier: Apache-2.0
#include "demo/container.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rondo::demo {
namespace {

constexpr char kPreload[] = "LD_PRELOAD";

}  // namespace

absl::StatusOr<std::vector<std::string>> ContainerEnvironment(
    const Grant& grant, const std::vector<std::string>& image) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : image) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos)
      variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  std::string preload;
  for (const auto& [name, value] : grant.envs) {
    if (name != kPreload) {
      variables[name] = value;
      continue;
    }
    for (const auto& [container, host] : grant.mounts) {
      if (absl::StartsWith(value, container + "/"))
        preload = host + value.substr(container.size());
      if (absl::StartsWith(container, "/run/rondo/"))
        variables["RONDO_RUN_DIR"] = host.substr(0, host.rfind('/'));
    }
  }
  if (preload.empty())
    return absl::AbortedError("Allocate's answer brings no library");
  const std::string others = variables[kPreload];
  variables[kPreload] =
      absl::StrCat(preload, others.empty() ? "" : ":", others);
  const auto gpus = grant.envs.find("NVIDIA_VISIBLE_DEVICES");
  if (gpus != grant.envs.end())
    variables["CUDA_VISIBLE_DEVICES"] = gpus->second;
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables)
    environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

}  // namespace rondo::demo
