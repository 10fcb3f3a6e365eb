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

constexpr absl::string_view kMigStrategy = "migStrategy";

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
    const absl::string_view help = flag.help;
    const size_t at = help.find("; default: ");
    ASSERT_NE(at, help.npos) << flag.key;
    if (flag.in_file) {
      const std::string row = absl::StrCat("| `", flag.key, "` | `--");
      ASSERT_THAT(docs_, HasSubstr(row));
      // The last column is the default, which the help says too.
      const size_t start = docs_.find(row);
      std::string line = docs_.substr(start, docs_.find('\n', start) - start);
      const absl::string_view value = help.substr(at + 11);
      EXPECT_THAT(line,
                  testing::EndsWith(value == "none" && flag.key != kMigStrategy
                                        ? "` | |"
                                    : value == "the driver root"
                                        ? "| the driver root |"
                                        : absl::StrCat("| `", value, "` |")));
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

TEST_F(DocsTest, NamesEveryKeyThatWent) {
  const size_t start = docs_.find("**Keys that went.**");
  ASSERT_NE(start, docs_.npos);
  const std::string note =
      docs_.substr(start, docs_.find("\n\n", start) - start);
  for (const char* key : FindSection("rondo")->gone) {
    EXPECT_THAT(note, HasSubstr(absl::StrCat("`rondo.", key, "`")));
  }
}

}  // namespace
}  // namespace rondo::config
