// SPDX-License-Identifier: Apache-2.0
#include "agent/tenant_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/suggest.h"

namespace rondo::agent {

using config::Mistake;
using config::NumberRange;
using share::TenantClass;

std::optional<Mistake> ReadWeight(absl::string_view text, double& weight) {
  const NumberRange range{
      .least = share::kLeastWeight,
      .most = share::kMostWeight,
      .above_least = false,
      .is_part = false,
      .accepted = absl::StrCat("write a number from ", share::kLeastWeight,
                               " to ", share::kMostWeight, ", such as 3")};
  return config::ReadNumber(text, range, weight);
}

std::optional<Mistake> ReadLimit(absl::string_view text, double& limit) {
  const NumberRange range{
      .least = 0,
      .most = 1,
      .above_least = true,
      .is_part = true,
      .accepted =
          "write a part of the GPU's time above 0, at most 1, such as 0.5"};
  return config::ReadNumber(text, range, limit);
}

std::optional<Mistake> ReadClass(absl::string_view text, TenantClass& cls) {
  std::vector<std::string> known;
  for (const TenantClass each :
       {TenantClass::kLatency, TenantClass::kStandard, TenantClass::kBatch}) {
    known.emplace_back(share::ClassName(each));
    if (text != known.back()) continue;
    cls = each;
    return std::nullopt;
  }
  if (text.empty())
    return Mistake{"is empty", "write latency, standard or batch"};
  const std::string near = NearestWord(text, known);
  return Mistake{"is not a class",
                 near.empty() ? "write latency, standard or batch"
                              : absl::StrCat("write ", near,
                                             " (classes are latency, standard "
                                             "and batch)")};
}

}  // namespace rondo::agent
