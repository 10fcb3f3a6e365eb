// SPDX-License-Identifier: Apache-2.0
//
// JSON of what may be unknown: null then. Templates in the JSON type only so
// that this header need not know all of it.

#ifndef RONDO_METRICS_OR_NULL_H_
#define RONDO_METRICS_OR_NULL_H_

#include <optional>
#include <string>

#include "nlohmann/json_fwd.hpp"

namespace rondo::metrics {

template <typename T, typename Json = nlohmann::ordered_json>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Empty = unknown, or none.
template <typename Json = nlohmann::ordered_json>
Json TextOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace rondo::metrics

#endif  // RONDO_METRICS_OR_NULL_H_
