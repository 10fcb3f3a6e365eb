// SPDX-License-Identifier: Apache-2.0
#include "run/inherited.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rondo::run {
namespace {

TEST(InheritedSlotsTest, AreThoseThatTheEnvironmentNamesInTheFolder) {
  const struct {
    absl::string_view environment;
    const char* slot;
  } kCases[] = {
      {absl::string_view("A=b\0RONDO_SLOTS=g::1\0RONDO_RUN_DIR=/r\0", 39),
       "g::1"},
      {absl::string_view("RONDO_RUN_DIR=/r\0RONDO_SLOTS=g::1", 33), "g::1"},
      {absl::string_view("RONDO_SLOTS=g::1\0RONDO_RUN_DIR=/r2\0", 36), ""},
      {absl::string_view("RONDO_SLOTS=g::1\0", 17), ""},
      {absl::string_view("XRONDO_SLOTS=g::1\0RONDO_RUN_DIR=/r\0", 36), ""},
      {"", ""},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(SlotIn(c.environment, "/r"), c.slot) << c.environment;
}

TEST(InheritedSlotsTest, AreThoseWhoseLibraryIsMappedToo) {
  const absl::string_view line = "7f00-7f10 r-xp 00001000 00:1f 9 ";
  const struct {
    absl::string_view path;
    const char* slot;
  } kCases[] = {
      {"/r/GPU-a-b-12/librondo.so", "GPU-a-b::12"},
      {"/r/GPU-a-b-12/librondo.so (deleted)", "GPU-a-b::12"},
      {"/r2/GPU-a-b-12/librondo.so", ""},
      {"/q/r/GPU-a-b-12/librondo.so", ""},
      {"/r/GPU-a-b-12/x/librondo.so", ""},
      {"/r/GPU-a-b-12/librondo.so.1", ""},
      {"/r/GPU/librondo.so", ""},
      {"[heap]", ""},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(
        SlotInMaps(absl::StrCat(line, "[stack]\n", line, c.path, "\n"), "/r"),
        c.slot)
        << c.path;
  EXPECT_EQ(SlotInMaps("", "/r"), "");
}

TEST(InheritedSlotsTest, AnEnvironmentThatATitleIsWrittenOverIsNotWhole) {
  const auto bytes = [](const auto& text) {
    return absl::string_view(text, sizeof(text) - 1);
  };
  EXPECT_TRUE(IsWhole(bytes("A=b\0C=\0D=e f = g\0")));
  EXPECT_TRUE(IsWhole(bytes("A=b")));
  for (const absl::string_view text :
       {bytes("\0\0\0\0"), bytes("A=b\0\0\0"), bytes("orker 3\0A=b\0"),
        bytes("d: mode=x   "), bytes("postgres: writer    "), bytes("=b\0"),
        bytes("")})
    EXPECT_FALSE(IsWhole(text)) << text;
}

}  // namespace
}  // namespace rondo::run
