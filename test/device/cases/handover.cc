// SPDX-License-Identifier: Apache-2.0
//
// handover: memory by cuMemCreate, exported by one process and imported by
// another; "handover ipc": by cuMemAlloc and cuIpcGetMemHandle. Words on stdin:
// "create" (512 MiB, sent away, the descriptor closed), "import" (mapped and
// written), "release A|B", "exit A|B"; after each "ok WORD" is printed. A makes
// the memory, B imports it; both have contexts at "ok start".
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gpu.h"

namespace {

constexpr size_t kBytes = 512 * gpu::kMiB;

void SendFd(int socket, int fd) {
  char byte = 0, room[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1;
  message.msg_control = room, message.msg_controllen = sizeof(room);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof(int));
  if (sendmsg(socket, &message, 0) != 1) _Exit(1);
}

int ReceiveFd(int socket) {
  char byte = 0, room[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data, message.msg_iovlen = 1;
  message.msg_control = room, message.msg_controllen = sizeof(room);
  int fd = -1;
  if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message)) _Exit(1);
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  return fd;
}

CUmemAllocationProp Kind() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return prop;
}

bool ByIpc(char order, int peer, CUdeviceptr* at, bool* imported) {
  CUipcMemHandle name;
  if (order == 'c') {
    MUST(CU(cuMemAlloc)(at, kBytes));
    MUST(CU(cuIpcGetMemHandle)(&name, *at));
    return write(peer, &name, sizeof(name)) == sizeof(name);
  }
  if (order == 'i') {
    if (read(peer, &name, sizeof(name)) != sizeof(name)) return false;
    MUST(CU(cuIpcOpenMemHandle)(at, name, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    *imported = true;
    MUST(CU(cuMemsetD8)(*at, 1, kBytes));
    MUST(CU(cuCtxSynchronize)());
  } else if (order == 'r') {
    MUST(*imported ? CU(cuIpcCloseMemHandle)(*at) : CU(cuMemFree)(*at));
  }
  return true;
}

void Child(int orders, int answers, int peer, bool ipc) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  gpu::Gpu gpu;
  gpu.Context();
  bool imported = false;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  const CUmemAllocationProp prop = Kind();
  for (char order = 's';;) {
    if (ipc) {
      if (!ByIpc(order, peer, &at, &imported)) _Exit(1);
    } else if (order == 'c') {
      int fd = -1;
      MUST(CU(cuMemCreate)(&handle, kBytes, &prop, 0));
      MUST(CU(cuMemExportToShareableHandle)(
          &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
      SendFd(peer, fd);
      close(fd);
    } else if (order == 'i') {
      const int fd = ReceiveFd(peer);
      MUST(CU(cuMemImportFromShareableHandle)(
          &handle, reinterpret_cast<void*>(static_cast<uintptr_t>(fd)),
          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
      close(fd);
      CUmemAccessDesc access{};
      access.location = prop.location;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      MUST(CU(cuMemAddressReserve)(&at, kBytes, 0, 0, 0));
      MUST(CU(cuMemMap)(at, kBytes, 0, handle, 0));
      MUST(CU(cuMemSetAccess)(at, kBytes, &access, 1));
      MUST(CU(cuMemsetD8)(at, 1, kBytes));
      MUST(CU(cuCtxSynchronize)());
    } else if (order == 'r') {
      if (at != 0) MUST(CU(cuMemUnmap)(at, kBytes));
      MUST(CU(cuMemRelease)(handle));
    }
    if (write(answers, &order, 1) != 1 || read(orders, &order, 1) != 1) break;
    if (order == 'x') break;
  }
  _Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const bool ipc = argc > 1 && argv[1] == std::string("ipc");
  int pair[2], to[2][2], from[2][2];
  pid_t pids[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  for (int i = 0; i < 2; ++i) {
    if (pipe(to[i]) != 0 || pipe(from[i]) != 0) return 1;
    pids[i] = fork();
    if (pids[i] == 0) {
      close(pair[1 - i]);
      Child(to[i][0], from[i][1], pair[i], ipc);
    }
    close(from[i][1]);
  }
  close(pair[0]), close(pair[1]);
  char byte;
  const auto answered = [&](int i) { return read(from[i][0], &byte, 1) == 1; };
  if (!answered(0) || !answered(1)) return 1;
  std::string word = "start";
  char line[32];
  do {
    printf("ok %s\n", word.c_str());
    fflush(stdout);
    if (fgets(line, sizeof(line), stdin) == nullptr) break;
    word = line;
    word.erase(word.find_last_not_of("\n") + 1);
    const int who = word == "import" || word.back() == 'B';
    const char order = word[0] == 'e' ? 'x' : word[0];
    if (write(to[who][1], &order, 1) != 1) return 1;
    if (order == 'x')
      waitpid(pids[who], nullptr, 0);
    else if (!answered(who))
      return 1;
  } while (true);
  return 0;
}
