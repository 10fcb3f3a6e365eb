// SPDX-License-Identifier: Apache-2.0
//
// Every config of testdata/vectors.txt through both parsers.

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "config/compile.h"
#include "config/nvidia.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rondo::config {
namespace {

struct Vector {
  std::string name;
  std::string text;
  std::vector<std::string> warnings;
  std::string nvidia;
  std::string imex;
  std::string rondo;
};

// Takes `prefix` off a line that starts with it.
bool Take(absl::string_view line, absl::string_view prefix, std::string& rest) {
  if (!absl::StartsWith(line, prefix)) return false;
  rest = std::string(line.substr(prefix.size()));
  return true;
}

std::vector<Vector> ReadVectors(const std::string& path) {
  std::ifstream in(path);
  std::vector<Vector> vectors;
  std::string line;
  std::string rest;
  while (std::getline(in, line)) {
    if (Take(line, "@case ", rest)) {
      vectors.emplace_back();
      vectors.back().name = rest;
    } else if (vectors.empty()) {
      continue;
    } else if (Take(line, "@warning ", rest)) {
      vectors.back().warnings.push_back(rest);
    } else if (!Take(line, "@nvidia ", vectors.back().nvidia) &&
               !Take(line, "@imex ", vectors.back().imex) &&
               !Take(line, "@rondo ", vectors.back().rondo)) {
      absl::StrAppend(&vectors.back().text, line, "\n");
    }
  }
  return vectors;
}

// "..." in `pattern` stands for any text.
bool Matches(absl::string_view pattern, absl::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(pattern, absl::MaxSplits(" ...", 1));
  if (parts.size() == 1) return pattern == text;
  return absl::StartsWith(text, parts[0]) && absl::EndsWith(text, parts[1]);
}

std::string Nvidia(const NvidiaVerdict& verdict) {
  return verdict.ok
             ? absl::StrCat("ok ", verdict.strategy, " ", verdict.sharing)
             : absl::StrCat("refused ", verdict.error);
}

std::string Rondo(const CompileResult& result) {
  std::string out = result.ok() ? "ok" : "refused";
  for (const Problem& problem : result.problems) {
    absl::StrAppend(&out, " ", CodeName(problem.code));
  }
  return out;
}

class VectorsTest : public testing::TestWithParam<const char*> {};

TEST_P(VectorsTest, BothParsersGiveTheRecordedVerdict) {
  const std::vector<Vector> vectors = ReadVectors(GetParam());
  ASSERT_GE(vectors.size(), 60u);
  for (const Vector& vector : vectors) {
    SCOPED_TRACE(vector.name);
    const NvidiaVerdict verdict = JudgeAsNvidia(vector.text);
    EXPECT_TRUE(Matches(vector.nvidia, Nvidia(verdict)))
        << Nvidia(verdict) << "\n  wanted " << vector.nvidia;
    EXPECT_THAT(verdict.warnings, testing::ElementsAreArray(vector.warnings));
    const CompileResult result = Compile(vector.text);
    EXPECT_EQ(Rondo(result), vector.rondo);
    if (result.ok() && !vector.imex.empty()) {
      EXPECT_EQ(
          absl::StrCat("[", absl::StrJoin(result.plan->imex.channel_ids, " "),
                       "] ", result.plan->imex.required ? "true" : "false"),
          vector.imex);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, VectorsTest,
                         testing::Values("vectors.txt", "more_vectors.txt"));

}  // namespace
}  // namespace rondo::config
