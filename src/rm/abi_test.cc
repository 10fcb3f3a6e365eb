// SPDX-License-Identifier: Apache-2.0

#include "rm/abi.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include "rm/control.h"
#include "rm/memory.h"

namespace rondo::rm {
namespace {

// The kernel's own macros are the reference for the request's fields.
TEST(Request, AgreesWithTheKernelsMacros) {
  const uint32_t request = _IOWR('F', 0x2B, AllocArg);
  EXPECT_EQ(MakeRequest(kEscAlloc, sizeof(AllocArg)), request);
  EXPECT_EQ(RequestType(request), kIoctlType);
  EXPECT_EQ(RequestNr(request), kEscAlloc);
  EXPECT_EQ(RequestSize(request), 48u);
}

TEST(Request, SignExtensionDoesNotMatter) {
  const long extended = static_cast<int>(_IOWR('F', 0x2A, ControlArg));
  EXPECT_EQ(RequestSize(static_cast<uint32_t>(extended)), 32u);
}

TEST(Class, ChannelsOfEveryArchitecture) {
  for (uint32_t cls : {0xa06fu, 0xc46fu, 0xc56fu, 0xc86fu, 0xc96fu, 0xca6fu}) {
    EXPECT_TRUE(IsChannelClass(cls)) << std::hex << cls;
  }
  for (uint32_t cls : {0xa06cu, 0xc8b5u, 0x40u, 0x6fu, 0xcbc0u}) {
    EXPECT_FALSE(IsChannelClass(cls)) << std::hex << cls;
  }
}

TEST(Memory, LocationIsTwoBitsOfAttr) {
  EXPECT_EQ(AttrLocation(0), kLocationVideo);
  EXPECT_EQ(AttrLocation(kAttrLocationPci | kAttrCoherencyCached), 1u);
}

// Offsets that are used where a field moves with the function.
TEST(VidHeap, OffsetsOfEachFunction) {
  struct AllocSize {
    uint32_t owner, memory, type, flags, attr, format, compr, zcull, stride;
    uint32_t width, height;
    uint64_t size;
  };
  struct AllocTiled {
    uint32_t owner, memory, type, flags, height;
    int32_t pitch;
    uint32_t attr, width, format, compr, zcull, stride;
    uint64_t size;
  };
  struct AllocRange {
    uint32_t owner, memory, type, flags, attr, format, compr, zcull, stride;
    uint64_t size;
  };
  constexpr size_t kData = 40;
  EXPECT_EQ(kData + offsetof(AllocSize, memory), kHeapHandleAt);
  EXPECT_EQ(kData + offsetof(AllocSize, flags), kHeapFlagsAt);
  EXPECT_EQ(kData + offsetof(AllocSize, attr), kHeapAttrAt);
  EXPECT_EQ(kData + offsetof(AllocSize, size), kHeapSizeAt);
  EXPECT_EQ(kData + offsetof(AllocTiled, attr), kHeapAttrTiledAt);
  EXPECT_EQ(kData + offsetof(AllocTiled, size), kHeapSizeAt);
  EXPECT_EQ(kData + offsetof(AllocRange, size), kHeapSizeRangeAt);
}

}  // namespace
}  // namespace rondo::rm
