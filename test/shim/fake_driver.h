// SPDX-License-Identifier: Apache-2.0
//
// The smallest driver that the shim can be tested against: answers 'F' ioctls
// and UVM_INITIALIZE inside the process, on whatever descriptor they come, and
// notes what it was asked. It stands behind the shim in the search order, as
// libc's ioctl does. Thread-safe.

#ifndef RONDO_TEST_SHIM_FAKE_DRIVER_H_
#define RONDO_TEST_SHIM_FAKE_DRIVER_H_

#include <cstdint>
#include <string>

namespace rondo::fake_driver {

struct Options {
  std::string version = "580.159.04";
  // Of device instance 0, 1, ...
  std::string uuids[2] = {"GPU-11111111-2222-3333-4444-555555555555",
                          "GPU-66666666-7777-8888-9999-000000000000"};
  uint64_t total = 80ull << 30;
  uint64_t round = 1;          // memory sizes grow to a multiple of this
  bool refuse_slices = false;  // SET_TIMESLICE fails
  bool refuse_resume = false;  // 0x2080110B fails
  bool no_ioctl = false;       // everything answers ENOSYS
  bool no_tags = false;        // memory takes none
};
Options& options();

// What was asked, in order: "slice <group> <us>", "resume <channel>",
// "suspend <channel>", "hmm off", "hmm on".
std::string Log();
// Waits until the log holds the text. False after `ms`.
bool WaitLog(const std::string& text, int ms);

uint64_t BytesInUse();

// Memory of another process: behind a descriptor, or of a client of its.
void AddForeign(int fd, uint64_t bytes, uint32_t tag);
void AddForeignClient(uint32_t client, uint32_t handle, uint64_t bytes,
                      uint32_t tag);

}  // namespace rondo::fake_driver

#endif  // RONDO_TEST_SHIM_FAKE_DRIVER_H_
