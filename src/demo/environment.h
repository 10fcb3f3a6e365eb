// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_DEMO_ENVIRONMENT_H_
#define RONDO_DEMO_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace rondo::demo {

// Of our environment, what any program needs to run, NAME=value. The rest may
// hold an agent's options (NVIDIA's have names such as MIG_STRATEGY), and
// LD_LIBRARY_PATH is for the caller to set. Any thread.
std::vector<std::string> PlainEnvironment();

}  // namespace rondo::demo

#endif  // RONDO_DEMO_ENVIRONMENT_H_
