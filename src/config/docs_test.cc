// SPDX-License-Identifier: Apache-2.0
//
// docs/config.md names every problem code with its severity, every flag with
// its names and variables, and every key.

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "config/flag_table.h"
#include "config/problem.h"
#include "config/suggest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::config {
namespace {

using testing::HasSubstr;

class DocsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file("config.md");
    docs_ = std::string(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(docs_.empty());
  }
  std::string docs_;
};

TEST_F(DocsTest, NamesEveryProblemCode) {
#define RONDO_X(name, text, severity)                                         \
  EXPECT_THAT(docs_, HasSubstr(absl::StrCat("| `", text, "` | ",              \
                                            SeverityName(Severity::severity), \
                                            " | ")));
  RONDO_CONFIG_PROBLEM_CODES(RONDO_X)
#undef RONDO_X
}

TEST_F(DocsTest, NamesEveryFlag) {
  for (const FlagInfo& flag : kFlags) {
    if (flag.in_file) {
      EXPECT_THAT(docs_, HasSubstr(absl::StrCat("| `", flag.key, "` | `--")));
    }
    for (const char* name : flag.names) {
      if (name == nullptr) continue;
      EXPECT_THAT(docs_, HasSubstr(absl::StrCat("`--", name, "`")));
    }
    for (const char* variable : flag.environment) {
      if (variable == nullptr) continue;
      EXPECT_THAT(docs_, HasSubstr(absl::StrCat("`", variable, "`")));
    }
  }
}

TEST_F(DocsTest, NamesEveryKeyOfOurs) {
  for (const char* key : FindSection("rondo")->keys) {
    EXPECT_THAT(docs_, HasSubstr(absl::StrCat("| `rondo.", key, "` | ")));
  }
}

}  // namespace
}  // namespace rondo::config
