// SPDX-License-Identifier: Apache-2.0
#include "nvml/symbols.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace rondo::nvml::abi {
namespace {

absl::StatusCode Code(Return result) {
  switch (result) {
    case kNotFound:
    case kGpuNotFound:
    case kInvalidArgument:  // what NVML says to an index or handle not there
      return absl::StatusCode::kNotFound;
    case kFunctionNotFound:
    case kNotSupported:
      return absl::StatusCode::kUnimplemented;
    case kGpuIsLost:
    case kResetRequired:
    case kDriverNotLoaded:
    case kUninitialized:
      return absl::StatusCode::kUnavailable;
    case kNoPermission:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Symbols>> Symbols::Load(
    const std::string& library, CallsInFlight* calls) {
  std::unique_ptr<Symbols> symbols(new Symbols);
  // RTLD_NODELETE: the driver's library leaves threads and handlers behind that
  // must not lose their code.
  symbols->library_ =
      dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (symbols->library_ == nullptr)
    return absl::NotFoundError(absl::StrCat("cannot load NVML: ", dlerror()));
  const auto find = [&](const char* name) {
    return dlsym(symbols->library_, name);
  };
#define RONDO_NVML_LOAD(member, symbol, arguments)                        \
  symbols->member = {reinterpret_cast<Return(*) arguments>(find(symbol)), \
                     symbol, calls};
  RONDO_NVML_SYMBOLS(RONDO_NVML_LOAD)
#undef RONDO_NVML_LOAD
  symbols->error_string_ =
      reinterpret_cast<const char* (*)(Return)>(find("nvmlErrorString"));
  return symbols;
}

Symbols::~Symbols() {
  if (library_ != nullptr) dlclose(library_);
}

absl::Status Symbols::Check(Return result, absl::string_view call) const {
  if (result == kSuccess) return absl::OkStatus();
  const char* const words =
      error_string_ != nullptr ? error_string_(result) : nullptr;
  return absl::Status(
      Code(result),
      absl::StrCat(call, ": ",
                   words != nullptr ? words : absl::StrCat("error ", result)));
}

}  // namespace rondo::nvml::abi
