// SPDX-License-Identifier: Apache-2.0
#include "run/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"

namespace rondo::run {
namespace {

TEST(CutLog, KeepsOneOldFile) {
  TempDir dir = *TempDir::Create("rondo-run-test");
  const std::string path = dir.path() + "/log", old = path + ".1";
  const UniqueFd log(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const auto say = [&](absl::string_view text) {
    EXPECT_EQ(write(log.get(), text.data(), text.size()), 4);
    CutLog(log.get(), path, 6);
  };
  say("one\n");
  EXPECT_EQ(ReadFile(path).value_or(""), "one\n");
  say("two\n");
  say("3rd\n");
  EXPECT_EQ(ReadFile(old).value_or(""), "one\ntwo\n");
  EXPECT_EQ(ReadFile(path).value_or(""), "3rd\n");
  say("4th\n");
  EXPECT_EQ(ReadFile(old).value_or(""), "3rd\n4th\n");
  EXPECT_EQ(ReadFile(path).value_or("?"), "");
  // With its folder gone it can be no other file.
  ASSERT_EQ(unlink(path.c_str()), 0);
  say("5th\n");
  say("6th\n");
  EXPECT_EQ(lseek(log.get(), 0, SEEK_END), 0);
}

}  // namespace
}  // namespace rondo::run
