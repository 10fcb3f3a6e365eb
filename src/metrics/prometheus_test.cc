// SPDX-License-Identifier: Apache-2.0
#include "metrics/prometheus.h"

#include <limits>

#include "gtest/gtest.h"

namespace rondo::metrics {
namespace {

TEST(PrometheusText, WritesFamiliesSamplesAndEscapes) {
  PrometheusText out;
  out.Family("rondo_up", "gauge", "one\nline with \\");
  out.Sample({}, 1);
  out.Sample({{"a", "x\"y\\z\n"}, {"b", ""}}, 0.25);
  out.Sample({}, 21474836480.0);
  out.Sample({}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(out.text(),
            "# HELP rondo_up one\\nline with \\\\\n"
            "# TYPE rondo_up gauge\n"
            "rondo_up 1\n"
            "rondo_up{a=\"x\\\"y\\\\z\\n\",b=\"\"} 0.25\n"
            "rondo_up 21474836480\n"
            "rondo_up NaN\n");
}

TEST(PrometheusText, HistogramsAreCumulative) {
  PrometheusText out;
  out.Family("t_seconds", "histogram", "h");
  out.Histogram({{"m", "x"}}, {0.001, 1}, {3, 0, 2}, 4.5);
  EXPECT_EQ(out.text(),
            "# HELP t_seconds h\n# TYPE t_seconds histogram\n"
            "t_seconds_bucket{m=\"x\",le=\"0.001\"} 3\n"
            "t_seconds_bucket{m=\"x\",le=\"1\"} 3\n"
            "t_seconds_bucket{m=\"x\",le=\"+Inf\"} 5\n"
            "t_seconds_sum{m=\"x\"} 4.5\n"
            "t_seconds_count{m=\"x\"} 5\n");
}

}  // namespace
}  // namespace rondo::metrics
