// SPDX-License-Identifier: Apache-2.0
//
// Threads of the tests' tenant: what another one is like, and how they begin.
// Any thread.

#ifndef RONDO_TEST_SHIM_TENANT_THREADS_H_
#define RONDO_TEST_SHIM_TENANT_THREADS_H_

#include <string>

namespace rondo {

// The first thread but this one, once it waits in ppoll: the signals that it
// blocks (hexadecimal), and the KiB of its stack that it has left.
std::string OtherThread();

// From now on threads begin with all signals blocked that their maker blocks,
// libc's own among them, as with an older glibc.
void BeginThreadsAsOldLibcs();

}  // namespace rondo

#endif  // RONDO_TEST_SHIM_TENANT_THREADS_H_
