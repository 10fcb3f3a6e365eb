// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <sys/stat.h>

#include <filesystem>

#include "gtest/gtest.h"

namespace rondo {
namespace {

TEST(File, WritesAndReadsBack) {
  auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const std::string path = dir->path() + "/a/b/file";
  ASSERT_TRUE(MakeDirectories(dir->path() + "/a/b").ok());
  ASSERT_TRUE(MakeDirectories(dir->path() + "/a/b").ok()) << "idempotent";
  ASSERT_TRUE(WriteFileAtomically(path, "one", 0600).ok());
  ASSERT_TRUE(WriteFileAtomically(path, "two", 0640).ok());
  EXPECT_EQ(ReadFile(path).value(), "two");
  struct stat st {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
}

TEST(File, LinksInPlaceOfWhatIsThere) {
  auto dir = TempDir::Create();
  ASSERT_TRUE(dir.ok());
  const std::string path = dir->path() + "/link";
  for (const char* target : {"/nonexistent/one", "two", "/three"}) {
    ASSERT_TRUE(LinkAtomically(target, path).ok()) << target;
    EXPECT_EQ(std::filesystem::read_symlink(path), target);
  }
  std::filesystem::remove(path);
  ASSERT_TRUE(WriteFileAtomically(path, "a file").ok());
  ASSERT_TRUE(LinkAtomically("four", path).ok());
  EXPECT_EQ(std::filesystem::read_symlink(path), "four");
  EXPECT_FALSE(LinkAtomically("five", dir->path()).ok()) << "a folder";
  // Nothing is left beside it.
  const std::filesystem::directory_iterator files(dir->path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(File, ErrorsNameThePath) {
  const absl::Status missing = ReadFile("/nonexistent/x").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_NE(missing.message().find("/nonexistent/x"), std::string::npos);
  EXPECT_TRUE(absl::IsResourceExhausted(ReadFile("/dev/zero", 100).status()));
  EXPECT_FALSE(WriteFileAtomically("/nonexistent/x", "").ok());
}

TEST(File, PathUnder) {
  EXPECT_EQ(PathUnder("", "/dev/x"), "/dev/x");
  EXPECT_EQ(PathUnder("/", "/dev/x"), "/dev/x");
  EXPECT_EQ(PathUnder("/root/", "/dev/x"), "/root/dev/x");
  EXPECT_EQ(PathUnder("/root", "dev/x"), "/root/dev/x");
}

TEST(File, TempDirGoesWithItsOwner) {
  std::string path;
  {
    auto dir = TempDir::Create();
    ASSERT_TRUE(dir.ok());
    path = dir->path();
    ASSERT_TRUE(WriteFileAtomically(path + "/x", "y").ok());
  }
  EXPECT_TRUE(absl::IsNotFound(ReadFile(path + "/x").status()));
}

}  // namespace
}  // namespace rondo
