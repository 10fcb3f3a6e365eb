// SPDX-License-Identifier: Apache-2.0
//
// gRPC's callbacks come from a queue with threads of its own, which all servers
// and channels with callbacks share, and which ends with the last of them. In
// gRPC 1.51 (Debian 12) that must not happen within a callback: the thread then
// frees the queue that it stands in, and again when it comes out. A channel
// that goes with the answer to its call is such a case.

#ifndef RONDO_DEVICEPLUGIN_CALLBACK_QUEUE_H_
#define RONDO_DEVICEPLUGIN_CALLBACK_QUEUE_H_

namespace rondo::deviceplugin {

// From now on it stays until the process ends. Any thread, any number of times;
// before the first server or channel with callbacks.
void KeepCallbackQueue();

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_CALLBACK_QUEUE_H_
