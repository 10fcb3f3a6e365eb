// SPDX-License-Identifier: Apache-2.0
#include "agent/config_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConfigSourceTest : public testing::Test {
 protected:
  // As kubelet mounts a ConfigMap: names are links through ..data.
  void Mount(const std::vector<std::string>& keys) {
    ASSERT_TRUE(MakeDirectories(dir_.path() + "/..1").ok());
    ASSERT_EQ(symlink("..1", (dir_.path() + "/..data").c_str()), 0);
    for (const std::string& key : keys) {
      ASSERT_TRUE(
          WriteFileAtomically(dir_.path() + "/..1/" + key, "# " + key).ok());
      ASSERT_EQ(
          symlink(("..data/" + key).c_str(), (dir_.path() + "/" + key).c_str()),
          0);
    }
  }

  TempDir dir_ = *TempDir::Create();
};

TEST_F(ConfigSourceTest, ListsTheKeysOfAMountedConfigMap) {
  Mount({"b", "a"});
  EXPECT_THAT(*ConfigKeys(dir_.path()), ElementsAre("a", "b"));
  EXPECT_TRUE(absl::IsNotFound(ConfigKeys(dir_.path() + "/no").status()));
}

TEST_F(ConfigSourceTest, ReadsTheKeyThatTheNodeChooses) {
  Mount({"default", "NVIDIA-A10", "other"});
  Options options{.config_dir = dir_.path()};
  EXPECT_EQ(ReadConfig(options, {.label = "other"})->text, "# other");
  EXPECT_EQ(ReadConfig(options, {})->origin, dir_.path() + "/default");
  const auto missing = ReadConfig(options, {.label = "typo"});
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("typo"));
  options.fallback_strategies = {};
  EXPECT_EQ(ReadConfig(options, {.gpu_models = {"NVIDIA A10"}})->text,
            "# NVIDIA-A10");
}

TEST_F(ConfigSourceTest, AnExplicitFileWinsAndNothingMeansDefaults) {
  Mount({"default"});
  const std::string file = dir_.path() + "/..1/default";
  Options options{.config_file = file, .config_dir = "/nonexistent"};
  EXPECT_EQ(ReadConfig(options, {.label = "x"})->origin, file);
  options.config_file += ".missing";
  EXPECT_TRUE(absl::IsNotFound(ReadConfig(options, {}).status()));
  EXPECT_EQ(ReadConfig(Options{}, {})->text, "");
}

TEST_F(ConfigSourceTest, NothingThatCouldBlockIsRead) {
  const std::string fifo = dir_.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, std::string("/dev/zero")})
    EXPECT_TRUE(
        absl::IsInvalidArgument(ReadConfig({.config_file = path}, {}).status()))
        << path;
  EXPECT_EQ(ReadConfig({.config_file = "/dev/null"}, {})->text, "");
}

TEST_F(ConfigSourceTest, WatchesWhereALinkLeadsToo) {
  const std::string source = dir_.path() + "/available";
  ASSERT_TRUE(MakeDirectories(source).ok());
  ASSERT_TRUE(MakeDirectories(dir_.path() + "/config").ok());
  const std::string link = dir_.path() + "/config/config.yaml";
  ASSERT_EQ(symlink((source + "/any").c_str(), link.c_str()), 0);
  EXPECT_THAT(FoldersToWatch({.config_file = link}),
              ElementsAre(dir_.path() + "/config", source));
  EXPECT_THAT(FoldersToWatch({.config_dir = source}), ElementsAre(source));
  EXPECT_TRUE(FoldersToWatch(Options{}).empty());
}

}  // namespace
}  // namespace rondo::agent
