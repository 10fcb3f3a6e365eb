// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_command.h"

#include <cstdlib>
#include <string>

#include "agent/agent.h"
#include "agent/options.h"
#include "base/in_flight.h"
#include "base/log.h"
#include "base/status.h"
#include "nvml/library.h"
#include "nvml/real.h"

namespace rondo::agent {
namespace {

std::optional<std::string> Environment(absl::string_view name) {
  const char* value = getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace

int AgentCommand(int argc, char** argv) {
  ParsedOptions parsed = ParseOptions(argc, argv, Environment);
  if (!parsed.options) return parsed.exit_code;
  SetLogLevel(parsed.options->log_level);
  CallsInFlight calls;
  Agent agent(
      *std::move(parsed.options), Environment,
      [&calls](const std::string& container_driver_root) {
        return nvml::Real::Load(nvml::FindLibrary(container_driver_root),
                                &calls);
      },
      calls);
  const absl::Status status = agent.Run();
  if (!status.ok()) LogError("stopping: ", status.message());
  return ExitCode(status);
}

}  // namespace rondo::agent
