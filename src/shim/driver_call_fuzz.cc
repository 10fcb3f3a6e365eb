// SPDX-License-Identifier: Apache-2.0
//
// Any ioctl with any bytes behind it: reading it touches nothing outside, and
// what is then rewritten stays inside what the driver was given.
// Input: request nr u8, size u16, argument, parameters.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "rm/abi.h"
#include "shim/driver_call.h"
#include "shim/view.h"

namespace {

using rondo::shim::Act;

// A copy of exactly n bytes, zero where the input ends, so that a sanitizer
// sees one byte too far.
std::unique_ptr<uint8_t[]> Take(const uint8_t** data, size_t* size, size_t n) {
  auto copy = std::make_unique<uint8_t[]>(n);
  const size_t have = n < *size ? n : *size;
  if (have != 0) memcpy(copy.get(), *data, have);
  *data += have;
  *size -= have;
  return copy;
}

void Show(const rondo::shim::Call& call, uint8_t* arg, uint8_t* params) {
  const rondo::shim::Share share{1 << 30, 1 << 20};
  if (call.act == Act::kFbInfoV2) {
    rondo::shim::ShowFbInfo(share,
                            reinterpret_cast<rondo::rm::FbInfo*>(params + 4),
                            rondo::shim::FbInfoCount(params, call.params_size));
  }
  if (call.act == Act::kHeapInfo) rondo::shim::ShowHeapInfo(share, arg);
  if (call.act == Act::kHeapSize) rondo::shim::ShowHeapSize(share, arg);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const uint32_t arg_size = (data[1] | data[2] << 8) & 0x3fff;
  uint32_t request = rondo::rm::MakeRequest(data[0], arg_size);
  data += 3;
  size -= 3;
  auto arg = Take(&data, &size, arg_size);
  auto call = rondo::shim::Decode(request, arg.get());
  if (call.act == Act::kWrapped) {
    request = call.inner_request;
    arg = Take(&data, &size, call.params_bytes);
    call = rondo::shim::Decode(request, arg.get());
    if (call.act == Act::kWrapped) abort();
  }
  if (call.act == Act::kUnknown || call.params_bytes > 1 << 16) return 0;
  const size_t inner_size = rondo::rm::RequestSize(request);
  if (call.status_at != 0 && call.status_at + 4u > inner_size) abort();
  if (call.handle_at != 0 && call.handle_at + 4u > inner_size) abort();
  if (call.bytes_at != 0 && call.bytes_at + 8u > inner_size) abort();
  auto params = Take(&data, &size, call.params_bytes);
  if (call.params_bytes != 0) DecodeParams(&call, params.get());
  if (call.act == Act::kPass) return 0;
  if (call.act == Act::kMemory && call.bytes == 0) abort();
  ReadOutcome(call, arg.get(), params.get());
  Show(call, arg.get(), params.get());
  return 0;
}
