// SPDX-License-Identifier: Apache-2.0
//
// What compilers and <string.h> assume is there, of our own: librondo.so links
// no libc, so that it loads beside any. Compiled with -fno-builtin, or these
// loops would become calls of themselves.

#include <stddef.h>

#define RONDO_LOCAL extern "C" __attribute__((visibility("hidden")))

RONDO_LOCAL void* memcpy(void* to, const void* from, size_t n) {
  auto* t = static_cast<unsigned char*>(to);
  auto* f = static_cast<const unsigned char*>(from);
  for (size_t i = 0; i < n; ++i) t[i] = f[i];
  return to;
}

RONDO_LOCAL void* memset(void* to, int value, size_t n) {
  auto* t = static_cast<unsigned char*>(to);
  for (size_t i = 0; i < n; ++i) t[i] = static_cast<unsigned char>(value);
  return to;
}

RONDO_LOCAL size_t strlen(const char* s) {
  size_t n = 0;
  while (s[n] != '\0') ++n;
  return n;
}

RONDO_LOCAL int strcmp(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
}

RONDO_LOCAL char* strcpy(char* to, const char* from) {
  size_t i = 0;
  for (; from[i] != '\0'; ++i) to[i] = from[i];
  to[i] = '\0';
  return to;
}
