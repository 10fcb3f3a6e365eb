// SPDX-License-Identifier: Apache-2.0
#include "agent/slot_folder.h"

#include <gtest/gtest.h>

namespace rondo::agent {
namespace {

constexpr char kRoot[] =
    "1002 900 0:97 / / rw,relatime master:1 - overlay overlay rw\n";
constexpr char kPlugins[] =
    "1003 1002 8:1 /var/lib/kubelet/device-plugins "
    "/var/lib/kubelet/device-plugins rw - ext4 /dev/sda1 rw\n";
constexpr char kRondo[] =
    "1004 1002 0:25 /rondo /run/rondo rw,nosuid - tmpfs tmpfs rw\n";
constexpr char kRun[] = "1005 1002 0:25 / /run rw,nosuid - tmpfs tmpfs rw\n";
constexpr char kOther[] =
    "1006 1002 0:25 /r /run/rondo2 rw,nosuid - tmpfs tmpfs rw\n";

TEST(SlotFolder, Table) {
  const std::string root = kRoot, plugins = kPlugins;
  const struct {
    const char* what;
    bool in_pod;
    std::string mountinfo;
    bool ok;
  } rows[] = {
      {"deploy/rondo.yaml", true, root + plugins + kRondo, true},
      {"all of /run", true, root + plugins + kRun, true},
      {"no mount for it", true, root + plugins, false},
      {"one with a like name", true, root + plugins + kOther, false},
      {"no pod", false, root, true},
      {"not known", true, "", true},
      {"nonsense", true, "\n \n1 2 3\n", false},
  };
  for (const auto& row : rows)
    EXPECT_EQ(CheckSlotFolder("/run/rondo", row.in_pod, row.mountinfo).ok(),
              row.ok)
        << row.what;
  EXPECT_TRUE(CheckSlotFolder("", true, kRoot).ok());
}

}  // namespace
}  // namespace rondo::agent
