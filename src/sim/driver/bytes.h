// SPDX-License-Identifier: Apache-2.0
//
// Buffers of callers as the simulated driver sees them: of any length, aligned
// by nobody, to be checked before they are read. Pure; any thread.

#ifndef RONDO_SIM_DRIVER_BYTES_H_
#define RONDO_SIM_DRIVER_BYTES_H_

#include <cstdint>
#include <cstring>

namespace rondo::sim::driver {

// Changed in place.
struct Bytes {
  uint8_t* data = nullptr;
  uint32_t size = 0;
  // Null unless the buffer is exactly a T.
  template <typename T>
  T* As() const {
    return size == sizeof(T) ? reinterpret_cast<T*>(data) : nullptr;
  }
};

// A field inside a buffer; the caller has looked at the size.
template <typename T>
T Read(const uint8_t* at) {
  T value;
  memcpy(&value, at, sizeof(value));
  return value;
}
template <typename T>
void Write(uint8_t* at, T value) {
  memcpy(at, &value, sizeof(value));
}

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_BYTES_H_
