// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/interpose/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"
#include "rm/sharing.h"
#include "sim/driver/locate.h"
#include "sim/driver/protocol.h"

namespace rondo::sim::driver {
namespace {

// What the kernel copies for a class, whatever the caller says of its size.
uint32_t AllocParamsSize(uint32_t cls) {
  switch (cls) {
    case rm::kClassRoot:
    case rm::kClassRootNonPriv:
    case rm::kClassRootClient:
    case rm::kClassSubdevice:
      return 4;
    case rm::kClassDevice:
      return 56;
    case rm::kClassMemoryLocal:
    case rm::kClassMemorySystem:
    case rm::kClassMemoryEventBuffer:
      return 128;
    case rm::kClassChannelGroup:
      return 20;
    case rm::kClassEventBuffer:
      return sizeof(rm::EventBufferParams);
    default:
      return rm::IsChannelClass(cls) ? 368 : 0;
  }
}

uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie
                                                                    : 0;
}

struct Body {
  void* arg = nullptr;
  uint32_t arg_size = 0;
  void* params = nullptr;
  uint32_t params_size = 0;
};

int SendRequest(int fd, Request request, const Body& body, int answer_to) {
  iovec parts[] = {{&request, sizeof(request)},
                   {body.arg, body.arg_size},
                   {body.params, body.params_size}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 3;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(c), &answer_to, sizeof(answer_to));
  for (;;) {
    if (sendmsg(fd, &message, MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EINTR) return -1;
  }
}

// The error of the call, or EIO where the driver went away. *carried: the
// descriptor that came with the answer, or -1.
int ReceiveReply(int from, const Body& body, int* carried) {
  Reply reply{};
  iovec parts[] = {{&reply, sizeof(reply)},
                   {body.arg, body.arg_size},
                   {body.params, body.params_size}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 3;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t size = -1;
  do size = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  if (size < static_cast<ssize_t>(sizeof(reply))) return EIO;
  *carried = -1;
  if (const cmsghdr* const c = CMSG_FIRSTHDR(&message);
      c != nullptr && c->cmsg_type == SCM_RIGHTS)
    memcpy(carried, CMSG_DATA(c), sizeof(*carried));
  return reply.error;
}

// 0, or -1 with errno.
int Exchange(int fd, const Request& request, const Body& body, int* carried) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return -1;
  int error = 0;
  if (SendRequest(fd, request, body, pair[1]) != 0) error = EIO;
  // The driver has its own; without ours its death ends the wait.
  close(pair[1]);
  if (error == 0) error = ReceiveReply(pair[0], body, carried);
  close(pair[0]);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// The folder with the sockets; -1: there is no simulated driver here.
int OpenSocketFolder() {
  char path[PATH_MAX];
  if (!FindNodeFolder(reinterpret_cast<const void*>(&OpenSocketFolder), path))
    return -1;
  return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int CarryWrapped(int fd, const rm::WrappedArg& wrapped) {
  if (wrapped.cmd == rm::kEscWrapped || wrapped.size > kMaxArg) {
    errno = EINVAL;
    return -1;
  }
  return CarryIoctl(fd, rm::MakeRequest(wrapped.cmd, wrapped.size),
                    reinterpret_cast<void*>(wrapped.ptr));
}

void AddAllocParams(const void* arg, Body* body) {
  rm::AllocArg32 head;  // both forms begin alike
  memcpy(&head, arg, sizeof(head));
  if (head.params == 0) return;
  body->params = reinterpret_cast<void*>(head.params);
  body->params_size = AllocParamsSize(head.cls);
}

// Returns the descriptor of the driver that the parameters name, or -1.
int AddControlParams(const void* arg, Body* body) {
  rm::ControlArg control;
  memcpy(&control, arg, sizeof(control));
  if (control.params == 0) return -1;
  body->params = reinterpret_cast<void*>(control.params);
  body->params_size = control.params_size;
  int32_t fd = -1;
  const auto* const params = static_cast<const char*>(body->params);
  switch (control.cmd) {
    case rm::kCtrlFbInfo:
      // The older form has a pointer to the list: send the list itself.
      if (control.params_size == sizeof(rm::FbInfoParams)) {
        rm::FbInfoParams list;
        memcpy(&list, params, sizeof(list));
        body->params = reinterpret_cast<void*>(list.list);
        body->params_size = list.count * sizeof(rm::FbInfo);
      }
      break;
    case rm::kCtrlSurfaceInfo:
      if (control.params_size == sizeof(rm::SurfaceInfoParams)) {
        rm::SurfaceInfoParams list;
        memcpy(&list, params, sizeof(list));
        body->params = reinterpret_cast<void*>(list.list);
        body->params_size = list.count * sizeof(rm::SurfaceInfo);
      }
      break;
    case rm::kCtrlExportToFd:
      memcpy(&fd, params + offsetof(rm::ExportToFdParams, fd), sizeof(fd));
      break;
    case rm::kCtrlImportFromFd:
    case rm::kCtrlExportManyToFd:
    case rm::kCtrlImportManyFromFd:
      memcpy(&fd, params, sizeof(fd));
      break;
    default:
      break;
  }
  return fd;
}

}  // namespace

Kind KindOf(int fd) {
  const int error = errno;
  sockaddr_un peer{};
  socklen_t size = sizeof(peer);
  Kind kind = Kind::kOther;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
      peer.sun_family == AF_UNIX && size > offsetof(sockaddr_un, sun_path)) {
    const char* name = strrchr(peer.sun_path, '/');
    constexpr size_t kPrefix = sizeof(kSocketPrefix) - 1;
    if (name != nullptr && strncmp(name + 1, kSocketPrefix, kPrefix) == 0)
      kind =
          strcmp(name + 1 + kPrefix, kUvmDevice) == 0 ? Kind::kUvm : Kind::kRm;
  }
  errno = error;
  return kind;
}

int Connect(const char* device, bool close_on_exec) {
  const int folder = OpenSocketFolder();
  if (folder < 0) return kNoDriver;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s%s",
           folder, kSocketPrefix, device);
  const int type = SOCK_SEQPACKET | (close_on_exec ? SOCK_CLOEXEC : 0);
  const int fd = socket(AF_UNIX, type, 0);
  int error = errno;
  if (fd >= 0) {
    Request hello{};
    hello.call = Call::kHello;
    int carried = -1;
    error =
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0
            ? 0
            : errno;
    hello.cookie = CookieOf(fd);
    if (error == 0 && Exchange(fd, hello, {}, &carried) != 0) error = errno;
  }
  close(folder);
  if (fd >= 0 && error == 0) return fd;
  if (fd >= 0) close(fd);
  // A device node without a driver behind it answers so.
  errno = error == ECONNREFUSED || error == ENOENT ? ENXIO : error;
  return -1;
}

int CarryIoctl(int fd, uint32_t request, void* arg) {
  const uint32_t nr = rm::RequestNr(request);
  Body body;
  body.arg = arg;
  body.arg_size = rm::RequestSize(request);
  if (arg == nullptr || body.arg_size > kMaxArg) {
    errno = EINVAL;
    return -1;
  }
  Request call{};
  call.call = Call::kEscape;
  call.nr = nr;
  int named = -1;
  if (nr == rm::kEscWrapped && body.arg_size == sizeof(rm::WrappedArg)) {
    rm::WrappedArg wrapped;
    memcpy(&wrapped, arg, sizeof(wrapped));
    return CarryWrapped(fd, wrapped);
  }
  if (nr == rm::kEscAlloc && body.arg_size >= sizeof(rm::AllocArg32))
    AddAllocParams(arg, &body);
  else if (nr == rm::kEscControl && body.arg_size == sizeof(rm::ControlArg))
    named = AddControlParams(arg, &body);
  else if (nr == rm::kEscMapMemory && body.arg_size == sizeof(rm::MapMemoryArg))
    memcpy(&named, static_cast<char*>(arg) + offsetof(rm::MapMemoryArg, fd),
           sizeof(named));
  if (body.params_size > kMaxParams) {
    errno = EINVAL;
    return -1;
  }
  if (named >= 0 && KindOf(named) == Kind::kRm) call.cookie = CookieOf(named);
  call.arg_size = body.arg_size;
  call.params_size = body.params_size;
  int carried = -1;
  return Exchange(fd, call, body, &carried);
}

// The one request of UVM that must work for managed memory to. Its ranges live
// in the process, as mappings.
int AnswerUvm(uint32_t request, void* arg) {
  if (request != rm::kUvmInitialize || arg == nullptr) {
    errno = EINVAL;
    return -1;
  }
  constexpr uint32_t kOk = 0;
  memcpy(static_cast<char*>(arg) + sizeof(uint64_t), &kOk, sizeof(kOk));
  return 0;
}

int FetchMapping(int fd) {
  Request request{};
  request.call = Call::kMap;
  int carried = -1;
  if (Exchange(fd, request, {}, &carried) != 0) return -1;
  if (carried < 0) errno = EIO;
  return carried;
}

}  // namespace rondo::sim::driver
