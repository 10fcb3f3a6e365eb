// SPDX-License-Identifier: Apache-2.0
//
// The node agent: composition of all parts on one event loop. Everything is
// made here, nothing is decided here.
//
// Life: HTTP up -> the node's label (waits at most 5 s for it) -> config ->
// NVML -> servers registered with kubelet. Then it follows changes of the
// config, the label, the GPUs and kubelet. SIGHUP reads everything anew;
// SIGTERM, SIGINT and SIGQUIT end it, in bounded time also where a call of the
// driver hangs (base/ending.h).

#ifndef RONDO_AGENT_AGENT_H_
#define RONDO_AGENT_AGENT_H_

#include <memory>

#include "absl/status/status.h"
#include "agent/gpus.h"
#include "agent/options.h"
#include "base/in_flight.h"
#include "config/compile.h"

namespace rondo::agent {

class Agent {
 public:
  // getenv and open_nvml are parameters so that a test may pass its own.
  // calls, of open_nvml's too, outlives it.
  Agent(Options options, config::Getenv getenv, Gpus::Open open_nvml,
        CallsInFlight& calls);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Runs until a signal (OK) or an error that a restart may mend.
  // InvalidArgument: the config is bad and no earlier good one is known. Blocks
  // the signals named above in the calling thread; call it before other threads
  // start.
  absl::Status Run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_AGENT_H_
