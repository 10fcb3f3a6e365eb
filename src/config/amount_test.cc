// SPDX-License-Identifier: Apache-2.0
//
// What people write for numbers, and what they are told: in full, for the text
// is what helps.

#include "config/amount.h"

#include "absl/strings/str_cat.h"
#include "config/compile.h"
#include "gtest/gtest.h"

namespace rondo::config {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(ReadSlotMemory, TakesKubernetesQuantities) {
  const struct {
    const char* text;
    uint64_t bytes;
  } kRows[] = {{"8Gi", 8192 * kMiB},
               {"1.5Gi", 1536 * kMiB},
               {"64Mi", 64 * kMiB},
               {"8G", 8'000'000'000},
               {"8e9", 8'000'000'000},
               {"80E8", 8'000'000'000},
               {"8589934592", 8192 * kMiB},
               {"8388608Ki", 8192 * kMiB},
               {"1E", 1'000'000'000'000'000'000}};
  for (const auto& row : kRows) {
    uint64_t bytes = 0;
    EXPECT_FALSE(ReadSlotMemory(row.text, bytes)) << row.text;
    EXPECT_EQ(bytes, row.bytes) << row.text;
  }
}

constexpr char kAny[] = "write a quantity such as 8Gi, at least 64Mi";

TEST(ReadSlotMemory, SaysWhatIsWrongAndWhatToWrite) {
  const struct {
    std::string text;
    std::string told;
  } kRows[] = {
      {"", absl::StrCat("\"\" is empty: ", kAny)},
      {" ", absl::StrCat("\" \" is empty: ", kAny)},
      {"8",
       "\"8\" has no unit, so it means bytes: write a quantity such as "
       "8Gi"},
      {"8.5",
       "\"8.5\" has no unit, so it means bytes: write a quantity such "
       "as 8.5Gi"},
      {"8192",
       "\"8192\" has no unit, so it means bytes: write a quantity such "
       "as 8192Mi"},
      {"2000000",
       absl::StrCat("\"2000000\" has no unit, so it means bytes: ", kAny)},
      {"8g",
       "\"8g\" has the unknown unit \"g\": write a quantity such "
       "as 8Gi"},
      {"8gb",
       "\"8gb\" has the unknown unit \"gb\": write a quantity such "
       "as 8Gi"},
      {"8GB",
       "\"8GB\" has the unknown unit \"GB\": write a quantity such "
       "as 8Gi"},
      {"8GiB",
       "\"8GiB\" has the unknown unit \"GiB\": write a quantity "
       "such as 8Gi"},
      {"512mib",
       "\"512mib\" has the unknown unit \"mib\": write a "
       "quantity such as 512Mi"},
      {"8m", absl::StrCat("\"8m\" has the unknown unit \"m\": ", kAny)},
      {"8 Gi", "\"8 Gi\" has a space in it: write a quantity such as 8Gi"},
      {" 8Gi", "\" 8Gi\" has a space in it: write a quantity such as 8Gi"},
      {"8 GB", "\"8 GB\" has a space in it: write a quantity such as 8Gi"},
      {"8Gi\n", "\"8Gi\\n\" has a space in it: write a quantity such as 8Gi"},
      {"1e 9", "\"1e 9\" has a space in it: write a quantity such as 1e9"},
      {"1e9\n", "\"1e9\\n\" has a space in it: write a quantity such as 1e9"},
      {"8,5Gi", "\"8,5Gi\" has a comma in it: write a quantity such as 8.5Gi"},
      {"50%", absl::StrCat("\"50%\" is a percentage: ", kAny)},
      {"-8Gi", absl::StrCat("\"-8Gi\" is negative: ", kAny)},
      {"+8Gi",
       "\"+8Gi\" is not an amount of memory: write a quantity such as 8Gi"},
      {"0", absl::StrCat("\"0\" is no memory at all: ", kAny)},
      {"0Gi", absl::StrCat("\"0Gi\" is no memory at all: ", kAny)},
      {"10Mi", absl::StrCat("\"10Mi\" is under 64Mi, too small for any CUDA "
                            "program: ",
                            kAny)},
      {"10Ei",
       absl::StrCat("\"10Ei\" is more memory than can be counted: ", kAny)},
      {"1e400",
       absl::StrCat("\"1e400\" is more memory than can be counted: ", kAny)},
      {"1.0000001Gi",
       absl::StrCat("\"1.0000001Gi\" is not a whole number of bytes: ", kAny)},
      {"0x200", absl::StrCat("\"0x200\" is not a decimal number: ", kAny)},
      {"nan", absl::StrCat("\"nan\" is not an amount of memory: ", kAny)},
      {"max", absl::StrCat("\"max\" is not an amount of memory: ", kAny)},
      {"$MEM", absl::StrCat("\"$MEM\" is not an amount of memory: ", kAny)},
      {std::string(200'000, 'x'),
       absl::StrCat("\"", std::string(64, 'x'),
                    "...\" is not an amount of memory: ", kAny)},
  };
  for (const auto& row : kRows) {
    uint64_t bytes = 7;
    const auto mistake = ReadSlotMemory(row.text, bytes);
    ASSERT_TRUE(mistake) << row.text;
    EXPECT_EQ(Describe(row.text, *mistake), row.told);
    EXPECT_EQ(bytes, 7u) << row.text;
  }
}

constexpr char kPart[] = "write a part above 0, at most 1, such as 0.5";
const NumberRange kParts{.least = 0,
                         .most = 1,
                         .above_least = true,
                         .is_part = true,
                         .accepted = kPart};
const NumberRange kWeights{.least = 0.001,
                           .most = 1000,
                           .above_least = false,
                           .is_part = false,
                           .accepted = "write a number from 0.001 to 1000"};

TEST(ReadNumber, TakesWhatIsInTheRange) {
  for (const char* text : {"0.5", ".5", "5e-1", "+0.5", " 0.5 "}) {
    double number = 0;
    EXPECT_FALSE(ReadNumber(text, kParts, number)) << text;
    EXPECT_EQ(number, 0.5) << text;
  }
  double number = 0;
  for (const char* text : {"0.001", "1000", "3"})
    EXPECT_FALSE(ReadNumber(text, kWeights, number)) << text;
  EXPECT_EQ(number, 3);
  EXPECT_FALSE(ReadNumber("1", kParts, number));
}

TEST(ReadNumber, SaysWhatIsWrongAndWhatToWrite) {
  const std::string weight = kWeights.accepted;
  const struct {
    const NumberRange& range;
    const char* text;
    std::string told;
  } kRows[] = {
      {kParts, "", absl::StrCat("is empty: ", kPart)},
      {kParts, "50%", "is a percentage: write 0.5"},
      {kParts, "50 %", "is a percentage: write 0.5"},
      {kParts, "0%", absl::StrCat("is a percentage: ", kPart)},
      {kParts, "50", "is above 1: write 0.5"},
      {kParts, "1.01", absl::StrCat("is above 1: ", kPart)},
      {kParts, "500", absl::StrCat("is above 1: ", kPart)},
      {kParts, "0,5", "has a comma in it: write 0.5"},
      {kParts, "0", absl::StrCat("is not above 0: ", kPart)},
      {kParts, "-0.5", absl::StrCat("is not above 0: ", kPart)},
      {kParts, "half", absl::StrCat("is not a number: ", kPart)},
      {kParts, "nan", absl::StrCat("is not a number: ", kPart)},
      {kParts, "inf", absl::StrCat("is not a number: ", kPart)},
      {kParts, "0x1", absl::StrCat("is not a number: ", kPart)},
      {kParts, "0.5x", absl::StrCat("is not a number: ", kPart)},
      {kParts, "1/2", absl::StrCat("is not a number: ", kPart)},
      {kWeights, "50%", absl::StrCat("is a percentage: write 0.5")},
      {kWeights, "1,5", "has a comma in it: write 1.5"},
      {kWeights, "0", absl::StrCat("is under 0.001: ", weight)},
      {kWeights, "-1", absl::StrCat("is under 0.001: ", weight)},
      {kWeights, "1001", absl::StrCat("is above 1000: ", weight)},
      {kWeights, "1e300", absl::StrCat("is above 1000: ", weight)},
      {kWeights, "1e999", absl::StrCat("is not a number: ", weight)},
      {kWeights, "three", absl::StrCat("is not a number: ", weight)},
      {kWeights, "3Gi", absl::StrCat("is not a number: ", weight)},
  };
  for (const auto& row : kRows) {
    double number = 7;
    const auto mistake = ReadNumber(row.text, row.range, number);
    ASSERT_TRUE(mistake) << row.text;
    EXPECT_EQ(Describe(row.text, *mistake),
              absl::StrCat("\"", row.text, "\" ", row.told));
    EXPECT_EQ(number, 7) << row.text;
  }
}

// Each is one line with its place in the file.
TEST(Amounts, InTheConfigHaveAPlaceAndARemedy) {
  const std::string period =
      " (write a duration from 1ms to 10s, such as 40ms)";
  const std::string memory = std::string(" (") + kAny + ", or auto)";
  const struct {
    const char* value;
    std::string told;
  } kRows[] = {
      {"slotMemory: 8",
       "`rondo.slotMemory`: \"8\" has no unit, so it means "
       "bytes (write a quantity such as 8Gi, or auto)"},
      {"slotMemory: 10Mi",
       "`rondo.slotMemory`: \"10Mi\" is under 64Mi, too "
       "small for any CUDA program" +
           memory},
      {"slotMemory: 0x100",
       "`rondo.slotMemory`: \"0x100\" has no unit, so it "
       "means bytes (write a quantity such as 256Gi, or "
       "auto)"},
      {"slotMemory: 8.5",
       "`rondo.slotMemory`: \"8.5\" has no unit, so it "
       "means bytes (write a quantity such as 8.5Gi, or "
       "auto)"},
      {"slotMemory: 50%",
       "`rondo.slotMemory`: \"50%\" is a percentage" + memory},
      {"slotMemory: ''", "`rondo.slotMemory`: \"\" is empty" + memory},
      {"slotMemory:",
       "`rondo.slotMemory` must be auto or an amount of memory, "
       "not nothing (write auto or a quantity such as 8Gi)"},
      {"slotMemory: [8Gi]",
       "`rondo.slotMemory` must be auto or an amount of "
       "memory, not a list (write auto or a quantity such "
       "as 8Gi)"},
      {"slotMemory: true",
       "`rondo.slotMemory` must be auto or an amount of "
       "memory, not the boolean true (write auto or a "
       "quantity such as 8Gi)"},
      {"period: 40",
       "`rondo.period` must be a duration with its unit, not the "
       "number 40" +
           period},
      {"period: 0.04",
       "`rondo.period` must be a duration with its unit, not "
       "the number 0.04" +
           period},
      {"period: '40'", "`rondo.period`: \"40\" has no unit" + period},
      {"period: 40MS",
       "`rondo.period`: \"40MS\" has a unit that is none of "
       "us, ms, s, m, h" +
           period},
      {"period: 40sec",
       "`rondo.period`: \"40sec\" has a unit that is none of "
       "us, ms, s, m, h" +
           period},
      {"period: 40 ms", "`rondo.period`: \"40 ms\" has a space in it" + period},
      {"period: '0,04s'",
       "`rondo.period`: \"0,04s\" has a comma in it" + period},
      {"period: -40ms", "`rondo.period`: \"-40ms\" is under 1ms" + period},
      {"period: 0s", "`rondo.period`: \"0s\" is under 1ms" + period},
      {"period: 1us", "`rondo.period`: \"1us\" is under 1ms" + period},
      {"period: 1h", "`rondo.period`: \"1h\" is above 10s" + period},
      {"period: ''", "`rondo.period`: \"\" is empty" + period},
      {"period: soon", "`rondo.period`: \"soon\" is not a duration" + period},
      {"period:", "`rondo.period` must be a duration, not nothing" + period},
      {"turn: 1ms",
       "`rondo.turn`: \"1ms\" is under 10ms (write a duration "
       "from 10ms to 60s, such as 500ms)"},
      {"memory: Enforce",
       "`rondo.memory` is not a known word: Enforce (did "
       "you mean enforce? Values: enforce, observe, off)"},
      {"memory: 1",
       "`rondo.memory` must be a word, not the number 1 (Values: "
       "enforce, observe, off)"},
      {"memory:",
       "`rondo.memory` must be a word, not nothing (Values: "
       "enforce, observe, off)"},
      {"standardTakesTurns: 1",
       "`rondo.standardTakesTurns` must be true or "
       "false, not the number 1 (take it out: it has no effect any more)"},
  };
  for (const auto& row : kRows) {
    const CompileResult result =
        Compile(absl::StrCat("version: v1\nrondo:\n  ", row.value, "\n"));
    ASSERT_EQ(result.problems.size(), 1u) << row.value;
    const int column =
        static_cast<int>(absl::string_view(row.value).find(':')) + 5;
    EXPECT_EQ(result.problems[0].line, 3) << row.value;
    if (absl::string_view(row.value).back() != ':') {
      EXPECT_EQ(result.problems[0].column, column) << row.value;
    }
    const std::string text = Describe(result.problems[0]);
    EXPECT_EQ(text.substr(text.find('`')), row.told);
  }
}

TEST(Amounts, OfReplicasSayWhatIsTaken) {
  const struct {
    const char* value;
    const char* told;
  } kRows[] = {
      {"replicas: four",
       "must be an integer, not the string \"four\" (write "
       "a whole number, at least 2)"},
      {"replicas: 4.5",
       "must be an integer, not the number 4.5 (write a whole "
       "number, at least 2)"},
      {"replicas: 50%",
       "must be an integer, not the string \"50%\" (write a "
       "whole number, at least 2)"},
      {"replicas: '4'", "not the string \"4\" (remove the quotes)"},
      {"replicas: 1",
       "must be >= 2 (to leave a resource unshared, remove its "
       "entry)"},
      {"replicas: 4, devices: -1",
       "(write `all`, a count above 0, or a list "
       "of devices)"},
  };
  for (const auto& row : kRows) {
    const CompileResult result = Compile(absl::StrCat(
        "sharing: {timeSlicing: {resources: [{name: gpu, ", row.value, "}]}}"));
    ASSERT_FALSE(result.ok()) << row.value;
    const std::string told(ToStatus(result.problems).message());
    EXPECT_NE(told.find(row.told), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace rondo::config
