// SPDX-License-Identifier: Apache-2.0
#include "sim/node.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "sim/faults.h"
#include "sim/layout.h"
#include "sim/profile.h"
#include "sim/stage.h"
#include "sim/state.h"

namespace rondo::sim {
namespace {

// One writer at a time, whatever its process. A descriptor of its own each
// time: flock does not tell threads apart that share one.
class WriteLock {
 public:
  static absl::StatusOr<WriteLock> Take(const std::string& path) {
    UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.ok()) return ErrnoStatus(absl::StrCat("open ", path));
    while (flock(fd.get(), LOCK_EX) != 0)
      if (errno != EINTR) return ErrnoStatus(absl::StrCat("lock ", path));
    return WriteLock(std::move(fd));
  }

 private:
  explicit WriteLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

absl::StatusOr<NodeState*> MapState(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.ok())
    return Annotate(ErrnoStatus(absl::StrCat("open ", path)),
                    "no simulated node is staged here");
  struct stat info;
  if (fstat(fd.get(), &info) != 0)
    return ErrnoStatus(absl::StrCat("stat ", path));
  if (info.st_size != sizeof(NodeState))
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is not a node of this version of rondo; stage it again"));
  void* const at = mmap(nullptr, sizeof(NodeState), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return ErrnoStatus(absl::StrCat("map ", path));
  auto* const state = static_cast<NodeState*>(at);
  if (state->magic != kStateMagic || state->version != kStateVersion) {
    munmap(at, sizeof(NodeState));
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is not a node of this version of rondo; stage it again"));
  }
  return state;
}

std::string StatePath(const std::string& dir) {
  return absl::StrCat(dir, kLibraryFolder, "/", kStateFileName);
}

absl::Status CheckGpu(const NodeState& state, int gpu) {
  if (gpu >= 0 && gpu < static_cast<int>(state.gpu_count))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "no GPU ", gpu, "; the node has 0 to ", state.gpu_count - 1));
}

}  // namespace

Node::Node(std::string dir, std::string state_path, NodeState* state)
    : dir_(std::move(dir)), state_path_(std::move(state_path)), state_(state) {}

Node::Node(Node&& other) noexcept
    : dir_(std::move(other.dir_)),
      state_path_(std::move(other.state_path_)),
      state_(std::exchange(other.state_, nullptr)) {}

Node& Node::operator=(Node&& other) noexcept {
  std::swap(dir_, other.dir_);
  std::swap(state_path_, other.state_path_);
  std::swap(state_, other.state_);
  return *this;
}

Node::~Node() {
  if (state_ != nullptr) munmap(state_, sizeof(NodeState));
}

absl::StatusOr<Node> Node::Create(absl::string_view profile,
                                  const std::string& dir) {
  RONDO_ASSIGN_OR_RETURN(const Profile parsed, LoadProfile(profile));
  const auto state = std::make_unique<NodeState>();
  RONDO_RETURN_IF_ERROR(FillState(parsed, state.get()));
  RONDO_RETURN_IF_ERROR(StageNode(*state, dir));
  return Open(dir);
}

absl::StatusOr<Node> Node::Open(const std::string& path) {
  struct stat info;
  std::string dir = path, file = StatePath(path);
  if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    file = path;
    const std::string tail = absl::StrCat(kLibraryFolder, "/", kStateFileName);
    dir = path.substr(0, path.rfind('/'));
    if (absl::EndsWith(path, tail))
      dir = path.substr(0, path.size() - tail.size());
  }
  RONDO_ASSIGN_OR_RETURN(NodeState * state, MapState(file));
  return Node(std::move(dir), std::move(file), state);
}

std::string Node::library_path() const {
  return absl::StrCat(dir_, kLibraryFolder, "/", kLibraryName);
}

int Node::gpu_count() const { return static_cast<int>(state_->gpu_count); }

absl::StatusOr<std::string> Node::Uuid(int gpu) const {
  RONDO_RETURN_IF_ERROR(CheckGpu(*state_, gpu));
  return std::string(state_->gpus[gpu].uuid);
}

absl::StatusOr<Place> Node::Find(absl::string_view text) const {
  if (int index = 0; absl::SimpleAtoi(text, &index)) {
    RONDO_RETURN_IF_ERROR(CheckGpu(*state_, index));
    return Place{index};
  }
  for (int i = 0; i < gpu_count(); ++i) {
    const GpuState& g = state_->gpus[i];
    if (g.uuid == text) return Place{i};
    for (uint32_t slot = 0; slot < g.mig_count; ++slot)
      if (g.migs[slot].uuid == text) return Place{i, static_cast<int>(slot)};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no GPU or MIG device '", text, "' on this node"));
}

absl::Status Node::Xid(int gpu, uint64_t xid, int mig_slot) {
  RONDO_RETURN_IF_ERROR(CheckGpu(*state_, gpu));
  const GpuState& g = state_->gpus[gpu];
  if (mig_slot >= static_cast<int>(g.mig_count))
    return absl::InvalidArgumentError(
        absl::StrCat("GPU ", gpu, " has no MIG device in slot ", mig_slot));
  RONDO_ASSIGN_OR_RETURN(const WriteLock lock, WriteLock::Take(state_path_));
  RaiseXid(state_, gpu, xid, mig_slot < 0 ? nullptr : &g.migs[mig_slot]);
  return absl::OkStatus();
}

absl::Status Node::Lose(int gpu) {
  RONDO_RETURN_IF_ERROR(CheckGpu(*state_, gpu));
  RONDO_ASSIGN_OR_RETURN(const WriteLock lock, WriteLock::Take(state_path_));
  LoseGpu(state_, gpu);
  return absl::OkStatus();
}

absl::Status Node::EccError(int gpu) {
  RONDO_RETURN_IF_ERROR(CheckGpu(*state_, gpu));
  if ((state_->gpus[gpu].flags & kHasEcc) == 0)
    return absl::InvalidArgumentError(
        absl::StrCat(state_->gpus[gpu].name, " has no ECC"));
  RONDO_ASSIGN_OR_RETURN(const WriteLock lock, WriteLock::Take(state_path_));
  RaiseDoubleBitError(state_, gpu);
  return absl::OkStatus();
}

absl::Status Node::Clear(int gpu) {
  RONDO_RETURN_IF_ERROR(CheckGpu(*state_, gpu));
  RONDO_ASSIGN_OR_RETURN(const WriteLock lock, WriteLock::Take(state_path_));
  ResetGpu(state_, gpu);
  return absl::OkStatus();
}

absl::Status Node::SetProcess(int gpu, const SimProcess& process) {
  RONDO_RETURN_IF_ERROR(CheckGpu(*state_, gpu));
  RONDO_ASSIGN_OR_RETURN(const WriteLock lock, WriteLock::Take(state_path_));
  return StoreProcess(process, &state_->gpus[gpu]);
}

absl::Status Node::SetMeasured(int gpu) {
  RONDO_RETURN_IF_ERROR(CheckGpu(*state_, gpu));
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  state_->gpus[gpu].measured_us =
      uint64_t{1'000'000} * now.tv_sec + now.tv_nsec / 1000;
  return absl::OkStatus();
}

absl::Status Node::RemoveProcess(int gpu, uint32_t pid) {
  RONDO_RETURN_IF_ERROR(CheckGpu(*state_, gpu));
  RONDO_ASSIGN_OR_RETURN(const WriteLock lock, WriteLock::Take(state_path_));
  bool found = false;
  for (ProcessState& p : state_->gpus[gpu].processes) {
    if (p.pid != pid) continue;
    p.pid = 0;
    found = true;
  }
  if (found) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no process ", pid, " on GPU ", gpu));
}

}  // namespace rondo::sim
