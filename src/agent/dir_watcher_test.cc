// SPDX-License-Identifier: Apache-2.0
#include "agent/dir_watcher.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/file.h"
#include "gtest/gtest.h"

namespace rondo::agent {
namespace {

using std::chrono::seconds;

class DirWatcherTest : public testing::Test {
 protected:
  void Watch(const std::string& directory) {
    auto watcher = DirWatcher::Create(loop_, directory, [this] { ++changes_; });
    ASSERT_TRUE(watcher.ok()) << watcher.status();
    watcher_ = *std::move(watcher);
  }
  // True when a change is told within 5 s.
  bool WaitForChange() {
    const int before = changes_;
    const MonotonicTime deadline = RealClock().Now() + seconds(5);
    while (changes_ == before && RealClock().Now() < deadline)
      loop_.RunOnce(deadline - RealClock().Now());
    return changes_ > before;
  }

  TempDir temp_ = *TempDir::Create();
  EventLoop loop_;
  int changes_ = 0;
  std::unique_ptr<DirWatcher> watcher_;
};

TEST_F(DirWatcherTest, SeesWritesRenamesAndRemovals) {
  const std::string file = temp_.path() + "/config.yaml";
  Watch(temp_.path());
  FILE* f = fopen(file.c_str(), "w");
  fputs("a", f);
  fclose(f);
  EXPECT_TRUE(WaitForChange()) << "written in place";
  ASSERT_TRUE(WriteFileAtomically(file, "b").ok());
  EXPECT_TRUE(WaitForChange()) << "renamed over";
  unlink(file.c_str());
  EXPECT_TRUE(WaitForChange()) << "removed";
}

// The way in which kubelet updates a mounted ConfigMap.
TEST_F(DirWatcherTest, SeesTheDataSwapOfAConfigMapOnce) {
  const std::string dir = temp_.path();
  ASSERT_TRUE(MakeDirectories(dir + "/..1").ok());
  ASSERT_EQ(symlink("..1", (dir + "/..data").c_str()), 0);
  Watch(dir);
  ASSERT_TRUE(MakeDirectories(dir + "/..2").ok());
  ASSERT_TRUE(WriteFileAtomically(dir + "/..2/any", "x").ok());
  ASSERT_EQ(symlink("..2", (dir + "/..data_tmp").c_str()), 0);
  ASSERT_EQ(rename((dir + "/..data_tmp").c_str(), (dir + "/..data").c_str()),
            0);
  EXPECT_TRUE(WaitForChange());
  EXPECT_EQ(changes_, 1);
}

TEST_F(DirWatcherTest, WaitsForADirectoryThatIsNotThereYet) {
  const std::string dir = temp_.path() + "/late/dir";
  Watch(dir);
  ASSERT_TRUE(MakeDirectories(dir).ok());
  EXPECT_TRUE(WaitForChange());
  ASSERT_TRUE(WriteFileAtomically(dir + "/file", "x").ok());
  EXPECT_TRUE(WaitForChange());
}

}  // namespace
}  // namespace rondo::agent
