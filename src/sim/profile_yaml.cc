// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "sim/profile.h"
#include "sim/state.h"

namespace rondo::sim {
namespace {

// Fails with the place in front; yaml-cpp counts from 0, people from 1.
class Reader {
 public:
  explicit Reader(absl::string_view name) : name_(name) {}

  absl::Status Error(const YAML::Node& node, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ":", node.Mark().line + 1, ":",
                     node.Mark().column + 1, ": ", what));
  }

  template <typename T>
  absl::Status Read(const YAML::Node& node, const char* kind, T* out) const {
    if (node.IsScalar() && YAML::convert<T>::decode(node, *out))
      return absl::OkStatus();
    return Error(node, absl::StrCat("expected ", kind));
  }
  template <typename T>
  absl::Status Read(const YAML::Node& node, const char* kind,
                    std::optional<T>* out) const {
    T value{};
    RONDO_RETURN_IF_ERROR(Read(node, kind, &value));
    *out = value;
    return absl::OkStatus();
  }

  absl::Status Bytes(const YAML::Node& node, uint64_t* out) const {
    std::string text;
    RONDO_RETURN_IF_ERROR(Read(node, "an amount of memory", &text));
    auto bytes = ParseBytes(text);
    if (!bytes.ok()) return Error(node, bytes.status().message());
    *out = *bytes;
    return absl::OkStatus();
  }

  using Member = std::function<absl::Status(const YAML::Node&)>;
  using Members = std::map<std::string, Member>;

  // Calls the member of each key; a key without one is an error.
  absl::Status Map(const YAML::Node& node, const Members& members) const {
    if (!node.IsMap()) return Error(node, "expected a map");
    for (const auto& entry : node) {
      const auto member = members.find(entry.first.Scalar());
      if (member == members.end())
        return Error(
            entry.first,
            absl::StrCat(
                "unknown key '", entry.first.Scalar(), "'; known here: ",
                absl::StrJoin(members, ", ", [](auto* out, const auto& m) {
                  out->append(m.first);
                })));
      RONDO_RETURN_IF_ERROR(member->second(entry.second));
    }
    return absl::OkStatus();
  }

  absl::Status Sequence(const YAML::Node& node, const Member& each) const {
    if (!node.IsSequence()) return Error(node, "expected a list");
    for (const YAML::Node& item : node) RONDO_RETURN_IF_ERROR(each(item));
    return absl::OkStatus();
  }

 private:
  std::string name_;
};

absl::Status ReadProcess(const Reader& r, const YAML::Node& node,
                         std::vector<SimProcess>* out) {
  SimProcess p;
  RONDO_RETURN_IF_ERROR(r.Map(
      node,
      {{"pid", [&](auto& n) { return r.Read(n, "a number", &p.pid); }},
       {"memory", [&](auto& n) { return r.Bytes(n, &p.used_bytes); }},
       {"sm",
        [&](auto& n) { return r.Read(n, "a percentage", &p.sm_percent); }},
       {"memoryUtilization",
        [&](auto& n) { return r.Read(n, "a percentage", &p.memory_percent); }},
       {"migSlot", [&](auto& n) { return r.Read(n, "a slot", &p.mig_slot); }},
       {"graphics",
        [&](auto& n) { return r.Read(n, "true or false", &p.graphics); }}}));
  if (p.pid == 0) return r.Error(node, "a process needs a pid");
  if (p.sm_percent > 100 || p.memory_percent > 100)
    return r.Error(node, "a percentage is at most 100");
  out->push_back(p);
  return absl::OkStatus();
}

absl::Status ReadMig(const Reader& r, const YAML::Node& node, GpuSpec* spec) {
  std::vector<std::string> words;
  RONDO_RETURN_IF_ERROR(r.Sequence(node, [&](const YAML::Node& item) {
    words.emplace_back();
    return r.Read(item, "a MIG profile", &words.back());
  }));
  auto mig = ExpandMig(*spec->model, words);
  if (!mig.ok()) return r.Error(node, mig.status().message());
  spec->mig_enabled = true;  // also for an empty list: MIG on, nothing made
  spec->mig = *std::move(mig);
  return absl::OkStatus();
}

absl::Status ReadGpu(const Reader& r, const YAML::Node& node,
                     Profile* profile) {
  GpuSpec spec;
  int count = 1;
  YAML::Node mig;
  std::string model;
  const Reader::Members members = {
      {"model", [&](auto& n) { return r.Read(n, "a model", &model); }},
      {"count", [&](auto& n) { return r.Read(n, "a number", &count); }},
      {"name", [&](auto& n) { return r.Read(n, "a name", &spec.name); }},
      {"uuid", [&](auto& n) { return r.Read(n, "a UUID", &spec.uuid); }},
      {"numa", [&](auto& n) { return r.Read(n, "a NUMA node", &spec.numa); }},
      {"minor", [&](auto& n) { return r.Read(n, "a number", &spec.minor); }},
      {"ecc", [&](auto& n) { return r.Read(n, "true or false", &spec.ecc); }},
      {"xidEvents",
       [&](auto& n) { return r.Read(n, "true or false", &spec.xid_events); }},
      {"memory",
       [&](auto& n) {
         uint64_t bytes = 0;
         absl::Status status = r.Bytes(n, &bytes);
         spec.memory_mib = bytes >> 20;
         return status;
       }},
      {"mig",
       [&](auto& n) {
         mig.reset(n);
         return absl::OkStatus();
       }},
      {"processes", [&](auto& n) {
         return r.Sequence(n, [&](const YAML::Node& item) {
           return ReadProcess(r, item, &spec.processes);
         });
       }}};
  RONDO_RETURN_IF_ERROR(r.Map(node, members));
  spec.model = FindModel(model);
  if (spec.model == nullptr)
    return r.Error(node, absl::StrCat("no GPU model '", model,
                                      "'; `rondo sim list` shows them"));
  if (mig.IsDefined() && !mig.IsNull())
    RONDO_RETURN_IF_ERROR(ReadMig(r, mig, &spec));
  if (count < 1 || profile->gpus.size() + count > kMaxGpus)
    return r.Error(node, absl::StrCat("a node has 1 to ", kMaxGpus, " GPUs"));
  if (count > 1 && (!spec.uuid.empty() || spec.minor))
    return r.Error(node, "uuid and minor belong to one GPU; count must be 1");
  profile->gpus.insert(profile->gpus.end(), count, spec);
  return absl::OkStatus();
}

absl::Status ReadLink(const Reader& r, const YAML::Node& node,
                      Profile* profile) {
  LinkSpec link;
  std::vector<int> ends;
  RONDO_RETURN_IF_ERROR(r.Map(
      node, {{"between",
              [&](auto& n) {
                return r.Sequence(n, [&](const YAML::Node& item) {
                  ends.push_back(0);
                  return r.Read(item, "a GPU index", &ends.back());
                });
              }},
             {"count",
              [&](auto& n) { return r.Read(n, "a number", &link.count); }}}));
  if (ends.size() != 2 || link.count < 1)
    return r.Error(node, "a link is {between: [0, 1], count: 2}");
  link.a = ends[0];
  link.b = ends[1];
  profile->links.push_back(link);
  return absl::OkStatus();
}

absl::Status ReadProfile(const Reader& r, const YAML::Node& root,
                         Profile* profile) {
  const Reader::Members members = {
      {"driver",
       [&](auto& n) {
         return r.Read(n, "a version", &profile->driver_version);
       }},
      {"cuda",
       [&](auto& n) {
         return r.Read(n, "13000 for CUDA 13.0", &profile->cuda_version);
       }},
      {"seed", [&](auto& n) { return r.Read(n, "a word", &profile->seed); }},
      {"nvlink",
       [&](auto& n) {
         const std::string word = n.IsScalar() ? n.Scalar() : "";
         if (word != "none" && word != "model")
           return r.Error(n, "nvlink is model or none");
         profile->nvlink =
             word == "none" ? NvLinkLayout::kNone : NvLinkLayout::kModel;
         return absl::OkStatus();
       }},
      {"links",
       [&](auto& n) {
         return r.Sequence(n, [&](const YAML::Node& item) {
           return ReadLink(r, item, profile);
         });
       }},
      {"gpus", [&](auto& n) {
         return r.Sequence(n, [&](const YAML::Node& item) {
           return ReadGpu(r, item, profile);
         });
       }}};
  RONDO_RETURN_IF_ERROR(r.Map(root, members));
  for (const LinkSpec& link : profile->links) {
    const int n = static_cast<int>(profile->gpus.size());
    if (link.a < 0 || link.b < 0 || link.a >= n || link.b >= n ||
        link.a == link.b)
      return r.Error(root["links"],
                     absl::StrCat("a link joins two of GPUs 0 to ", n - 1));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Profile> ParseYamlProfile(absl::string_view yaml,
                                         absl::string_view name) {
  const Reader reader(name);
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    Profile profile;
    if (!root.IsMap())
      return reader.Error(root, "expected a map with the key gpus");
    RONDO_RETURN_IF_ERROR(ReadProfile(reader, root, &profile));
    return profile;
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ":", e.mark.line + 1, ":", e.mark.column + 1, ": ", e.msg));
  }
}

}  // namespace rondo::sim
