// SPDX-License-Identifier: Apache-2.0
//
// `rondo run` by its executable, on a simulated node.

#ifndef RONDO_RUN_TEST_RUN_H_
#define RONDO_RUN_TEST_RUN_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_shell.h"
#include "gtest/gtest.h"

namespace rondo::run {

class RunTest : public testing::Test {
 protected:
  // rondo run OPTIONS on a simulated H200.
  Outcome Run(const std::string& options) {
    return Shell(absl::StrCat(RONDO, " sim --profile H200 -- ", RONDO,
                              " run --run-dir ", dir_.path(), "/run ",
                              options));
  }
  // A shell script in the folder, itself under rondo run: so there is one
  // arbiter for the runs in it.
  Outcome Script(const std::string& text) {
    EXPECT_TRUE(
        WriteFileAtomically(dir_.path() + "/script",
                            absl::StrCat("cd ", dir_.path(), "\n", text))
            .ok());
    return Run(absl::StrCat("-- bash ", dir_.path(), "/script"));
  }

  TempDir dir_ = *TempDir::Create("rondo-run-test");
  const std::string run_ =
      absl::StrCat(RONDO, " run --run-dir ", dir_.path(), "/run ");
};

}  // namespace rondo::run

#endif  // RONDO_RUN_TEST_RUN_H_
