// SPDX-License-Identifier: Apache-2.0
//
// Programs that share the simulated GPU: by the driver alone, or under the
// arbiter. Virtual time: the same on every machine. One thread.

#ifndef RONDO_SHARE_TIME_TEST_MIXES_H_
#define RONDO_SHARE_TIME_TEST_MIXES_H_

#include <map>
#include <string>
#include <vector>

#include "share/time/test_programs.h"
#include "share/time/test_shared_gpu.h"

namespace rondo::share {

// What is a program's speed. Times are of units, rates over the window.
enum class By { kRate, kMedian, kMean, kInTime };

struct Program {
  const char* name;
  Script (*script)(unsigned seed);
  By by = By::kRate;
  double least = 0.95;  // of its speed on stock
  TenantClass cls = TenantClass::kStandard;
};
struct Mix {
  std::string name;
  std::vector<Program> programs;  // each one's seed is its place, from 1
  int seconds = 20;               // of the window, after 3 to warm up
  bool fills = false;             // all always have work
};

struct Outcome {
  double rate = 0;             // units a second
  Ns median = 0, p99 = 0;      // of units whose time is kept; 0: of none
  double mean = 0, speed = 0;  // by Program::by; more is better
  double busy = 0;             // part of the window that its kernels took
};
struct Outcomes {
  std::vector<Outcome> programs;  // in their order
  std::map<Mode, double> modes;   // part of the window; of Rondo only
};
enum class Way { kStock, kRondo };
Outcomes Run(const Mix& mix, Way way);
// The same, once in a process for each name.
const Outcomes& Measured(const Mix& mix, Way way);
// A program on its own.
const Outcome& Alone(const Program& program);

// All that is measured without annotations; and one of them.
const std::vector<Mix>& Mixes();
const Mix& MixNamed(const std::string& name);

extern const Program kTrain, kRequests, kKernels;
Program As(TenantClass cls, Program program);
Mix Beside(const Program& first, int count, const Program& others);

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_TEST_MIXES_H_
