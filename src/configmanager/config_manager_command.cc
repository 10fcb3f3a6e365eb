// SPDX-License-Identifier: Apache-2.0
#include "configmanager/config_manager_command.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "configmanager/kubeconfig.h"
#include "configmanager/manager.h"
#include "configmanager/options.h"

namespace rondo::configmanager {
namespace {

std::optional<std::string> Environment(absl::string_view name) {
  const char* value = getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

absl::Status Run(Options options) {
  absl::StatusOr<kube::ApiClient::Options> server =
      options.kubeconfig.empty()
          ? kube::ApiClient::InCluster(
                [](const char* name) { return getenv(name); })
          : ReadKubeconfig(options.kubeconfig);
  if (!server.ok()) return server.status();
  return Manager(std::move(options), *std::move(server)).Run();
}

}  // namespace

int ConfigManagerCommand(int argc, char** argv) {
  ParsedOptions parsed = ParseOptions(argc, argv, Environment);
  if (!parsed.options) return parsed.exit_code;
  const absl::Status status = Run(*std::move(parsed.options));
  if (!status.ok()) LogError(status.message());
  return ExitCode(status);
}

}  // namespace rondo::configmanager
