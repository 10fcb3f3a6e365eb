// SPDX-License-Identifier: Apache-2.0
//
// A library of loader_test, made three times with other numbers: it looks for
// the next definition of its own function, and has functions whose names begin
// as CUDA's do.

#include <dlfcn.h>

extern "C" int found_again() {
  const auto next =
      reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "found_again"));
  return NUMBER + (next != nullptr ? next() : 0);
}

extern "C" int cudnnCreate() { return NUMBER; }
extern "C" int cuInit() { return NUMBER; }
