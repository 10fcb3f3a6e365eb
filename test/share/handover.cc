// SPDX-License-Identifier: Apache-2.0
//
// Two processes that pass memory on: a line on standard input is a process, A
// or B, and what it is to do; a line of answer each. "create MIB" makes memory
// and sends it to the other (the descriptor is closed here), "import" takes
// what was sent, "release" gives up what was taken first, "managed MIB"
// allocates managed memory, "free" frees it, "odd" asks the driver for an
// object in a form that no release has, "exit". Both have a context before the
// first answer, "ready".

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <deque>
#include <iostream>
#include <sstream>
#include <string>

#include "rm/abi.h"
#include "sim/driver/tenant/cuda.h"

namespace rondo {
namespace {

using sim::tenant::Cuda;
namespace cuda = sim::cuda;

constexpr int kDescriptor = 1;  // a handle type
constexpr unsigned kAttachGlobal = 1;

void Send(int socket, int fd) {
  char byte = 0;
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(socket, &message, 0) != 1) _exit(1);
}

int Receive(int socket) {
  char byte = 0;
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  if (recvmsg(socket, &message, 0) != 1 || !CMSG_FIRSTHDR(&message)) _exit(1);
  int fd = -1;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

class Process {
 public:
  Process(Cuda cu, int other) : cu_(cu), other_(other) {}

  std::string Run(const std::string& order) {
    std::istringstream words(order);
    std::string word;
    size_t mib = 0;
    words >> word >> mib;
    int result = 0;
    if (word == "create") result = Create(mib << 20);
    if (word == "import") result = Import();
    if (word == "release") {
      result = cu_.cuMemRelease(held_.front());
      held_.pop_front();
    }
    if (word == "managed")
      result = cu_.cuMemAllocManaged(&managed_, mib << 20, kAttachGlobal);
    if (word == "free") result = cu_.cuMemFree_v2(managed_);
    if (word == "odd") Odd();
    return std::to_string(result);
  }

 private:
  int Create(size_t bytes) {
    cuda::MemAllocationProp kind{};
    kind.type = 1;
    kind.handle_types = kDescriptor;
    kind.location.type = 1;
    cuda::MemHandle made = 0;
    int result = cu_.cuMemCreate(&made, bytes, &kind, 0);
    int fd = -1;
    if (result == 0)
      result = cu_.cuMemExportToShareableHandle(&fd, made, kDescriptor, 0);
    if (result != 0) return result;
    held_.push_back(made);
    Send(other_, fd);
    close(fd);
    return 0;
  }
  int Import() {
    const int fd = Receive(other_);
    cuda::MemHandle taken = 0;
    const int result = cu_.cuMemImportFromShareableHandle(
        &taken, reinterpret_cast<void*>(static_cast<uintptr_t>(fd)),
        kDescriptor);
    close(fd);
    if (result == 0) held_.push_back(taken);
    return result;
  }
  static void Odd() {
    const int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
    char argument[sizeof(rm::AllocArg) - 8] = {};
    ioctl(fd, rm::MakeRequest(rm::kEscAlloc, sizeof argument), argument);
    close(fd);
  }

  Cuda cu_;
  const int other_;
  std::deque<cuda::MemHandle> held_;
  cuda::DevicePtr managed_ = 0;
};

void Child(int orders, int answers, int other) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto cu = Cuda::Load();
  cuda::Context* context = nullptr;
  if (!cu.ok() || cu->cuInit(0) != 0 || cu->cuCtxCreate_v2(&context, 0, 0) != 0)
    _exit(1);
  Process process(*cu, other);
  for (std::string answer = "ready";;) {
    answer += '\n';
    if (write(answers, answer.data(), answer.size()) < 0) _exit(1);
    char order[64] = {};
    if (read(orders, order, sizeof order - 1) <= 0) _exit(0);
    if (strcmp(order, "exit") == 0) _exit(0);
    answer = process.Run(order);
  }
}

}  // namespace
}  // namespace rondo

int main() {
  int pair[2], to[2][2], from[2][2];
  pid_t pids[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
  for (int i = 0; i < 2; ++i) {
    if (pipe2(to[i], O_CLOEXEC) != 0 || pipe2(from[i], O_CLOEXEC) != 0)
      return 1;
    pids[i] = fork();
    if (pids[i] == 0) {
      close(pair[1 - i]);
      rondo::Child(to[i][0], from[i][1], pair[i]);
    }
    close(from[i][1]);
  }
  close(pair[0]);
  close(pair[1]);
  const auto answer = [&](int i) {
    char line[64] = {};
    return read(from[i][0], line, sizeof line - 1) > 0 ? std::string(line)
                                                       : std::string("gone\n");
  };
  const std::string first = answer(0), second = answer(1);
  std::cout << (first == second ? first : "broken\n") << std::flush;
  for (std::string line; std::getline(std::cin, line);) {
    const int who = line[0] == 'B';
    const std::string order = line.substr(2);
    if (write(to[who][1], order.data(), order.size()) < 0) return 1;
    if (order == "exit") waitpid(pids[who], nullptr, 0);
    std::cout << answer(who) << std::flush;
  }
  return 0;
}
