// SPDX-License-Identifier: Apache-2.0
#include "metrics/prometheus.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace rondo::metrics {
namespace {

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  // Counters and bytes are whole numbers up to 2^53: print them as such.
  if (value == std::floor(value) && std::fabs(value) < 9007199254740992.0)
    return absl::StrCat(static_cast<int64_t>(value));
  return absl::StrFormat("%.9g", value);
}

}  // namespace

void PrometheusText::Family(absl::string_view name, absl::string_view type,
                            absl::string_view help) {
  family_ = std::string(name);
  absl::StrAppend(&text_, "# HELP ", name, " ",
                  absl::StrReplaceAll(help, {{"\\", "\\\\"}, {"\n", "\\n"}}),
                  "\n# TYPE ", name, " ", type, "\n");
}

void PrometheusText::SampleOf(absl::string_view suffix, const LabelList& labels,
                              double value) {
  absl::StrAppend(&text_, family_, suffix);
  const char* separator = "{";
  for (const auto& [name, text] : labels) {
    absl::StrAppend(&text_, separator, name, "=\"",
                    absl::StrReplaceAll(
                        text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
                    "\"");
    separator = ",";
  }
  absl::StrAppend(&text_, labels.empty() ? "" : "}", " ", Number(value), "\n");
}

void PrometheusText::Histogram(const LabelList& labels,
                               const std::vector<double>& upper_bounds,
                               const std::vector<uint64_t>& counts,
                               double sum) {
  uint64_t total = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    const std::string bound =
        i < upper_bounds.size() ? Number(upper_bounds[i]) : "+Inf";
    LabelList with_bound = labels;
    with_bound.emplace_back("le", bound);
    SampleOf("_bucket", with_bound, static_cast<double>(total));
  }
  SampleOf("_sum", labels, sum);
  SampleOf("_count", labels, static_cast<double>(total));
}

}  // namespace rondo::metrics
