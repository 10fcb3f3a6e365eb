// SPDX-License-Identifier: Apache-2.0
//
// The JSON of what the sharing knows (share/stats.h), the same wherever it is
// shown: in /api/v1/node and by `rondo run --status`. What is unknown is null.
// Pure. Texts are as programs sent them: to be dumped with a handler for what
// is not UTF-8.

#ifndef RONDO_METRICS_SHARE_JSON_H_
#define RONDO_METRICS_SHARE_JSON_H_

#include "nlohmann/json_fwd.hpp"
#include "share/stats.h"

namespace rondo::metrics {

nlohmann::ordered_json SlotJson(const share::SlotStats& slot);

nlohmann::ordered_json SharedGpuJson(const share::GpuStats& gpu);

}  // namespace rondo::metrics

#endif  // RONDO_METRICS_SHARE_JSON_H_
