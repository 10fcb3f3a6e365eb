// SPDX-License-Identifier: Apache-2.0

#include "shim/driver_call.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "rm/abi.h"
#include "rm/control.h"
#include "rm/memory.h"

namespace rondo::shim {
namespace {

template <typename T>
Call DecodeArg(uint32_t nr, const T& arg) {
  return Decode(rm::MakeRequest(nr, sizeof arg), &arg);
}

TEST(Decode, ForeignRequestsPass) {
  char arg[256] = {};
  EXPECT_EQ(Decode(0x5401 /* TCGETS */, arg).act, Act::kPass);
  EXPECT_EQ(Decode('F' << 8 | 0x29 /* a frame buffer's, no size */, arg).act,
            Act::kPass);
  EXPECT_EQ(Decode(rm::MakeRequest(0xC8, 56), arg).act, Act::kPass);
}

struct ClassCase {
  uint32_t cls;
  Act act;
  ObjectKind kind;
};

class DecodeClass : public testing::TestWithParam<ClassCase> {};

TEST_P(DecodeClass, BothForms) {
  rm::AllocArg arg{.client = 1, .parent = 2, .handle = 3, .params = 0x1000};
  arg.cls = GetParam().cls;
  const Call call = DecodeArg(rm::kEscAlloc, arg);
  EXPECT_EQ(call.act, GetParam().act);
  EXPECT_EQ(call.kind, GetParam().kind);
  rm::AllocArg32 shorter{1, 2, 3, GetParam().cls, 0x1000, 0, 0};
  EXPECT_EQ(DecodeArg(rm::kEscAlloc, shorter).act, GetParam().act);
}

INSTANTIATE_TEST_SUITE_P(
    All, DecodeClass,
    testing::Values(ClassCase{0x0, Act::kObject, ObjectKind::kClient},
                    ClassCase{0x1, Act::kObject, ObjectKind::kClient},
                    ClassCase{0x41, Act::kObject, ObjectKind::kClient},
                    ClassCase{0x80, Act::kObject, ObjectKind::kDevice},
                    ClassCase{0x2080, Act::kObject, ObjectKind::kSubdevice},
                    ClassCase{0xa06c, Act::kObject, ObjectKind::kGroup},
                    ClassCase{0xc46f, Act::kObject, ObjectKind::kChannel},
                    ClassCase{0xca6f, Act::kObject, ObjectKind::kChannel},
                    ClassCase{0xe0, Act::kObject, ObjectKind::kExport},
                    ClassCase{0x40, Act::kMemory, ObjectKind::kMemory},
                    ClassCase{0x3e, Act::kPass, ObjectKind::kNone},
                    ClassCase{0x50a0, Act::kPass, ObjectKind::kNone},
                    ClassCase{0x70, Act::kPass, ObjectKind::kNone}));

TEST(Decode, SizesOfNoKnownDriverAreUnknown) {
  std::vector<char> arg(4096);
  for (uint32_t nr :
       {0x27u, 0x29u, 0x2Au, 0x2Bu, 0x34u, 0x35u, 0x4Au, 0xD2u, 0xD3u, 0xD9u}) {
    for (uint32_t size : {4u, 40u, 64u, 1024u}) {
      EXPECT_EQ(Decode(rm::MakeRequest(nr, size), arg.data()).act,
                Act::kUnknown)
          << nr << " " << size;
    }
  }
}

Call DecodeMemory(rm::MemoryParams params) {
  rm::AllocArg arg{.client = 1, .parent = 2, .handle = 3};
  arg.cls = rm::kClassMemoryLocal;
  arg.params = reinterpret_cast<uint64_t>(&params);
  Call call = DecodeArg(rm::kEscAlloc, arg);
  DecodeParams(&call, &params);
  return call;
}

TEST(Decode, WhatTakesVideoMemory) {
  EXPECT_EQ(DecodeMemory({.size = 4096}).bytes, 4096u);
  EXPECT_EQ(DecodeMemory({.size = 4096}).act, Act::kMemory);
  EXPECT_EQ(DecodeMemory({.attr = rm::kAttrLocationPci, .size = 1}).act,
            Act::kPass);
  EXPECT_EQ(DecodeMemory({.attr = 3u << 25, .size = 1}).act, Act::kMemory)
      << "any location: may be video memory";
  EXPECT_EQ(DecodeMemory({.flags = rm::kMemoryFlagVirtual, .size = 1}).act,
            Act::kPass);
  EXPECT_EQ(DecodeMemory({.size = 0}).act, Act::kPass);
}

TEST(Decode, OutcomeOfBothForms) {
  rm::MemoryParams params{.size = 8192};
  rm::AllocArg arg{.handle = 7, .cls = rm::kClassMemoryLocal};
  arg.status = rm::kNoMemory;
  Call call = DecodeArg(rm::kEscAlloc, arg);
  EXPECT_FALSE(ReadOutcome(call, &arg, &params).ok);
  arg.status = 0;
  EXPECT_TRUE(ReadOutcome(call, &arg, &params).ok);
  EXPECT_EQ(ReadOutcome(call, &arg, &params).bytes, 8192u);
  EXPECT_EQ(ReadOutcome(call, &arg, &params).handle, 7u);
  rm::AllocArg32 shorter{.handle = 9, .cls = rm::kClassMemoryLocal};
  shorter.status = rm::kNoMemory;
  call = DecodeArg(rm::kEscAlloc, shorter);
  EXPECT_FALSE(ReadOutcome(call, &shorter, &params).ok);
}

TEST(Decode, WrappedOnceOnly) {
  rm::WrappedArg arg{rm::kEscControl, 32, 0x1000};
  const Call call = DecodeArg(rm::kEscWrapped, arg);
  EXPECT_EQ(call.act, Act::kWrapped);
  EXPECT_EQ(call.inner_request, rm::MakeRequest(rm::kEscControl, 32));
  EXPECT_EQ(call.params_bytes, 32u);
  arg.cmd = rm::kEscWrapped;
  EXPECT_EQ(DecodeArg(rm::kEscWrapped, arg).act, Act::kPass);
  arg = {rm::kEscControl, 1u << 20, 0x1000};
  EXPECT_EQ(DecodeArg(rm::kEscWrapped, arg).act, Act::kPass);
}

TEST(Decode, ControlsOfAnotherSizeAreUnknown) {
  rm::ControlArg arg{.cmd = rm::kCtrlSetTimeslice, .params_size = 8};
  EXPECT_EQ(DecodeArg(rm::kEscControl, arg).act, Act::kSetSlice);
  arg.params_size = 16;
  EXPECT_EQ(DecodeArg(rm::kEscControl, arg).act, Act::kUnknown);
  arg = {.cmd = rm::kCtrlFbInfoV2, .params_size = 1028};
  EXPECT_EQ(DecodeArg(rm::kEscControl, arg).act, Act::kFbInfoV2);
  arg.cmd = 0x20800a01;
  EXPECT_EQ(DecodeArg(rm::kEscControl, arg).act, Act::kPass);
}

TEST(DriverBranch, OfAVersion) {
  const auto branch = [](const std::string& s) {
    return DriverBranch(s.c_str(), s.size());
  };
  EXPECT_EQ(branch("580.159.04"), 580);
  EXPECT_EQ(branch("535.54.03"), 535);
  EXPECT_EQ(branch("470.256.02"), 470);
  EXPECT_EQ(branch(""), 0);
  EXPECT_EQ(branch("580"), 0);
  EXPECT_EQ(branch("x.y"), 0);
  EXPECT_EQ(branch("99999999.1"), 0);
}

}  // namespace
}  // namespace rondo::shim
