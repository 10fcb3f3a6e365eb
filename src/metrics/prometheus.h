// SPDX-License-Identifier: Apache-2.0
//
// Writer of the Prometheus text format 0.0.4. Pure; one thread at a time.
// Source: Prometheus, "Exposition formats".

#ifndef RONDO_METRICS_PROMETHEUS_H_
#define RONDO_METRICS_PROMETHEUS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace rondo::metrics {

inline constexpr char kPrometheusContentType[] =
    "text/plain; version=0.0.4; charset=utf-8";

using LabelList = std::vector<std::pair<absl::string_view, absl::string_view>>;

class PrometheusText {
 public:
  // Starts a family; the samples that follow are its own. type: "gauge",
  // "counter" or "histogram".
  void Family(absl::string_view name, absl::string_view type,
              absl::string_view help);

  void Sample(const LabelList& labels, double value) {
    SampleOf("", labels, value);
  }
  // suffix: "_bucket", "_sum", "_count" of a histogram.
  void SampleOf(absl::string_view suffix, const LabelList& labels,
                double value);

  // A whole histogram. upper_bounds in seconds, ascending, without +Inf; counts
  // are per bucket, not cumulative, one more than bounds (the last is above all
  // bounds).
  void Histogram(const LabelList& labels,
                 const std::vector<double>& upper_bounds,
                 const std::vector<uint64_t>& counts, double sum);

  const std::string& text() const { return text_; }

 private:
  std::string family_;
  std::string text_;
};

}  // namespace rondo::metrics

#endif  // RONDO_METRICS_PROMETHEUS_H_
