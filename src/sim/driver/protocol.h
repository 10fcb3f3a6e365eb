// SPDX-License-Identifier: Apache-2.0
//
// What the library under a program's system calls (interpose/) says to the
// simulated driver. Opening /dev/nvidiactl there connects a SOCK_SEQPACKET
// socket to the driver, and that socket is the program's descriptor: it lives
// as long as a real one would, through fork, dup and SIGKILL, and its end is
// the driver's release of all that was made by it.
//
// One call = one packet {Request, argument, parameters} that carries one end of
// a fresh socket pair, on which the answer {Reply, argument, parameters} comes
// with at most one descriptor. So threads and forked children can share a
// descriptor without seeing each other's answers. Same machine, same build on
// both ends: no versions. Freestanding.

#ifndef RONDO_SIM_DRIVER_PROTOCOL_H_
#define RONDO_SIM_DRIVER_PROTOCOL_H_

#include <cstdint>

namespace rondo::sim::driver {

// The sockets lie beside the simulated libraries: "rondo-sim.nvidiactl",
// "rondo-sim.nvidia-uvm", "rondo-sim.nvidia0". The name of the peer tells, in
// any process that has the descriptor, what it is.
inline constexpr char kSocketPrefix[] = "rondo-sim.";
inline constexpr char kControlDevice[] = "nvidiactl";
inline constexpr char kUvmDevice[] = "nvidia-uvm";

enum class Call : uint32_t {
  kHello,   // first on each connection; cookie = the client end's SO_COOKIE
  kEscape,  // ioctl number nr
  kMap,     // mmap: the answer carries the descriptor to map
};

struct Request {
  Call call;
  uint32_t nr;
  uint32_t arg_size;
  uint32_t params_size;
  // kEscape: the SO_COOKIE of the driver descriptor that the argument or its
  // parameters name (RM_MAP_MEMORY, exports), 0 where they name none.
  uint64_t cookie;
};
static_assert(sizeof(Request) == 24);

struct Reply {
  int32_t error;  // errno of the system call, 0 = done
  uint32_t pad;
};

inline constexpr uint32_t kMaxArg = 4096;
inline constexpr uint32_t kMaxParams = 32768;

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_PROTOCOL_H_
