// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/prefer.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "deviceplugin/aligned.h"

namespace rondo::deviceplugin {
namespace {

int Score(const LinkScores& links, const std::string& a, const std::string& b) {
  const auto found = links.find(std::minmax(a, b));
  return found == links.end() ? 0 : found->second;
}

// Positions in the view of known, distinct, whole devices.
std::vector<int> WholeDevices(const View& view,
                              const std::vector<absl::string_view>& ids) {
  std::vector<int> devices;
  for (const absl::string_view id : ids) {
    DeviceId whole;
    whole.uuid = id;
    const int device = view.Find(whole);
    if (device >= 0) devices.push_back(device);
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

std::vector<std::string> PreferAligned(const View& view,
                                       const LinkScores& links,
                                       const PreferRequest& request) {
  // One id that we do not know (a GPU that was lost a moment ago) is dropped;
  // NVIDIA's plugin fails the call, and with it the pod (#231, #2038).
  const std::vector<int> available = WholeDevices(view, request.available);
  std::vector<int> required;
  for (const int device : WholeDevices(view, request.required)) {
    const auto at =
        std::lower_bound(available.begin(), available.end(), device);
    if (at == available.end() || *at != device) return {};
    required.push_back(static_cast<int>(at - available.begin()));
  }
  ScoreMatrix scores(available.size(), std::vector<int>(available.size(), 0));
  const auto uuid = [&](size_t i) -> const std::string& {
    return view.devices()[available[i]].uuid;
  };
  for (size_t i = 0; i < available.size(); ++i) {
    for (size_t j = i + 1; j < available.size(); ++j)
      scores[i][j] = scores[j][i] = Score(links, uuid(i), uuid(j));
  }
  std::vector<std::string> answer;
  for (const int i : BestAlignedSet(scores, required, request.size))
    answer.push_back(uuid(i));
  return answer;
}

// The candidates of one device.
struct Pool {
  std::vector<uint32_t> replicas;  // a heap, lowest on top, once heaped
  bool is_replica = false;
  bool heaped = false;
  int64_t in_use = 0;
  int64_t picked = 0;        // in this call
  int64_t in_container = 0;  // picked or required
};

uint32_t TakeLowest(Pool& pool) {
  if (!pool.heaped) {
    std::make_heap(pool.replicas.begin(), pool.replicas.end(),
                   std::greater<>());
    pool.heaped = true;
  }
  std::pop_heap(pool.replicas.begin(), pool.replicas.end(), std::greater<>());
  const uint32_t lowest = pool.replicas.back();
  pool.replicas.pop_back();
  return lowest;
}

// Smaller is better.
std::tuple<int64_t, int64_t, int64_t> Rank(const Pool& pool,
                                           config::AllocationPolicy policy) {
  switch (policy) {
    case config::AllocationPolicy::kDistributed:
      return {pool.in_use, pool.picked, 0};
    case config::AllocationPolicy::kPacked:
      return {-pool.in_use, pool.picked, 0};
    case config::AllocationPolicy::kSpread:
      return {pool.in_container, pool.in_use, pool.picked};
  }
  return {};
}

std::vector<Pool> FillPools(const View& view, const PreferRequest& request) {
  const absl::flat_hash_set<absl::string_view> required(
      request.required.begin(), request.required.end());
  std::vector<Pool> pools(view.devices().size());
  for (size_t i = 0; i < pools.size(); ++i)
    pools[i].in_use = view.Total(static_cast<int>(i));
  for (const absl::string_view id : request.required) {
    const std::optional<DeviceId> parsed = ParseDeviceId(id);
    const int device = parsed.has_value() ? view.Find(*parsed) : -1;
    if (device >= 0) ++pools[device].in_container;
  }
  for (const absl::string_view id : request.available) {
    const std::optional<DeviceId> parsed = ParseDeviceId(id);
    if (!parsed.has_value()) continue;
    const int device = view.Find(*parsed);
    if (device < 0) continue;
    if (!required.empty() && required.contains(id)) continue;
    Pool& pool = pools[device];
    pool.is_replica = parsed->is_replica;
    pool.replicas.push_back(parsed->replica);
    --pool.in_use;
  }
  return pools;
}

absl::StatusOr<std::vector<std::string>> PreferOneByOne(
    const View& view, config::AllocationPolicy policy,
    const PreferRequest& request) {
  std::vector<std::string> answer(request.required.begin(),
                                  request.required.end());
  int64_t needed =
      static_cast<int64_t>(request.size) - static_cast<int64_t>(answer.size());
  if (needed <= 0) return answer;
  std::vector<Pool> pools = FillPools(view, request);
  int64_t candidates = 0;
  for (const Pool& pool : pools)
    candidates += static_cast<int64_t>(pool.replicas.size());
  if (candidates < needed)
    return absl::ResourceExhaustedError(
        "not enough available devices to satisfy allocation");
  for (; needed > 0; --needed) {
    int best = -1;
    for (size_t i = 0; i < pools.size(); ++i) {
      if (pools[i].replicas.empty()) continue;
      if (best < 0 || Rank(pools[i], policy) < Rank(pools[best], policy))
        best = static_cast<int>(i);
    }
    Pool& pool = pools[best];
    const uint32_t replica = TakeLowest(pool);
    const std::string& uuid = view.devices()[best].uuid;
    answer.push_back(pool.is_replica ? ReplicaId(uuid, replica) : uuid);
    ++pool.in_use;
    ++pool.picked;
    ++pool.in_container;
  }
  return answer;
}

bool AnyReplica(const std::vector<absl::string_view>& ids) {
  return std::any_of(ids.begin(), ids.end(), [](absl::string_view id) {
    return id.find("::") != absl::string_view::npos;
  });
}

}  // namespace

absl::StatusOr<std::vector<std::string>> Prefer(const View& view,
                                                config::AllocationPolicy policy,
                                                const LinkScores& links,
                                                const PreferRequest& request) {
  if (view.any_mig() || AnyReplica(request.available))
    return PreferOneByOne(view, policy, request);
  return PreferAligned(view, links, request);
}

}  // namespace rondo::deviceplugin
