// SPDX-License-Identifier: Apache-2.0
//
// Where `rondo run` meets others where nobody says it: one folder a user.

#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_shell.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::run {
namespace {

using testing::HasSubstr;

class RunFolder : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    // Of a /run that is nobody else's.
    Outcome made = Shell(absl::StrCat(
        "unshare -m mount -t tmpfs none /run && cd ", dir_.path(),
        " && chmod 755 . && install -m 755 ", RONDO, " rondo && mkdir runtime ",
        "&& chown ", user_, " runtime"));
    if (made.code != 0) GTEST_SKIP() << "needs namespaces: " << made.text;
  }
  void TearDown() override { Shell("rm -rf " + tmp_); }
  // Runs it with nothing in its environment but that.
  Outcome Run(const std::string& user, const std::string& environment) {
    return Shell(absl::StrCat(
        "unshare -m sh -c 'mount -t tmpfs none /run; umask 0; env -i ",
        environment, " setpriv --reuid ", user, " --regid ", user,
        " --clear-groups ", dir_.path(), "/rondo run --status; code=$?; ",
        "stat -c \"%a %u\" /run/rondo-run ", tmp_, " ", dir_.path(),
        "/runtime/rondo-run 2>/dev/null; exit $code'"));
  }

  const TempDir dir_ = *TempDir::Create("rondo-run-test");
  const std::string user_ = absl::StrCat(1'000'000 + getpid());
  const std::string tmp_ = absl::StrCat("/tmp/rondo-run-", user_);
};

TEST_F(RunFolder, IsOfOneUser) {
  EXPECT_EQ(Run("0", "").text,
            "rondo run: nothing runs in /run/rondo-run\n700 0\n");
  EXPECT_EQ(Run(user_, "").text, absl::StrCat("rondo run: nothing runs in ",
                                              tmp_, "\n700 ", user_, "\n"));
  Shell("rm -r " + tmp_);
  EXPECT_EQ(
      Run(user_, absl::StrCat("XDG_RUNTIME_DIR=", dir_.path(), "/runtime"))
          .text,
      absl::StrCat("rondo run: nothing runs in ", dir_.path(),
                   "/runtime/rondo-run\n700 ", user_, "\n"));
}

// Somebody who is quicker may have made it, as may anybody in /tmp.
TEST_F(RunFolder, OfSomebodyElseIsRefused) {
  for (const std::string& make :
       {absl::StrCat("mkdir -m 755 ", tmp_),
        absl::StrCat("ln -s ", dir_.path(), "/runtime ", tmp_, " && chown -h ",
                     user_, " ", tmp_)}) {
    ASSERT_EQ(Shell(make).code, 0);
    const Outcome outcome = Run(user_, "");
    EXPECT_EQ(outcome.code, 1) << make;
    EXPECT_THAT(outcome.text, HasSubstr("is not a folder of yours")) << make;
    Shell("rm -r " + tmp_);
  }
}

}  // namespace
}  // namespace rondo::run
