// SPDX-License-Identifier: Apache-2.0
#include "configmanager/kubeconfig.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "config/yaml.h"

namespace rondo::configmanager {
namespace {

namespace yaml = config::yaml;

const yaml::Node kNothing;

const yaml::Node& At(const yaml::Node& map, absl::string_view key) {
  const yaml::Entry* entry = map.Find(key);
  return entry == nullptr ? kNothing : *entry->value;
}

std::string Text(const yaml::Node& map, absl::string_view key) {
  const yaml::Node& node = At(map, key);
  return node.kind == yaml::Kind::kNull ? "" : node.text;
}

// The entry of list (clusters, users, contexts) with this name, below key.
absl::StatusOr<const yaml::Node*> Named(const yaml::Node& root,
                                        absl::string_view list,
                                        absl::string_view key,
                                        const std::string& name) {
  for (const yaml::NodePtr& item : At(root, list).items)
    if (Text(*item, "name") == name) return &At(*item, key);
  return absl::InvalidArgumentError(
      absl::StrCat(list, " has no entry named '", name, "'"));
}

absl::Status Refuse(const yaml::Node& map, absl::string_view key,
                    absl::string_view remedy) {
  const std::string text = Text(map, key);
  const bool asked = At(map, key).kind == yaml::Kind::kMap || !text.empty();
  if (!asked || text == "false") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is not supported; ", remedy));
}

absl::StatusOr<kube::ApiClient::Options> Read(const yaml::Node& root,
                                              const std::string& path) {
  RONDO_ASSIGN_OR_RETURN(
      const yaml::Node* context,
      Named(root, "contexts", "context", Text(root, "current-context")));
  RONDO_ASSIGN_OR_RETURN(
      const yaml::Node* cluster,
      Named(root, "clusters", "cluster", Text(*context, "cluster")));
  constexpr char kCa[] = "name a file by certificate-authority";
  for (const char* key :
       {"certificate-authority-data", "insecure-skip-tls-verify", "proxy-url"})
    RONDO_RETURN_IF_ERROR(Refuse(*cluster, key, kCa));
  // A path in a kubeconfig is relative to the kubeconfig.
  auto beside = [&](const std::string& file) {
    return file.empty() ? file
                        : (std::filesystem::absolute(path).parent_path() / file)
                              .string();
  };
  kube::ApiClient::Options options;
  options.base_url =
      std::string(absl::StripSuffix(Text(*cluster, "server"), "/"));
  if (options.base_url.empty())
    return absl::InvalidArgumentError("the cluster has no server");
  options.ca_file = beside(Text(*cluster, "certificate-authority"));
  const std::string user_name = Text(*context, "user");
  if (user_name.empty()) return options;
  RONDO_ASSIGN_OR_RETURN(const yaml::Node* user,
                         Named(root, "users", "user", user_name));
  for (const char* key : {"client-certificate", "client-certificate-data",
                          "exec", "auth-provider", "username"})
    RONDO_RETURN_IF_ERROR(Refuse(*user, key, "use tokenFile or token"));
  options.token_file = beside(Text(*user, "tokenFile"));
  options.token = Text(*user, "token");
  return options;
}

}  // namespace

absl::StatusOr<kube::ApiClient::Options> ReadKubeconfig(
    const std::string& path) {
  RONDO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const yaml::Parsed parsed = yaml::Parse(text);
  if (parsed.error)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ":", parsed.error->mark.line, ": ", parsed.error->message));
  auto options = Read(*parsed.documents.at(0), path);
  if (!options.ok()) return Annotate(options.status(), path);
  return options;
}

}  // namespace rondo::configmanager
