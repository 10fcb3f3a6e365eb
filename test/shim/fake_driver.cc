// SPDX-License-Identifier: Apache-2.0

#include "test/shim/fake_driver.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/facts.h"
#include "rm/memory.h"
#include "rm/sharing.h"

namespace rondo::fake_driver {
namespace {

using Name = std::pair<uint32_t, uint32_t>;  // client, handle

struct Block {
  uint64_t bytes;
  int names;
};
struct Object {
  uint32_t parent = 0, cls = 0, instance = 0;
  Block* block = nullptr;
  uint32_t tag = 0;  // of memory; every handle has its own
  uint64_t slice = rm::kDefaultCopySliceUs;
  uint64_t file = 0;  // a client's: the inode of its descriptor
};

std::mutex mutex;
std::condition_variable changed;
std::map<Name, Object> objects;
struct Exported {
  Block* block;
  uint32_t tag;
};
std::map<int, std::vector<Exported>> exports;
uint64_t in_use = 0;
std::string log_text;

void Note(const std::string& line) {
  log_text += line + "\n";
  changed.notify_all();
}

template <typename T>
T& At(uint64_t pointer) {
  return *reinterpret_cast<T*>(pointer);
}

uint32_t Instance(uint32_t client, uint32_t handle) {
  for (int level = 0; level < 5; ++level) {
    auto it = objects.find({client, handle});
    if (it == objects.end()) break;
    if (it->second.cls == rm::kClassDevice) return it->second.instance;
    handle = it->second.parent;
  }
  return 0;
}

uint32_t AllocateBytes(uint64_t* bytes, Object* object) {
  const uint64_t round = options().round;
  *bytes = (*bytes + round - 1) / round * round;
  if (in_use + *bytes > options().total) return rm::kNoMemory;
  in_use += *bytes;
  object->block = new Block{*bytes, 1};
  return rm::kOk;
}

uint32_t Alloc(uint64_t file, uint32_t* client, uint32_t parent,
               uint32_t* handle, uint32_t cls, uint64_t params) {
  static uint32_t next_client = 0xc1d00001;
  Object object{.parent = parent, .cls = cls, .file = file};
  if (cls == rm::kClassRoot || cls == rm::kClassRootClient) {
    if (*handle == 0) *handle = next_client++;
    *client = *handle;
    object.parent = 0;
  } else if (objects.count({*client, parent}) == 0) {
    return rm::kInvalidObject;
  }
  if (cls == rm::kClassDevice && params != 0) {
    object.instance = At<uint32_t>(params);
  }
  if (cls == rm::kClassMemoryLocal) {
    const uint32_t status =
        AllocateBytes(&At<rm::MemoryParams>(params).size, &object);
    if (status != rm::kOk) return status;
  }
  objects[{*client, *handle}] = object;
  return rm::kOk;
}

void DropBlock(Block* block) {
  if (block == nullptr || --block->names != 0) return;
  in_use -= block->bytes;
  delete block;
}

uint32_t FreeTree(uint32_t client, uint32_t handle) {
  auto it = objects.find({client, handle});
  if (it == objects.end()) return rm::kInvalidObject;
  Block* block = it->second.block;
  objects.erase(it);
  DropBlock(block);
  for (bool more = true; more;) {
    more = false;
    for (auto& [name, object] : objects) {
      if (name.first != client || object.parent != handle) continue;
      FreeTree(client, name.second);
      more = true;
      break;
    }
  }
  return rm::kOk;
}

uint32_t FbValue(uint32_t index) {
  switch (index) {
    case rm::kFbHeapFree:
    case rm::kFbLargestFree:
      return (options().total - in_use) / 1024;
    case rm::kFbRamSize:
    case rm::kFbTotalRam:
    case rm::kFbHeapSize:
    case rm::kFbUsableRam:
      return options().total / 1024;
    default:
      return 4242;
  }
}

// The descriptor holds one more name of each, until nobody asks: it is not seen
// when it is closed.
void Export(uint32_t client, int fd, const uint32_t* handles, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const Object& object = objects[{client, handles[i]}];
    ++object.block->names;
    exports[fd].push_back({object.block, object.tag});
    Note("export with tag " + std::to_string(object.tag != 0));
  }
}

void Import(uint32_t client, uint32_t parent, int fd, const uint32_t* handles,
            uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto [block, tag] = exports[fd][i];
    ++block->names;
    objects[{client, handles[i]}] = {.parent = parent,
                                     .cls = rm::kClassMemoryLocal,
                                     .block = block,
                                     .tag = tag};
  }
}

// An object of class 0xE0 holds the memory by names below it.
void HoldBelow(uint32_t client, uint32_t holder,
               const rm::ExportMemParams& params) {
  static uint32_t next_name = 0xd0000000;
  for (uint32_t i = 0; i < params.count; ++i) {
    Object copy = objects[{client, params.handles[i]}];
    copy.parent = holder;
    ++copy.block->names;
    objects[{client, next_name++}] = copy;
  }
}

uint32_t Slice(const rm::ControlArg& arg, Object* group) {
  auto& params = At<rm::TimesliceParams>(arg.params);
  if (arg.cmd == rm::kCtrlGetTimeslice) {
    params.us = group->slice;
    return rm::kOk;
  }
  if (options().refuse_slices) return rm::kNotSupported;
  group->slice = params.us;
  Note("slice " + std::to_string(arg.object) + " " + std::to_string(params.us));
  return rm::kOk;
}

uint32_t Control(uint64_t file, const rm::ControlArg& arg) {
  auto root = objects.find({arg.client, arg.client});
  if (root == objects.end() || root->second.file != file) {
    return rm::kInvalidClient;  // a client works through its own descriptor
  }
  auto it = objects.find({arg.client, arg.object});
  if (it == objects.end()) return rm::kInvalidObject;
  switch (arg.cmd) {
    case rm::kCtrlGetGid: {
      auto& params = At<rm::GidParams>(arg.params);
      const auto instance = Instance(arg.client, arg.object);
      strcpy(params.data, options().uuids[instance].c_str());
      params.length = static_cast<uint32_t>(strlen(params.data) + 1);
      return rm::kOk;
    }
    case rm::kCtrlSetTimeslice:
    case rm::kCtrlGetTimeslice:
      return Slice(arg, &it->second);
    case rm::kCtrlDisableChannels: {
      if (options().refuse_resume) return rm::kNotSupported;
      const auto& params = At<rm::DisableChannelsParams>(arg.params);
      for (uint32_t i = 0; i < params.count; ++i) {
        Note((params.disable ? "suspend " : "resume ") +
             std::to_string(params.channels[i]));
      }
      return rm::kOk;
    }
    case rm::kCtrlFbInfoV2: {
      const auto count = At<uint32_t>(arg.params);
      auto* list = reinterpret_cast<rm::FbInfo*>(arg.params + 4);
      for (uint32_t i = 0; i < count; ++i)
        list[i].data = FbValue(list[i].index);
      return rm::kOk;
    }
    case rm::kCtrlFbInfo: {
      const auto& params = At<rm::FbInfoParams>(arg.params);
      auto* list = reinterpret_cast<rm::FbInfo*>(params.list);
      for (uint32_t i = 0; i < params.count; ++i) {
        list[i].data = FbValue(list[i].index);
      }
      return rm::kOk;
    }
    case rm::kCtrlExportToFd: {
      const auto& params = At<rm::ExportToFdParams>(arg.params);
      exports.erase(params.fd);
      Export(arg.client, params.fd, &params.object, 1);
      return rm::kOk;
    }
    case rm::kCtrlExportManyToFd: {
      const auto& params = At<rm::ExportManyToFdParams>(arg.params);
      Export(arg.client, params.fd, params.objects, params.count);
      return rm::kOk;
    }
    case rm::kCtrlImportFromFd: {
      const auto& params = At<rm::ImportFromFdParams>(arg.params);
      Import(arg.client, params.parent, params.fd, &params.object, 1);
      return rm::kOk;
    }
    case rm::kCtrlImportManyFromFd: {
      const auto& params = At<rm::ImportManyFromFdParams>(arg.params);
      Import(arg.client, params.parent, params.fd, params.objects,
             params.count);
      return rm::kOk;
    }
    case rm::kCtrlExportMem:
      HoldBelow(arg.client, arg.object, At<rm::ExportMemParams>(arg.params));
      return rm::kOk;
    case rm::kCtrlSetTag:
    case rm::kCtrlGetTag: {
      if (it->second.block == nullptr || options().no_tags)
        return rm::kNotSupported;
      auto& params = At<rm::TagParams>(arg.params);
      if (arg.cmd == rm::kCtrlGetTag)
        params.tag = it->second.tag;
      else
        it->second.tag = params.tag;
      return rm::kOk;
    }
    case rm::kCtrlSurfaceInfo: {
      if (it->second.block == nullptr) return rm::kNotSupported;
      const auto& params = At<rm::SurfaceInfoParams>(arg.params);
      auto* list = reinterpret_cast<rm::SurfaceInfo*>(params.list);
      for (uint32_t i = 0; i < params.count; ++i)
        list[i].data = list[i].index == rm::kSurfaceSize
                           ? it->second.block->bytes / rm::kSurfaceSizeUnit
                           : rm::kAddressSpaceVideo;
      return rm::kOk;
    }
    default:
      return rm::kOk;
  }
}

// As a dma-buf: the descriptor comes back.
void ExportToDmaBuf(uint32_t size, char* arg) {
  auto& head = *reinterpret_cast<rm::DmaBufHead*>(arg);
  const bool old = size == rm::kDmaBufSizeOld;
  uint32_t handles[rm::kDmaBufMaxHandles];
  memcpy(handles, arg + (old ? rm::kDmaBufHandlesAtOld : rm::kDmaBufHandlesAt),
         sizeof handles);
  head.fd = memfd_create("dmabuf", MFD_CLOEXEC);
  Export(head.client, head.fd, handles, head.count);
  memset(arg + (old ? rm::kDmaBufStatusAtOld : rm::kDmaBufStatusAt), 0,
         sizeof(uint32_t));
}

uint32_t VidHeap(char* arg) {
  auto& head = *reinterpret_cast<rm::VidHeapArg*>(arg);
  auto& handle =
      At<uint32_t>(reinterpret_cast<uint64_t>(arg) + rm::kHeapHandleAt);
  const size_t size_at = head.function == rm::kHeapAllocRange
                             ? rm::kHeapSizeRangeAt
                             : rm::kHeapSizeAt;
  switch (head.function) {
    case rm::kHeapInfo:
      head.total = options().total;
      head.free = options().total - in_use;
      memcpy(arg + rm::kHeapInfoLargestAt, &head.free, sizeof head.free);
      return rm::kOk;
    case rm::kHeapFree:
      return FreeTree(head.client, handle);
    default: {
      Object object{.parent = head.parent, .cls = rm::kClassMemoryLocal};
      uint64_t bytes;
      memcpy(&bytes, arg + size_at, sizeof bytes);
      const uint32_t status = AllocateBytes(&bytes, &object);
      memcpy(arg + size_at, &bytes, sizeof bytes);
      if (status == rm::kOk) objects[{head.client, handle}] = object;
      return status;
    }
  }
}

void Escape(uint64_t file, uint32_t nr, uint32_t size, char* arg) {
  switch (nr) {
    case rm::kEscAlloc: {
      auto& a = *reinterpret_cast<rm::AllocArg*>(arg);
      const uint32_t status =
          Alloc(file, &a.client, a.parent, &a.handle, a.cls, a.params);
      if (size == sizeof(rm::AllocArg)) {
        a.status = status;
      } else {
        reinterpret_cast<rm::AllocArg32*>(arg)->status = status;
      }
      break;
    }
    case rm::kEscFree: {
      auto& a = *reinterpret_cast<rm::FreeArg*>(arg);
      a.status = FreeTree(a.client, a.object);
      break;
    }
    case rm::kEscControl: {
      auto& a = *reinterpret_cast<rm::ControlArg*>(arg);
      a.status = Control(file, a);
      break;
    }
    case rm::kEscDup: {
      auto& a = *reinterpret_cast<rm::DupArg*>(arg);
      Object copy = objects[{a.client_src, a.object_src}];
      copy.parent = a.parent;
      if (copy.block != nullptr) ++copy.block->names;
      objects[{a.client, a.object}] = copy;
      a.status = rm::kOk;
      break;
    }
    case rm::kEscVidHeap: {
      auto& a = *reinterpret_cast<rm::VidHeapArg*>(arg);
      a.status = VidHeap(arg);
      break;
    }
    case rm::kEscAllocMemory: {
      auto& a = *reinterpret_cast<rm::AllocMemoryArg*>(arg);
      a.limit = options().total - 1;
      a.status = rm::kOk;
      break;
    }
    case rm::kEscExportToDmaBuf:
      ExportToDmaBuf(size, arg);
      break;
    case rm::kEscCheckVersion: {
      auto& a = *reinterpret_cast<rm::VersionArg*>(arg);
      strncpy(a.version, options().version.c_str(), sizeof a.version - 1);
      break;
    }
    default:
      break;
  }
}

}  // namespace

Options& options() {
  static Options instance;
  return instance;
}

std::string Log() {
  std::lock_guard<std::mutex> lock(mutex);
  return log_text;
}

bool WaitLog(const std::string& text, int ms) {
  std::unique_lock<std::mutex> lock(mutex);
  return changed.wait_for(lock, std::chrono::milliseconds(ms), [&] {
    return log_text.find(text) != std::string::npos;
  });
}

void AddForeign(int fd, uint64_t bytes, uint32_t tag) {
  std::lock_guard<std::mutex> lock(mutex);
  in_use += bytes;
  exports[fd] = {{new Block{bytes, 1}, tag}};
}

void AddForeignClient(uint32_t client, uint32_t handle, uint64_t bytes,
                      uint32_t tag) {
  std::lock_guard<std::mutex> lock(mutex);
  in_use += bytes;
  objects[{client, handle}] = {
      .cls = rm::kClassMemoryLocal, .block = new Block{bytes, 1}, .tag = tag};
}

uint64_t BytesInUse() {
  std::lock_guard<std::mutex> lock(mutex);
  return in_use;
}

}  // namespace rondo::fake_driver

using namespace rondo;

extern "C" int ioctl(int fd, unsigned long request, void* arg) {
  const auto number = static_cast<uint32_t>(request);
  const bool driver = rm::RequestType(number) == rm::kIoctlType;
  const bool uvm = number == rm::kUvmInitialize || number < 128;
  if (!driver && !uvm) {
    return static_cast<int>(syscall(SYS_ioctl, fd, request, arg));
  }
  std::lock_guard<std::mutex> lock(fake_driver::mutex);
  if (fake_driver::options().no_ioctl) {
    errno = ENOSYS;
    return -1;
  }
  if (number == rm::kUvmInitialize) {
    auto* flags = static_cast<uint64_t*>(arg);
    fake_driver::Note(*flags & rm::kUvmInitDisableHmm ? "hmm off" : "hmm on");
    memset(flags + 1, 0, sizeof(uint32_t));
    return 0;
  }
  if (!driver) return 0;
  if (arg == nullptr) {
    errno = EFAULT;
    return -1;
  }
  struct stat st {};
  fstat(fd, &st);
  const uint64_t file = st.st_ino;
  if (rm::RequestNr(number) == rm::kEscWrapped) {
    const auto& wrapped = *static_cast<rm::WrappedArg*>(arg);
    fake_driver::Escape(file, wrapped.cmd, wrapped.size,
                        reinterpret_cast<char*>(wrapped.ptr));
  } else {
    fake_driver::Escape(file, rm::RequestNr(number), rm::RequestSize(number),
                        static_cast<char*>(arg));
  }
  return 0;
}
