// SPDX-License-Identifier: Apache-2.0
//
// Weight, class and limit of a tenant as people write them: annotations of
// pods and options of `rondo run` mean the same and are answered alike. (Of
// memory: config/amount.h.) Pure; any thread.

#ifndef RONDO_AGENT_TENANT_TEXT_H_
#define RONDO_AGENT_TENANT_TEXT_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "config/amount.h"
#include "share/time/event.h"

namespace rondo::agent {

std::optional<config::Mistake> ReadWeight(absl::string_view text,
                                          double& weight);
std::optional<config::Mistake> ReadLimit(absl::string_view text, double& limit);
std::optional<config::Mistake> ReadClass(absl::string_view text,
                                         share::TenantClass& cls);

}  // namespace rondo::agent

#endif  // RONDO_AGENT_TENANT_TEXT_H_
