// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/tenant/tenant_command.h"

int main(int argc, char** argv) {
  return rondo::sim::tenant::TenantCommand(argc, argv);
}
