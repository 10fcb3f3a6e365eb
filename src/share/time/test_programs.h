// SPDX-License-Identifier: Apache-2.0
//
// Programs for the simulated GPU. Most replay what real ones did on one H200
// with driver 580.159.04 (models/); the rest do the same thing over and over.
// A seed makes a program differ from others of its kind, and nothing else does.

#ifndef RONDO_SHARE_TIME_TEST_PROGRAMS_H_
#define RONDO_SHARE_TIME_TEST_PROGRAMS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "share/time/test_simulated_gpu.h"

namespace rondo::share {

// A recorded program, in units: steps, tokens, frames, chunks. A file has a
// line for each thing that its thread did, in us:
//   # key=value ...   flight: units under way before the next one waits
//   L CPU GPU         worked for CPU, then queued a kernel that takes GPU
//   S                 waited until all that was queued was done
//   W TIME            slept
//   U                 the unit ends
struct Model {
  std::vector<std::vector<Op>> units;
  int flight = 0;
};
// InvalidArgument names the file and the line.
absl::StatusOr<Model> ReadModel(const std::string& path);

// --- recorded. A model that cannot be read fails the test. -------------------
Script Train();        // ResNet-50: fills the GPU
Script SmallTrain();   // the host launches more slowly than the GPU works
Script Saturate();     // kernels of 1 ms, three under way
Script LongKernels();  // kernels of 22 ms
// An eager language model, token after token: 680 kernels of some us each.
Script Decoder(unsigned seed);
// A request of four CUDA graphs, one waited for after the other, each 40 ms.
Script GraphService();
// A frame of 50 kernels each 33 ms.
Script Fps30();
// Cells of 0.1 to 0.6 s, which wait for the GPU every 4 ms, and pauses of 0.5
// to 3 s.
Script Notebook(unsigned seed);
// A training that waits 30 to 60 ms for its data before each step.
Script DataTrain(unsigned seed);

// --- synthetic ---------------------------------------------------------------
// Requests of so many kernels; between two of them it thinks, ±10 %.
Script Requests(int kernels, Ns each, Ns think, unsigned seed);
// Kernels without a pause, three under way.
Script Kernels(Ns each);
// Works for so many units, then sleeps, over and over.
Script ComesAndGoes(const Script& script, int units, Ns away);

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_TEST_PROGRAMS_H_
