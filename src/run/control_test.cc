// SPDX-License-Identifier: Apache-2.0

#include "run/control.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "run/status.h"

namespace rondo::run {
namespace {

using testing::HasSubstr;

TEST(Control, MessagesSurviveTheTrip) {
  Request request{.gpu = 2,
                  .visible = "GPU-x",
                  .bus_order = true,
                  .memory_bytes = 1 << 30,
                  .tenant = {.cls = share::TenantClass::kLatency,
                             .weight = 2.5,
                             .limit = 0.5},
                  .slot = "GPU-x::1"};
  const auto decoded = DecodeRequest(EncodeRequest(request));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->gpu, 2);
  EXPECT_EQ(decoded->visible, "GPU-x");
  EXPECT_TRUE(decoded->bus_order);
  EXPECT_EQ(decoded->memory_bytes, request.memory_bytes);
  EXPECT_EQ(decoded->tenant.cls, request.tenant.cls);
  EXPECT_EQ(decoded->tenant.weight, 2.5);
  EXPECT_EQ(decoded->slot, "GPU-x::1");
  EXPECT_EQ(*DecodeAnswer(EncodeAnswer(std::string("s"))), "s");
  EXPECT_EQ(
      DecodeAnswer(EncodeAnswer(absl::InternalError("no"))).status().message(),
      "no");
  EXPECT_TRUE(absl::IsInvalidArgument(
      DecodeAnswer(EncodeAnswer(absl::InvalidArgumentError("no"))).status()));
  EXPECT_EQ(*DecodeNotice(EncodeNotice("n\xff")), "n\xEF\xBF\xBD");
  for (const char* bad : {"", "[]", "{}", "{\"gpu\":1}"}) {
    EXPECT_FALSE(DecodeRequest(bad).ok()) << bad;
    EXPECT_FALSE(DecodeAnswer(bad).ok()) << bad;
    EXPECT_FALSE(DecodeNotice(bad).ok()) << bad;
  }
}

TEST(RenderStatus, IsJsonWhateverProgramsSent) {
  share::ShareStats stats;
  stats.gpus.push_back({.uuid = "GPU-x"});
  stats.slots.push_back(
      {.slot = "GPU-x::1", .processes = {{.driver_version = "580\xff"}}});
  const std::string text = RenderStatus(stats, 7);
  EXPECT_THAT(text, HasSubstr("{\"arbiterPid\":7,\"gpus\":[{"));
  EXPECT_THAT(text, HasSubstr("\"driverVersion\":\"580\xEF\xBF\xBD\""));
  EXPECT_THAT(text, HasSubstr("\"pid\":null"));
  EXPECT_THAT(text, HasSubstr("\"reason\":null"));
  EXPECT_THAT(text, HasSubstr("\"activitySource\":null"));
}

}  // namespace
}  // namespace rondo::run
