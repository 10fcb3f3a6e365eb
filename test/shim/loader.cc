// SPDX-License-Identifier: Apache-2.0
//
// A program under librondo.so that asks the loader for symbols in the ways that
// went wrong under shims which replace dlsym. Exit 0, or 1 with a line. Its one
// argument: a library to dlopen.

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

extern "C" int found_again();  // 10 in the first library, 1 in the second

namespace {

int Fail(const char* what) {
  printf("%s\n", what);
  return 1;
}

bool ComesFrom(const void* address, const char* library) {
  Dl_info info;
  return dladdr(address, &info) != 0 && strstr(info.dli_fname, library);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return Fail("usage: loader LIBRARY");
  if (!ComesFrom(dlsym(RTLD_DEFAULT, "ioctl"), "librondo"))
    return Fail("librondo.so is not here: nothing to see");
  // HAMi-core PR 279: the second call found nothing.
  void* const once = dlsym(RTLD_NEXT, "malloc");
  if (once == nullptr || dlsym(RTLD_NEXT, "malloc") != once)
    return Fail("RTLD_NEXT twice");
  // PR 315: "next" was next to the shim, not to the caller.
  if (found_again() != 11) return Fail("RTLD_NEXT from a library");
  // PR 215: names that begin with "cu" were looked up in the shim.
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Fail(dlerror());
  for (const char* name : {"cudnnCreate", "cuInit"}) {
    const auto found = reinterpret_cast<int (*)()>(dlsym(library, name));
    if (found == nullptr || found() != 100) return Fail(name);
  }
  if (dlsym(library, "cuNothing") != nullptr) return Fail("cuNothing");
  // Ours go on to libc's, which lies after us.
  if (!ComesFrom(dlsym(RTLD_DEFAULT, "munmap"), "librondo") ||
      ComesFrom(dlsym(RTLD_NEXT, "munmap"), "loader"))
    return Fail("munmap");
  return dlclose(library);
}
