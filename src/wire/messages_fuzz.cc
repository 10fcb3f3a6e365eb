// SPDX-License-Identifier: Apache-2.0
//
// Any datagram into every reader: both ends use these and nothing else.

#include <cstdint>
#include <cstdlib>

#include "wire/codec.h"

namespace {

template <typename T>
int Takes(const uint8_t* data, size_t size) {
  T message;
  return rondo::wire::Read(data, size, &message) ? 1 : 0;
}

template <typename... T>
int TakenBy(const uint8_t* data, size_t size) {
  return (0 + ... + Takes<T>(data, size));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rondo::wire;
  const int taken =
      TakenBy<Hello, Welcome, Reserve, Release, Answer, View, Channels, Slice,
              Applied, PolicyChange, State, Shared, Borrow>(data, size);
  if (taken > 1) abort();  // one datagram, one meaning
  return 0;
}
