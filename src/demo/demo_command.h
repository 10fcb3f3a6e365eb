// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_DEMO_DEMO_COMMAND_H_
#define RONDO_DEMO_DEMO_COMMAND_H_

namespace rondo::demo {

// `rondo demo`: the tour. A simulated node, a stand-in kubelet and the real
// agent; about a screen of text, some seconds. Exits 0 only if everything that
// it prints happened.
int DemoCommand(int argc, char** argv);

}  // namespace rondo::demo

#endif  // RONDO_DEMO_DEMO_COMMAND_H_
