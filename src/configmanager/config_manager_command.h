// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_CONFIGMANAGER_CONFIG_MANAGER_COMMAND_H_
#define RONDO_CONFIGMANAGER_CONFIG_MANAGER_COMMAND_H_

namespace rondo::configmanager {

// `config-manager`, an init container and a sidecar of NVIDIA's image, also
// `rondo config-manager`: runs until a signal, or once.
int ConfigManagerCommand(int argc, char** argv);

}  // namespace rondo::configmanager

#endif  // RONDO_CONFIGMANAGER_CONFIG_MANAGER_COMMAND_H_
