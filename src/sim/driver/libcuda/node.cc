// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/libcuda/node.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <string>

#include "sim/driver/locate.h"

namespace rondo::sim::cuda {
namespace {

const NodeState* g_node = nullptr;
std::vector<VisibleGpu> g_visible;

const NodeState* MapState() {
  char folder[PATH_MAX];
  if (!driver::FindNodeFolder(reinterpret_cast<const void*>(&MapState), folder))
    return nullptr;
  char path[PATH_MAX + 32];
  snprintf(path, sizeof(path), "%s/%s", folder, driver::kStateFile);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat info;
  void* at = MAP_FAILED;
  if (fstat(fd, &info) == 0 && info.st_size == sizeof(NodeState))
    at = mmap(nullptr, sizeof(NodeState), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) return nullptr;
  const auto* const node = static_cast<const NodeState*>(at);
  return node->magic == kStateMagic && node->version == kStateVersion ? node
                                                                      : nullptr;
}

// An index or a UUID, or the beginning of one; -1 = no GPU here is meant.
int Match(const std::string& word) {
  if (word.empty()) return -1;
  if (word.find_first_not_of("0123456789") == std::string::npos) {
    const unsigned long index = strtoul(word.c_str(), nullptr, 10);
    return index < g_node->gpu_count ? static_cast<int>(index) : -1;
  }
  for (uint32_t i = 0; i < g_node->gpu_count; ++i)
    if (word.size() >= 8 &&
        strncmp(g_node->gpus[i].uuid, word.c_str(), word.size()) == 0)
      return static_cast<int>(i);
  return -1;
}

// As CUDA does: the list ends at the first word that names no GPU.
void Choose(const char* list) {
  std::string word;
  for (const char* at = list;; ++at) {
    if (*at != ',' && *at != '\0') {
      word += *at;
      continue;
    }
    const int index = Match(word);
    if (index < 0) return;
    g_visible.push_back({&g_node->gpus[index], static_cast<uint32_t>(index)});
    word.clear();
    if (*at == '\0') return;
  }
}

}  // namespace

bool LoadNode() {
  if (g_node != nullptr) return true;
  g_node = MapState();
  if (g_node == nullptr) return false;
  const char* chosen = getenv("CUDA_VISIBLE_DEVICES");
  if (chosen == nullptr) {
    chosen = getenv("NVIDIA_VISIBLE_DEVICES");
    // "all", nothing, and the paths of volume mounts say nothing of GPUs.
    if (chosen != nullptr &&
        (*chosen == '\0' || *chosen == '/' || strcmp(chosen, "all") == 0))
      chosen = nullptr;
  }
  if (chosen != nullptr) {
    Choose(chosen);
    return true;
  }
  for (uint32_t i = 0; i < g_node->gpu_count; ++i)
    g_visible.push_back({&g_node->gpus[i], i});
  return true;
}

const NodeState& Node() { return *g_node; }

const std::vector<VisibleGpu>& VisibleGpus() { return g_visible; }

}  // namespace rondo::sim::cuda
