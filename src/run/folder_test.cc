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
        " && chmod 755 . && mkdir runtime && chown ", user_, " runtime"));
    if (made.code != 0) GTEST_SKIP() << "needs namespaces: " << made.text;
  }
  void TearDown() override { Shell("rm -rf " + tmp_); }
  // Runs it with nothing in its environment but that, in a namespace where that
  // was done first.
  Outcome Run(const std::string& user, const std::string& environment,
              const std::string& mounts = "true",
              const std::string& options = "") {
    return Shell(absl::StrCat(
        "unshare -m sh -c 'mount -t tmpfs none /run; mount -t tmpfs none ",
        "/var/lib; mount -t tmpfs -o mode=1777 none /var/tmp; ",
        "mount -t tmpfs none /mnt; touch /mnt/rondo; mount --bind ", RONDO,
        " /mnt/rondo; ", mounts, "; umask 0; env -i ", environment,
        " setpriv --reuid ", user, " --regid ", user,
        " --clear-groups /mnt/rondo run ", options, " --status; code=$?; ",
        "stat -c \"%n %a %u\" /run/rondo-run /var/lib/rondo-run ", tmp_,
        " /var", tmp_, " ", dir_.path(),
        "/runtime/rondo-run 2>/dev/null; exit $code'"));
  }

  const TempDir dir_ = *TempDir::Create("rondo-run-test");
  const std::string user_ = absl::StrCat(1'000'000 + getpid());
  const std::string tmp_ = absl::StrCat("/tmp/rondo-run-", user_);
};

std::string Chosen(const std::string& folder, const std::string& user) {
  return absl::StrCat("rondo run: nothing runs in ", folder, "\n", folder,
                      " 700 ", user, "\n");
}

TEST_F(RunFolder, IsOfOneUser) {
  EXPECT_EQ(Run("0", "").text, Chosen("/run/rondo-run", "0"));
  EXPECT_EQ(Run(user_, "").text, Chosen(tmp_, user_));
}

// That goes when the user logs out, and what runs on would have no librondo.so
// for what it starts then.
TEST_F(RunFolder, IsNotThatOfALogin) {
  EXPECT_EQ(
      Run(user_, absl::StrCat("XDG_RUNTIME_DIR=", dir_.path(), "/runtime"))
          .text,
      Chosen(tmp_, user_));
}

// The loader maps no library from there, and the program would run all the
// same.
TEST_F(RunFolder, IsWhereLibrariesCanBeLoadedFrom) {
  const std::string run = "mount -t tmpfs -o noexec none /run",
                    lib = "mount -t tmpfs -o noexec none /var/lib",
                    tmp = "mount -t tmpfs -o noexec,mode=1777 none /tmp",
                    var_tmp =
                        "mount -t tmpfs -o noexec,mode=1777 none /var/tmp";
  EXPECT_EQ(Run("0", "", run).text, Chosen("/var/lib/rondo-run", "0"));
  EXPECT_EQ(Run(user_, "", tmp).text, Chosen("/var" + tmp_, user_));
  const std::string remedy =
      " on file systems mounted with noexec, from which no program can load "
      "librondo.so; give a --run-dir elsewhere\n";
  const Outcome none = Run("0", "", run + "; " + lib);
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.text,
            "rondo run: /run/rondo-run and /var/lib/rondo-run are" + remedy);
  EXPECT_EQ(
      Run(user_, "", tmp + "; " + var_tmp).text,
      absl::StrCat("rondo run: ", tmp_, " and /var", tmp_, " are", remedy));
  for (const auto& [environment, option] :
       {std::pair<std::string, std::string>{"", "--run-dir /run/mine"},
        {"RONDO_RUN_FOLDER=/run/mine", ""}}) {
    const Outcome given = Run("0", environment, run, option);
    EXPECT_EQ(given.code, 2);
    EXPECT_EQ(given.text,
              "rondo run: /run/mine is on a file system mounted with noexec, "
              "from which no program can load librondo.so; give another "
              "--run-dir\n");
  }
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
