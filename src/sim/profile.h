// SPDX-License-Identifier: Apache-2.0
//
// What a simulated node is made of, as a value: read from a short form on the
// command line or from a YAML file, then staged by Node. Any thread. Failure:
// InvalidArgument that names the place (file:line) and what would be right.
//
//   short form   ENTRY[,ENTRY...]
//   ENTRY        [<count>x]MODEL[+MIG]... : "8xH100", "2xA100+3g.40gb+3g.40gb",
//                "T4,H100+7x1g.10gb", "2xH100+MIG" (all 1g slices)

#ifndef RONDO_SIM_PROFILE_H_
#define RONDO_SIM_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sim/models.h"
#include "sim/node.h"

namespace rondo::sim {

struct GpuSpec {
  const Model* model = nullptr;
  // Overrides of the model and of what the place in the node would give.
  std::string name, uuid;
  std::optional<uint64_t> memory_mib;
  std::optional<int> numa;
  std::optional<uint32_t> minor;
  std::optional<bool> ecc, xid_events;
  bool mig_enabled = false;
  // Names of MIG profiles in the order of their slots: "3g.40gb",
  // "1c.3g.40gb", "1g.10gb+me".
  std::vector<std::string> mig;
  std::vector<SimProcess> processes;
};

struct LinkSpec {
  int a = 0, b = 0, count = 0;
};

enum class NvLinkLayout { kModel, kNone };

struct Profile {
  std::string driver_version = "580.159.04";
  uint32_t cuda_version = 13000;
  // Nodes of different seeds have different UUIDs and serial numbers.
  std::string seed;
  NvLinkLayout nvlink = NvLinkLayout::kModel;
  std::vector<LinkSpec> links;  // replace the model's where not empty
  std::vector<GpuSpec> gpus;
};

// text is the path of a YAML file if it holds a '/' or ends in .yaml or .yml,
// else a short form.
absl::StatusOr<Profile> LoadProfile(absl::string_view text);

absl::StatusOr<Profile> ParseShortProfile(absl::string_view text);

// name stands in messages for the file.
absl::StatusOr<Profile> ParseYamlProfile(absl::string_view yaml,
                                         absl::string_view name);

// The MIG devices that `words` ask for: "MIG", "7x1g.10gb", "3g.40gb". Checks
// that the model has the profiles; whether they fit is known when staged.
absl::StatusOr<std::vector<std::string>> ExpandMig(
    const Model& model, const std::vector<std::string>& words);

// "2GiB", "512MiB", "1024" -> bytes.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);

}  // namespace rondo::sim

#endif  // RONDO_SIM_PROFILE_H_
