// SPDX-License-Identifier: Apache-2.0
//
// The shim's thread: hears what the agents ask for while the program is busy
// elsewhere, notices at once when one goes, and reconnects. All signals
// blocked but libc's own, detached, small stack, no heap. Started after the
// first channel group, so a program that never computes on the GPU has none.

#ifndef RONDO_SHIM_THREAD_H_
#define RONDO_SHIM_THREAD_H_

#include "shim/shim.h"

namespace rondo::shim {

// Starts it if it is wanted and does not run. Not under the Guard: creating a
// thread may allocate. A failure is a Reason, and slices then change only when
// the program happens to call the driver.
void StartThreadIfWanted(Shim* shim);

// One round of the thread, for tests: waits for something to happen, acts.
void ThreadRound(Shim* shim);

}  // namespace rondo::shim

#endif  // RONDO_SHIM_THREAD_H_
