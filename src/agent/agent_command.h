// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_AGENT_AGENT_COMMAND_H_
#define RONDO_AGENT_AGENT_COMMAND_H_

namespace rondo::agent {

// `rondo agent`, also by the name nvidia-device-plugin: runs until a signal.
int AgentCommand(int argc, char** argv);

}  // namespace rondo::agent

#endif  // RONDO_AGENT_AGENT_COMMAND_H_
