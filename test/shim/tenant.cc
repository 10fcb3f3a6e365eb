// SPDX-License-Identifier: Apache-2.0
//
// A program that uses the driver as it is told: one command a line on standard
// input, one line of answer on standard output. The tests write the script.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"
#include "rm/sharing.h"
#include "test/shim/fake_driver.h"
#include "test/shim/tenant_threads.h"

extern "C" int ioctl(int fd, unsigned long request, void* arg);

namespace rondo {
namespace {

constexpr uint32_t kDevice = 0x100, kSubdevice = 0x101;
int fd = -1, uvm = -1;
uint32_t client = 0;

thread_local int last_result = 0, last_errno = 0;

template <typename T>
int Say(uint32_t nr, T* arg) {
  last_result = ioctl(fd, rm::MakeRequest(nr, sizeof(T)), arg);
  last_errno = errno;
  return last_result;
}

uint32_t Alloc(uint32_t parent, uint32_t handle, uint32_t cls, void* params) {
  rm::AllocArg arg{.client = client,
                   .parent = parent,
                   .handle = handle,
                   .cls = cls,
                   .params = reinterpret_cast<uint64_t>(params)};
  Say(rm::kEscAlloc, &arg);
  return arg.status;
}

uint32_t Control(uint32_t object, uint32_t cmd, void* params, uint32_t size) {
  rm::ControlArg arg{.client = client,
                     .object = object,
                     .cmd = cmd,
                     .params = reinterpret_cast<uint64_t>(params),
                     .params_size = size};
  Say(rm::kEscControl, &arg);
  return arg.status;
}

std::string Open(uint32_t device, uint32_t instance) {
  if (fd < 0) {
    fd = memfd_create("nvidiactl", MFD_CLOEXEC);
    rm::VersionArg version{};
    Say(rm::kEscCheckVersion, &version);
    rm::AllocArg root{.cls = rm::kClassRootClient};
    Say(rm::kEscAlloc, &root);
    client = root.handle;
  }
  uint32_t params[16] = {instance};
  Alloc(client, device, rm::kClassDevice, params);
  Alloc(device, device + 1, rm::kClassSubdevice, params);
  return "ok";
}

uint32_t AllocMemory(uint32_t handle, uint64_t bytes, const std::string& form,
                     uint64_t* took, uint32_t parent = kDevice) {
  rm::MemoryParams params{.size = bytes};
  uint32_t status = 0;
  if (form == "48" || form == "host") {
    if (form == "host") params.attr = rm::kAttrLocationPci;
    status = Alloc(parent, handle, rm::kClassMemoryLocal, &params);
  } else if (form == "32" || form == "wrapped") {
    rm::AllocArg32 arg{client, parent, handle, rm::kClassMemoryLocal,
                       reinterpret_cast<uint64_t>(&params)};
    rm::WrappedArg wrapped{rm::kEscAlloc, sizeof arg,
                           reinterpret_cast<uint64_t>(&arg)};
    form == "32" ? Say(rm::kEscAlloc, &arg) : Say(rm::kEscWrapped, &wrapped);
    status = arg.status;
  } else {  // a function of VID_HEAP_CONTROL
    rm::VidHeapArg arg{.client = client, .parent = parent};
    arg.function = static_cast<uint32_t>(strtoul(form.c_str(), nullptr, 16));
    char* raw = reinterpret_cast<char*>(&arg);
    const size_t at = arg.function == rm::kHeapAllocRange ? rm::kHeapSizeRangeAt
                                                          : rm::kHeapSizeAt;
    memcpy(raw + rm::kHeapHandleAt, &handle, 4);
    memcpy(raw + at, &bytes, 8);
    Say(rm::kEscVidHeap, &arg);
    memcpy(&params.size, raw + at, 8);
    status = arg.status;
  }
  *took = params.size;
  return status;
}

uint32_t FreeObject(uint32_t handle) {
  rm::FreeArg arg{client, kDevice, handle, 0};
  Say(rm::kEscFree, &arg);
  return arg.status;
}

std::string View(const std::string& form) {
  std::ostringstream out;
  if (form == "v1") {
    rm::FbInfo list[] = {{rm::kFbTotalRam, 0}, {rm::kFbHeapFree, 0}};
    rm::FbInfoParams params{2, 0, reinterpret_cast<uint64_t>(list)};
    Control(kSubdevice, rm::kCtrlFbInfo, &params, sizeof params);
    out << list[0].data << " " << list[1].data;
  } else if (form == "heap") {
    rm::VidHeapArg arg{
        .client = client, .parent = kDevice, .function = rm::kHeapInfo};
    Say(rm::kEscVidHeap, &arg);
    uint64_t largest;
    memcpy(&largest, reinterpret_cast<char*>(&arg) + rm::kHeapInfoLargestAt, 8);
    out << arg.total / 1024 << " " << arg.free / 1024 << " " << largest / 1024;
  } else if (form == "27") {
    rm::AllocMemoryArg arg{.client = client, .parent = kDevice};
    arg.cls = rm::kClassMemoryLocal;
    Say(rm::kEscAllocMemory, &arg);
    out << (arg.limit + 1) / 1024;
  } else {
    const uint32_t indices[] = {7, 8, 9, 0x20, 0x12, 0x16, 0xb};
    std::vector<uint32_t> params(strtoul(form.c_str(), nullptr, 10) / 4);
    params[0] = 7;
    for (int i = 0; i < 7; ++i) params[1 + 2 * i] = indices[i];
    Control(kSubdevice, rm::kCtrlFbInfoV2, params.data(),
            static_cast<uint32_t>(params.size() * 4));
    for (int i = 0; i < 7; ++i) out << params[2 + 2 * i] << " ";
  }
  return out.str();
}

using Args = std::vector<uint64_t>;

std::string ExportMany(const Args& handles) {
  rm::ExportManyToFdParams params{};
  params.fd = memfd_create("export", MFD_CLOEXEC);
  for (uint64_t handle : handles) {
    params.objects[params.count++] = static_cast<uint32_t>(handle);
  }
  Control(client, rm::kCtrlExportManyToFd, &params, sizeof params);
  return std::to_string(params.fd);
}

// Newer drivers' layout, or the one before. The descriptor.
std::string ExportToDmaBuf(const Args& handles, bool old) {
  char arg[rm::kDmaBufSize] = {};
  auto* head = reinterpret_cast<rm::DmaBufHead*>(arg);
  *head = {.fd = -1, .client = client};
  size_t at = old ? rm::kDmaBufHandlesAtOld : rm::kDmaBufHandlesAt;
  for (uint64_t handle : handles) {
    memcpy(arg + at + 4 * head->count++, &handle, 4);
  }
  ioctl(fd,
        rm::MakeRequest(rm::kEscExportToDmaBuf,
                        old ? rm::kDmaBufSizeOld : rm::kDmaBufSize),
        arg);
  return std::to_string(head->fd);
}

// The handle of an export object that holds them.
std::string HoldByObject(const Args& handles) {
  constexpr uint32_t kHolder = 0x400;
  Alloc(kDevice, kHolder, rm::kClassMemoryExport, nullptr);
  rm::ExportMemParams params{};
  for (uint64_t handle : handles) {
    params.handles[params.count++] = static_cast<uint32_t>(handle);
  }
  Control(kHolder, rm::kCtrlExportMem, &params, sizeof params);
  return std::to_string(kHolder);
}

std::string Threads(int count, int each, uint64_t bytes) {
  std::atomic<int> granted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        uint64_t took;
        const uint32_t handle = 0x100000 + t * 0x1000 + i;
        if (AllocMemory(handle, bytes, "48", &took) == rm::kOk) ++granted;
        if (i % 3 == 2 && FreeObject(handle) == rm::kOk) --granted;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return std::to_string(granted);
}

std::string Run(const std::string& line);

// A program of our own kind, by fork and exec, to its end: the same commands
// and answers.
std::string Launch(std::string script) {
  for (char& c : script) c = c == ';' ? '\n' : c;
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return "pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    char* argv[] = {const_cast<char*>("tenant"), nullptr};
    execve("/proc/self/exe", argv, environ);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  if (write(in[1], script.data(), script.size()) < 0) return "write";
  close(in[1]);
  std::string answers;
  for (char c; read(out[0], &c, 1) == 1;) answers += c == '\n' ? '|' : c;
  close(out[0]);
  waitpid(child, nullptr, 0);
  return answers;
}

// Runs ';'-separated commands in a child; their answers come joined by '|'.
std::string InChild(const std::string& script) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return "pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::istringstream commands(script);
    std::string answers;
    for (std::string one; std::getline(commands, one, ';');) {
      answers += Run(one) + "|";
    }
    if (write(pipe_fds[1], answers.data(), answers.size()) < 0) _exit(1);
    _exit(0);
  }
  close(pipe_fds[1]);
  std::string answers(4096, '\0');
  const ssize_t n = read(pipe_fds[0], answers.data(), answers.size());
  answers.resize(n > 0 ? n : 0);
  close(pipe_fds[0]);
  waitpid(child, nullptr, 0);
  return answers;
}

const std::map<std::string, std::function<std::string(const Args&)>>& Verbs() {
  static const std::map<std::string, std::function<std::string(const Args&)>>
      verbs = {
          {"open",
           [](const Args& a) { return Open(kDevice, a.empty() ? 0 : a[0]); }},
          {"second_gpu", [](const Args&) { return Open(0x200, 1); }},
          {"alloc_under",
           [](const Args& a) {
             uint64_t took;
             return std::to_string(AllocMemory(a[1], a[2], "48", &took, a[0]));
           }},
          {"free",
           [](const Args& a) { return std::to_string(FreeObject(a[0])); }},
          {"heap_free",
           [](const Args& a) {
             rm::VidHeapArg arg{.client = client,
                                .parent = kDevice,
                                .function = rm::kHeapFree};
             const auto handle = static_cast<uint32_t>(a[0]);
             memcpy(reinterpret_cast<char*>(&arg) + rm::kHeapHandleAt, &handle,
                    4);
             Say(rm::kEscVidHeap, &arg);
             return std::to_string(arg.status);
           }},
          {"free_all",
           [](const Args&) { return std::to_string(FreeObject(client)); }},
          {"dup",
           [](const Args& a) {
             rm::DupArg arg{client,
                            kDevice,
                            static_cast<uint32_t>(a[1]),
                            client,
                            static_cast<uint32_t>(a[0]),
                            0,
                            0};
             Say(rm::kEscDup, &arg);
             return std::to_string(arg.status);
           }},
          {"export",
           [](const Args& a) {
             const int out = memfd_create("export", MFD_CLOEXEC);
             rm::ExportToFdParams params{.object = static_cast<uint32_t>(a[0]),
                                         .fd = out};
             Control(client, rm::kCtrlExportToFd, &params, sizeof params);
             return std::to_string(out);
           }},
          {"import",
           [](const Args& a) {
             rm::ImportFromFdParams params{
                 .fd = static_cast<int>(a[0]),
                 .parent = kDevice,
                 .object = static_cast<uint32_t>(a[1])};
             return std::to_string(Control(client, rm::kCtrlImportFromFd,
                                           &params, sizeof params));
           }},
          {"export_many", ExportMany},
          {"import_many",  // descriptor, two handles
           [](const Args& a) {
             rm::ImportManyFromFdParams params{.fd = static_cast<int>(a[0]),
                                               .parent = kDevice};
             params.objects[params.count++] = static_cast<uint32_t>(a[1]);
             params.objects[params.count++] = static_cast<uint32_t>(a[2]);
             return std::to_string(Control(client, rm::kCtrlImportManyFromFd,
                                           &params, sizeof params));
           }},
          {"dma_buf", [](const Args& a) { return ExportToDmaBuf(a, false); }},
          {"dma_buf_old",
           [](const Args& a) { return ExportToDmaBuf(a, true); }},
          {"hold_by_object", HoldByObject},
          {"foreign",  // bytes tag: a descriptor that another process sent
           [](const Args& a) {
             const int in = memfd_create("foreign", MFD_CLOEXEC);
             fake_driver::AddForeign(in, a[0], a[1]);
             return std::to_string(in);
           }},
          {"foreign_dup",  // handle bytes tag: of another process's client
           [](const Args& a) {
             const auto handle = static_cast<uint32_t>(a[0]);
             fake_driver::AddForeignClient(0xc1d0ffff, handle, a[1], a[2]);
             rm::DupArg arg{client, kDevice, handle, 0xc1d0ffff, handle, 0, 0};
             Say(rm::kEscDup, &arg);
             return std::to_string(arg.status);
           }},
          {"share",
           [](const Args& a) {
             rm::ShareArg arg{};
             arg.client = client;
             arg.object = static_cast<uint32_t>(a[0]);
             Say(rm::kEscShare, &arg);
             return std::to_string(arg.status);
           }},
          {"no_tags",
           [](const Args&) {
             fake_driver::options().no_tags = true;
             return std::string("ok");
           }},
          {"close",
           [](const Args& a) {
             return std::to_string(close(static_cast<int>(a[0])));
           }},
          {"close_driver",
           [](const Args&) {
             const int result = close(fd);
             fd = -1;
             return std::to_string(result);
           }},
          {"close_all",
           [](const Args&) {
             close_range(fd + 1, ~0u, 0);
             // What comes next may get the number of what was closed.
             for (int i = 0; i < 600; ++i) open("/dev/null", O_RDWR);
             return std::string("ok");
           }},
          {"group",
           [](const Args& a) {
             return std::to_string(
                 Alloc(kDevice, a[0], rm::kClassChannelGroup, nullptr));
           }},
          {"copy_group",
           [](const Args& a) {
             rm::GroupParams params{.engine = rm::kEngineCopy0};
             return std::to_string(
                 Alloc(kDevice, a[0], rm::kClassChannelGroup, &params));
           }},
          {"channel",
           [](const Args& a) {
             return std::to_string(Alloc(a[1], a[0], 0xc86f, nullptr));
           }},
          {"set_slice",
           [](const Args& a) {
             rm::TimesliceParams params{a[1]};
             const uint32_t status =
                 Control(a[0], rm::kCtrlSetTimeslice, &params, sizeof params);
             return std::to_string(status) + " " + std::to_string(params.us);
           }},
          {"get_slice",
           [](const Args& a) {
             rm::TimesliceParams params{};
             Control(a[0], rm::kCtrlGetTimeslice, &params, sizeof params);
             return std::to_string(params.us);
           }},
          {"suspend",
           [](const Args& a) {
             rm::DisableChannelsParams params{.disable = 1, .count = 1};
             params.clients[0] = client;
             params.channels[0] = a[0];
             return std::to_string(Control(kSubdevice, rm::kCtrlDisableChannels,
                                           &params, sizeof params));
           }},
          {"uvm_init",
           [](const Args&) {
             uvm = memfd_create("uvm", MFD_CLOEXEC);
             uint64_t params[2] = {};
             return std::to_string(ioctl(uvm, rm::kUvmInitialize, params));
           }},
          {"pool",
           [](const Args& a) {
             uint64_t params[64] = {a[0], a[1]};
             return std::to_string(
                 ioctl(uvm, rm::kUvmAllocSemaphorePool, params));
           }},
          {"p2p_range",
           [](const Args& a) {
             uint64_t params[64] = {a[0], a[1]};
             return std::to_string(ioctl(uvm, rm::kUvmAllocDeviceP2p, params));
           }},
          {"managed",
           [](const Args& a) {
             void* p = mmap(reinterpret_cast<void*>(a[0]), a[1],
                            PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, uvm,
                            static_cast<off_t>(a[0]));
             return p == MAP_FAILED ? "errno " + std::to_string(errno)
                                    : std::string("ok");
           }},
          {"map_over",
           [](const Args& a) {
             void* p = mmap(reinterpret_cast<void*>(a[0]), a[1], PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
             return std::string(p == MAP_FAILED ? "failed" : "ok");
           }},
          {"unmap",
           [](const Args& a) {
             return std::to_string(munmap(reinterpret_cast<void*>(a[0]), a[1]));
           }},
          {"threads",
           [](const Args& a) {
             return Threads(static_cast<int>(a[0]), static_cast<int>(a[1]),
                            a[2]);
           }},
          {"unknown_size",
           [](const Args&) {
             char arg[40] = {};
             return std::to_string(
                 ioctl(fd, rm::MakeRequest(rm::kEscAlloc, sizeof arg), arg));
           }},
          {"last_ioctl",
           [](const Args&) {
             return std::to_string(last_result) + " " +
                    std::to_string(last_errno);
           }},
          {"wild_pointer",
           [](const Args&) {
             errno = 0;
             const int r =
                 ioctl(fd, rm::MakeRequest(rm::kEscAlloc, 48), nullptr);
             return std::to_string(r) + " " + std::to_string(errno);
           }},
          {"errno_kept",
           [](const Args& a) {
             uint64_t took;
             errno = 77;
             AllocMemory(a[0], a[1], "48", &took);
             return std::to_string(errno);
           }},
          {"in_use",
           [](const Args&) {
             return std::to_string(fake_driver::BytesInUse());
           }},
          {"round",
           [](const Args& a) {
             fake_driver::options().round = a[0];
             return std::string("ok");
           }},
          {"refuse_slices",
           [](const Args& a) {
             fake_driver::options().refuse_slices = a[0] != 0;
             return std::string("ok");
           }},
          {"refuse_resume",
           [](const Args& a) {
             fake_driver::options().refuse_resume = a[0] != 0;
             return std::string("ok");
           }},
          {"device_only",
           [](const Args& a) {
             uint32_t params[16] = {};
             return std::to_string(
                 Alloc(client, a[0], rm::kClassDevice, params));
           }},
          {"no_more_memory",
           [](const Args&) {
             // What malloc needs from here on, it has.
             std::vector<std::string> some(64, std::string(16 << 10, 'x'));
             const rlimit none{1 << 20, 1 << 20};
             return std::to_string(setrlimit(RLIMIT_AS, &none));
           }},
          {"no_ioctl",
           [](const Args& a) {
             fake_driver::options().no_ioctl = a[0] != 0;
             return std::string("ok");
           }},
          {"log",
           [](const Args&) {
             std::string text = fake_driver::Log();
             for (char& c : text) c = c == '\n' ? ',' : c;
             return text;
           }},
          {"old_threads",
           [](const Args&) {
             BeginThreadsAsOldLibcs();
             return std::string("ok");
           }},
          {"thread", [](const Args&) { return OtherThread(); }},
          {"setuid",  // libc asks every thread to do it, and waits
           [](const Args&) { return std::to_string(setuid(getuid())); }},
          {"pid", [](const Args&) { return std::to_string(getpid()); }},
      };
  return verbs;
}

ptrdiff_t Entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

std::string Run(const std::string& line) {
  std::istringstream in(line);
  std::string verb, word;
  in >> verb;
  if (verb == "child") return InChild(line.substr(6));
  if (verb == "launch") return Launch(line.substr(7));
  if (verb == "view") return in >> word, View(word);
  if (verb == "version") {
    in >> fake_driver::options().version;
    return "ok";
  }
  if (verb == "wait_log") {
    std::getline(in >> std::ws, word);
    return fake_driver::WaitLog(word, 5000) ? "seen" : "missing";
  }
  if (verb == "dlclose") {
    in >> word;
    void* library = dlopen(word.c_str(), RTLD_NOW);
    return library == nullptr ? dlerror() : std::to_string(dlclose(library));
  }
  if (verb == "tasks") return std::to_string(Entries("/proc/self/task"));
  if (verb == "descriptors") return std::to_string(Entries("/proc/self/fd"));
  if (verb == "hold") {  // a child that keeps every descriptor
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    return std::to_string(child);
  }
  if (verb == "exec") {
    char* argv[] = {const_cast<char*>("tenant"), nullptr};
    std::cout << "exec" << std::endl;
    execve("/proc/self/exe", argv, environ);
    return "failed";
  }
  if (verb == "alloc") {
    uint64_t handle, bytes, took = 0;
    in >> handle >> bytes;
    if (!(in >> word)) word = "48";
    const uint32_t status = AllocMemory(handle, bytes, word, &took);
    return std::to_string(status) + " " + std::to_string(took);
  }
  const auto it = Verbs().find(verb);
  if (it == Verbs().end()) return "what is " + verb + "?";
  Args args;
  for (uint64_t value; in >> value;) args.push_back(value);
  return it->second(args);
}

}  // namespace
}  // namespace rondo

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "exit") return 0;
    std::cout << rondo::Run(line) << std::endl;
  }
  return 0;
}
