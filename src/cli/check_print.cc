// SPDX-License-Identifier: Apache-2.0
//
// The report of `rondo check` as text and as JSON.

#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/check.h"
#include "config/compile.h"

namespace rondo::cli {
namespace {

using Json = nlohmann::ordered_json;
using config::Problem;

constexpr const char* kIndent = "  ";

std::string FileName(const CheckedConfig& checked) {
  return checked.file == "-" ? "(stdin)" : checked.file;
}

std::string Title(const CheckedConfig& checked) {
  std::string title = FileName(checked);
  if (checked.kind == "configmap") {
    absl::StrAppend(&title, ": ConfigMap", checked.name.empty() ? "" : " ",
                    checked.name);
  } else if (checked.kind == "helm") {
    absl::StrAppend(&title, ": Helm values");
  } else if (checked.kind == "clusterpolicy") {
    return absl::StrCat(
        title, ": ClusterPolicy",
        checked.name.empty() ? ""
                             : absl::StrCat(" for ConfigMap ", checked.name),
        checked.key.empty() ? "" : absl::StrCat(", default ", checked.key));
  } else if (checked.kind == "directory") {
    return absl::StrCat(title, ": config of a directory");
  } else if (checked.kind == "config") {
    return absl::StrCat(title, ": config");
  }
  if (!checked.key.empty()) absl::StrAppend(&title, ", key ", checked.key);
  return title;
}

void Line(std::ostream& out, absl::string_view label, absl::string_view text) {
  out << kIndent << absl::StreamFormat("%-11s", label) << text << "\n";
}

// "nvidia.com/gpu 16 (4 GPUs)"
std::string AdvertiseText(const CheckedConfig& checked) {
  std::vector<std::string> parts;
  for (const config::Advertised& advertised : checked.advertise) {
    parts.push_back(
        absl::StrCat(advertised.resource, ": ", advertised.devices));
  }
  std::vector<std::string> devices;
  for (const auto& [name, group] : checked.groups) {
    devices.push_back(absl::StrCat(group.count, " ", name));
  }
  return absl::StrCat(parts.empty() ? "nothing" : absl::StrJoin(parts, ", "),
                      checked.on_node ? " (the node has " : " (on a node with ",
                      absl::StrJoin(devices, ", "), ")");
}

std::string SharingText(const config::Plan& plan) {
  std::vector<std::string> parts;
  for (const config::SharedResource& resource : plan.sharing.resources) {
    std::string part = absl::StrCat(resource.name, " x ", resource.replicas);
    if (resource.devices.kind == config::DeviceSelector::Kind::kCount) {
      absl::StrAppend(&part, " on ", resource.devices.count, " devices");
    } else if (resource.devices.kind == config::DeviceSelector::Kind::kList) {
      std::vector<std::string> list;
      for (const auto& ref : resource.devices.list) list.push_back(ref.text);
      absl::StrAppend(&part, " on devices ", absl::StrJoin(list, ","));
    }
    if (!resource.rename.empty()) {
      absl::StrAppend(&part, " as ", resource.rename);
    }
    parts.push_back(std::move(part));
  }
  if (parts.empty()) return "nothing: each device goes to one pod";
  if (plan.sharing.fail_requests_greater_than_one) {
    parts.push_back("one share a container at most");
  }
  return absl::StrJoin(parts, ", ");
}

// Values that differ from the defaults, as paths.
void Differences(const Json& value, const Json& base, const std::string& path,
                 std::vector<std::string>& out) {
  if (!value.is_object()) {
    if (value == base) return;
    out.push_back(absl::StrCat(
        path, "=",
        value.is_string() ? value.get<std::string>() : value.dump()));
    return;
  }
  for (const auto& [key, child] : value.items()) {
    const Json other = base.is_object() ? base.value(key, Json()) : Json();
    Differences(child, other, absl::StrCat(path, path.empty() ? "" : ".", key),
                out);
  }
}

Json Effective(const config::Plan& plan) {
  return Json::parse(config::RunningWithConfigJson(plan, 0));
}

void PrintPlan(const CheckedConfig& checked, std::ostream& out) {
  Line(out, "shares", SharingText(*checked.plan));
  Line(out, "advertises", AdvertiseText(checked));
  Json effective = Effective(*checked.plan);
  Json defaults = Effective(config::Plan());
  std::vector<std::string> flags;
  effective["flags"].erase("nvidiaDevRoot");
  Differences(effective["flags"], defaults["flags"], "", flags);
  Differences(effective["imex"], defaults["imex"], "imex", flags);
  Line(out, "flags", flags.empty() ? "defaults" : absl::StrJoin(flags, ", "));
  if (!checked.plan->rondo.present) return;
  std::vector<std::string> rondo;
  Differences(effective["rondo"], Json(), "", rondo);
  Line(out, "rondo", absl::StrJoin(rondo, ", "));
}

void PrintNvidia(const CheckedConfig& checked, std::ostream& out) {
  if (!checked.nvidia.ok) {
    Line(out, "nvidia",
         absl::StrCat("refuses: ", config::Printable(checked.nvidia.error)));
    return;
  }
  Line(out, "nvidia", absl::StrCat("accepts: ", checked.nvidia.strategy));
  for (const std::string& warning : checked.nvidia.warnings) {
    Line(out, "", warning);
  }
}

void PrintProblem(const Problem& problem, std::ostream& out) {
  const std::string place =
      problem.line > 0 ? absl::StrCat(problem.line, ":", problem.column) : "-";
  out << kIndent << absl::StreamFormat("%-8s", place)
      << absl::StreamFormat("%-8s", config::SeverityName(problem.severity))
      << problem.message << " [" << config::CodeName(problem.code) << "]\n";
  if (!problem.hint.empty()) {
    out << kIndent << std::string(16, ' ') << "-> " << problem.hint << "\n";
  }
}

Json ProblemJson(const Problem& problem) {
  return {{"severity", config::SeverityName(problem.severity).data()},
          {"code", config::CodeName(problem.code).data()},
          {"line", problem.line},
          {"column", problem.column},
          {"message", problem.message},
          {"hint", problem.hint}};
}

Json ConfigJson(const CheckedConfig& checked, const std::string& why,
                const CheckOptions& options) {
  Json json;
  json["file"] = checked.file;
  json["kind"] = checked.kind;
  json["key"] = checked.key;
  json["verdict"] = checked.ok ? "ok" : "refused";
  json["error"] = checked.error;
  json["nvidia"] = {{"verdict", checked.nvidia.ok ? "ok" : "refused"},
                    {"strategy", checked.nvidia.strategy},
                    {"sharing", Json::parse(checked.nvidia.sharing)}};
  json["effective"] = checked.plan ? Effective(*checked.plan) : Json::object();
  json["advertise"] = Json::array();
  for (const config::Advertised& advertised : checked.advertise) {
    json["advertise"].push_back(
        {{"resource", advertised.resource}, {"devices", advertised.devices}});
  }
  json["problems"] = Json::array();
  for (const Problem& problem : checked.problems) {
    json["problems"].push_back(ProblemJson(problem));
  }
  if (options.node) {
    json["chosen"] = checked.chosen;
    json["why"] = checked.chosen ? why : "";
  }
  if (options.compare) {
    json["changes"] = Json::array();
    for (const config::Change& change : checked.changes) {
      json["changes"].push_back(
          {{"what", change.what}, {"effect", change.effect}});
    }
  }
  return json;
}

void PrintChanges(const CheckedConfig& checked, std::ostream& out) {
  if (checked.changes.empty()) {
    Line(out, "changes", "nothing for running pods");
  }
  bool first = true;
  for (const config::Change& change : checked.changes) {
    Line(out, first ? "changes" : "", change.what);
    Line(out, "", absl::StrCat("-> ", change.effect));
    first = false;
  }
}

}  // namespace

void PrintText(const CheckReport& report, const CheckOptions& options,
               std::ostream& out) {
  for (size_t i = 0; i < report.configs.size(); ++i) {
    const CheckedConfig& checked = report.configs[i];
    if (i > 0) out << "\n";
    out << Title(checked) << ": " << (checked.ok ? "ok" : "REFUSED") << "\n";
    if (checked.plan) PrintPlan(checked, out);
    if (checked.kind != "clusterpolicy" && checked.kind != "unknown") {
      PrintNvidia(checked, out);
    }
    if (checked.kind == "clusterpolicy" && report.configs.size() == 1) {
      Line(out, "config", "is in the ConfigMap: give its file too");
    }
    for (const Problem& problem : checked.problems) PrintProblem(problem, out);
    if (options.compare && checked.plan) PrintChanges(checked, out);
  }
  if (!options.node) return;
  std::vector<std::string> devices;
  for (const auto& [name, group] : options.node->groups) {
    devices.push_back(absl::StrCat(group.count, " ", name));
  }
  out << "\nnode " << options.node->name << " ("
      << absl::StrJoin(options.node->models, ", ")
      << (options.node->models.empty() ? "" : ": ")
      << absl::StrJoin(devices, ", ") << "):\n";
  std::string chosen = "none of these configs";
  for (const CheckedConfig& checked : report.configs) {
    if (!checked.chosen) continue;
    chosen = checked.key.empty() ? FileName(checked) : checked.key;
    if (!checked.ok) absl::StrAppend(&chosen, ", which is refused");
  }
  Line(out, "uses", chosen);
  if (!report.why.empty()) Line(out, "because", report.why);
}

void PrintJson(const CheckReport& report, const CheckOptions& options,
               std::ostream& out) {
  Json json = Json::array();
  for (const CheckedConfig& checked : report.configs) {
    json.push_back(ConfigJson(checked, report.why, options));
  }
  // File names need not be UTF-8.
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace rondo::cli
