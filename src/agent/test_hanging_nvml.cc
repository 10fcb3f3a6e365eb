// SPDX-License-Identifier: Apache-2.0
//
// A libnvidia-ml.so.1 on a driver that hangs: its start never returns.

#include <unistd.h>

extern "C" int nvmlInit_v2() {
  for (;;) pause();
}
