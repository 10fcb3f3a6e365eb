// SPDX-License-Identifier: Apache-2.0
//
// Names of simulated things, made by hash: the same key gives the same UUID on
// every machine. Pure functions, any thread.

#ifndef RONDO_SIM_IDENTITY_H_
#define RONDO_SIM_IDENTITY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace rondo::sim {

// FNV-1a, finished with a mixer so that near keys give far hashes.
inline uint64_t Hash(absl::string_view key) {
  uint64_t h = 0xCBF29CE484222325;
  for (const char c : key)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EB;
  return h ^ (h >> 31);
}

// "GPU-xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx": a UUID of version 4, as the
// driver's are.
inline std::string MakeUuid(absl::string_view prefix, absl::string_view key) {
  const uint64_t a = Hash(absl::StrCat(key, "/a"));
  const uint64_t b = Hash(absl::StrCat(key, "/b"));
  return absl::StrFormat("%s-%08x-%04x-%04x-%04x-%012x", prefix, a >> 32,
                         (a >> 16) & 0xFFFF, (a & 0x0FFF) | 0x4000,
                         (b >> 48 & 0x3FFF) | 0x8000, b & 0xFFFFFFFFFFFF);
}

// What does not fit is cut.
template <size_t N>
void CopyText(absl::string_view text, char (&out)[N]) {
  const size_t size = std::min(text.size(), N - 1);
  memcpy(out, text.data(), size);
  out[size] = '\0';
}

}  // namespace rondo::sim

#endif  // RONDO_SIM_IDENTITY_H_
