// SPDX-License-Identifier: Apache-2.0
//
// A growing array of trivial values in memory of its own: hooks must not touch
// the program's heap. Constant-initialised, never shrinks, not thread-safe.

#ifndef RONDO_SHIM_MAPPED_ARRAY_H_
#define RONDO_SHIM_MAPPED_ARRAY_H_

#include <cstddef>
#include <cstdint>

#include "shim/sys.h"

namespace rondo::shim {

template <typename T>
class MappedArray {
 public:
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

  // False where the system has no memory: the value is not in.
  bool Push(const T& value) {
    if (size_ == capacity_ && !Grow()) return false;
    data_[size_++] = value;
    return true;
  }
  // The last one takes the place of the removed one.
  void RemoveAt(size_t i) { data_[i] = data_[--size_]; }

  // After fork: what another thread was writing may be torn, so the copied
  // pages are left alone rather than given back.
  void Forget() {
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  bool Grow() {
    const size_t capacity =
        capacity_ == 0 ? kFirstBytes / sizeof(T) + 1 : capacity_ * 2;
    T* grown = static_cast<T*>(sys::Map(capacity * sizeof(T)));
    if (grown == nullptr) return false;
    for (size_t i = 0; i < size_; ++i) grown[i] = data_[i];
    if (data_ != nullptr) sys::Unmap(data_, capacity_ * sizeof(T));
    data_ = grown;
    capacity_ = capacity;
    return true;
  }

  static constexpr size_t kFirstBytes = 4096;
  T* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace rondo::shim

#endif  // RONDO_SHIM_MAPPED_ARRAY_H_
