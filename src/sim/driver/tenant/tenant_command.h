// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_SIM_DRIVER_TENANT_TENANT_COMMAND_H_
#define RONDO_SIM_DRIVER_TENANT_TENANT_COMMAND_H_

namespace rondo::sim::tenant {

// The program rondo-tenant. `rondo` has it too, as the command `sim-tenant`,
// so that `rondo demo` needs no file beside itself.
int TenantCommand(int argc, char** argv);

}  // namespace rondo::sim::tenant

#endif  // RONDO_SIM_DRIVER_TENANT_TENANT_COMMAND_H_
