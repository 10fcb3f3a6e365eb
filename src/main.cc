// SPDX-License-Identifier: Apache-2.0
//
// The executable `rondo`: nothing but its command table.

#include <iostream>

#include "agent/agent_command.h"
#include "cli/check_command.h"
#include "cli/command.h"
#include "cli/version_command.h"
#include "configmanager/config_manager_command.h"
#include "demo/demo_command.h"
#include "run/run_command.h"
#include "sim/driver/tenant/tenant_command.h"
#include "sim/sim_command.h"

int main(int argc, char** argv) {
  static const rondo::cli::CommandTable kTable = {
      .commands =
          {
              {"agent", "run the node agent: the device plugin",
               "an NVIDIA driver and a kubelet", rondo::agent::AgentCommand},
              {"check", "judge configs before a roll-out", "nothing",
               rondo::cli::CheckCommand},
              {"config-manager",
               "link the config that the node's label names, as NVIDIA's does",
               "an API server", rondo::configmanager::ConfigManagerCommand},
              {"demo", "take a tour on a simulated node", "nothing",
               rondo::demo::DemoCommand},
              {"run", "run a program with a share of a GPU",
               "an NVIDIA driver, 535 or newer", rondo::run::RunCommand},
              {"run-arbiter", nullptr, "rondo run",
               rondo::run::RunArbiterCommand},
              {"sim", "run programs on a simulated GPU node", "nothing",
               rondo::sim::SimCommand},
              {"sim-tenant", nullptr, "rondo demo",
               rondo::sim::tenant::TenantCommand},
              {"version", "print the version", "nothing",
               rondo::cli::VersionCommand},
          },
      .aliases = {{"nvidia-device-plugin", rondo::agent::AgentCommand},
                  {"config-manager",
                   rondo::configmanager::ConfigManagerCommand}},
  };
  return rondo::cli::Dispatch(kTable, argc, argv, std::cout, std::cerr);
}
