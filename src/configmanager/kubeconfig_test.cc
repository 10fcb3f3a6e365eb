// SPDX-License-Identifier: Apache-2.0
#include "configmanager/kubeconfig.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::configmanager {
namespace {

using testing::HasSubstr;

class KubeconfigTest : public testing::Test {
 protected:
  absl::StatusOr<kube::ApiClient::Options> Read(absl::string_view cluster,
                                                absl::string_view user) {
    const std::string text = absl::StrCat(
        "current-context: second\n"
        "contexts:\n"
        "- {name: first, context: {cluster: other, user: u}}\n"
        "- {name: second, context: {cluster: k, user: u}}\n"
        "clusters: [{name: other, cluster: {server: 'https://other'}}, "
        "{name: k, cluster: {",
        cluster, "}}]\nusers: [{name: u, user: {", user, "}}]\n");
    EXPECT_TRUE(WriteFileAtomically(path_, text).ok());
    return ReadKubeconfig(path_);
  }
  TempDir dir_ = *TempDir::Create();
  const std::string path_ = dir_.path() + "/kubeconfig";
};

TEST_F(KubeconfigTest, GivesServerAuthorityAndTokenOfTheCurrentContext) {
  auto options = Read(
      "server: 'https://10.0.0.1:6443/', certificate-authority: pki/ca.crt",
      "tokenFile: /var/run/token");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->base_url, "https://10.0.0.1:6443");
  EXPECT_EQ(options->ca_file, dir_.path() + "/pki/ca.crt");
  EXPECT_EQ(options->token_file, "/var/run/token");
  options = Read("server: 'https://a', insecure-skip-tls-verify: false",
                 "token: secret");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->token, "secret");
  EXPECT_EQ(options->ca_file, "");
}

TEST_F(KubeconfigTest, RefusesWhatItCannotFollow) {
  const struct {
    const char* cluster;
    const char* user;
    const char* text;
  } kRows[] = {
      {"server: 'https://a', certificate-authority-data: YQ==", "",
       "certificate-authority-data is not supported"},
      {"server: 'https://a', insecure-skip-tls-verify: true", "",
       "insecure-skip-tls-verify is not supported"},
      {"server: 'https://a'", "client-certificate-data: YQ==",
       "client-certificate-data is not supported; use tokenFile or token"},
      {"server: 'https://a'", "exec: {command: aws}", "exec is not supported"},
      {"", "", "the cluster has no server"},
  };
  for (const auto& row : kRows) {
    const auto options = Read(row.cluster, row.user);
    EXPECT_TRUE(absl::IsInvalidArgument(options.status()));
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(row.text));
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(path_));
  }
}

TEST_F(KubeconfigTest, IsNoKubeconfig) {
  EXPECT_TRUE(absl::IsNotFound(ReadKubeconfig(path_).status()));
  for (const char* text :
       {"", "[]", "a: [", "current-context: x", "contexts: 1"}) {
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(ReadKubeconfig(path_).status()))
        << text;
  }
}

}  // namespace
}  // namespace rondo::configmanager
