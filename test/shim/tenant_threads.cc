// SPDX-License-Identifier: Apache-2.0

#include "test/shim/tenant_threads.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

namespace rondo {
namespace {

std::atomic<bool> inherit_all{false};

struct Inherited {
  void* (*run)(void*);
  void* argument;
  uint64_t blocked;
};
void* RunInherited(void* raw) {
  const auto own = *std::unique_ptr<Inherited>(static_cast<Inherited*>(raw));
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &own.blocked, nullptr, 8);
  return own.run(own.argument);
}

}  // namespace

std::string OtherThread() {
  namespace fs = std::filesystem;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    const std::string waits = std::to_string(SYS_ppoll) + " ";
    std::string line, word;
    while (line.compare(0, waits.size(), waits) != 0) {
      std::getline(std::ifstream(task.path() / "syscall"), line);
    }
    std::istringstream fields(line);  // number, six arguments, stack pointer
    for (int i = 0; i < 8; ++i) fields >> word;
    const uint64_t stack = std::stoull(word, nullptr, 16);
    std::string blocked;
    for (std::ifstream status(task.path() / "status"); status >> word;) {
      if (word == "SigBlk:") status >> blocked;
    }
    for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line);) {
      uint64_t start, end;
      char dash;
      std::istringstream(line) >> std::hex >> start >> dash >> end;
      if (start <= stack && stack < end) {
        return blocked + " " + std::to_string((stack - start) / 1024);
      }
    }
  }
  return "none";
}

void BeginThreadsAsOldLibcs() { inherit_all = true; }

}  // namespace rondo

// Before libc's in the search order.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attr,
                              void* (*run)(void*), void* argument) {
  static auto* const next = reinterpret_cast<decltype(&pthread_create)>(
      dlsym(RTLD_NEXT, "pthread_create"));
  if (!rondo::inherit_all) return next(thread, attr, run, argument);
  auto own = std::make_unique<rondo::Inherited>();
  own->run = run;
  own->argument = argument;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &own->blocked, 8);
  return next(thread, attr, rondo::RunInherited, own.release());
}
