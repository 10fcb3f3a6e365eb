// SPDX-License-Identifier: Apache-2.0
//
// Every number of the rules of time. The hardware's own are in rm/facts.h; why
// each rule is there, and what was measured: docs/arbiter.md. Plain values.

#ifndef RONDO_SHARE_TIME_RULES_H_
#define RONDO_SHARE_TIME_RULES_H_

#include <cstdint>

#include "rm/facts.h"
#include "share/time/controls.h"

namespace rondo::share {

// Who wants the GPU, and how (demand.h).
struct DemandRules {
  // Back after so long an absence, or after one and a half rounds of the
  // others: it was away for a reason of its own.
  int64_t pause_us = 20'000;
  int64_t asleep_us = 60'000;  // has not run for so long, or for two rounds
  int64_t forgotten_us =
      1'000'000;            // what it was before tells nothing any more
  int64_t least_stays = 4;  // that it is judged by
  // Uses so much of its slices: it always has work. Less: it comes and goes.
  double fills = 0.7, leaves = 0.5;
  // Shorter slices are filled by a request, too.
  int64_t telling_slice_us = 4'000;
  int64_t told_us = 5'000'000;  // what it told is believed for so long
  double explained = 1.3;       // its absence, by what the others may take
  // Comes and goes for so long: it will go on like that.
  int64_t proven_us = 150'000;
  int64_t steady_us = 1'000'000;
  double waited = 1.5;  // slices on the GPU: longer, and nobody waited for it
};

// What a tenant may use before the others are served first (credit.h).
struct CreditTerms {
  int64_t most_us = 0;
  // At full service it may use its share so many times, and no more than so
  // much of what is the others'.
  double borrow = 1, others = 0;
};
struct CreditRules {
  CreditTerms standard{.most_us = 40'000, .borrow = 3, .others = 0.1};
  CreditTerms latency{.most_us = 200'000, .borrow = 1.5, .others = 0.5};
  double again = 0.5;            // of the most: served first again
  int64_t among_us = 3'000'000;  // its share is among those who ran within
};

// How long slices may be where nobody comes and goes (earned_slice.h).
struct EarnedSliceRules {
  int64_t longest_us = 20'000;  // the mean of all; rondo.period / 2
  double step = 4;
  // So many times the least, where requests are much longer than that.
  double patient = 2;
  double whole = 0.9;           // a request of so much of a slice fills it
  int64_t judged_us = 200'000;  // at least
  int64_t judged_rounds = 5;    // and so many rotations
  double same = 0.03;           // parts that differ by less stay as they are
  int64_t remembered_us = 10'000'000;  // two visits within: another will come
};

// What it may cost that the GPU changes hands (holder_slice.h).
struct HolderSliceRules {
  uint32_t tiny_us = 20;
  uint32_t shortest_us = 250;  // that is not tiny
  // Of the GPU's time, where a latency tenant is served, and else.
  double latency_price = 0.24, price = 0.125;
  int64_t judged_us = 100'000;
  // Groups that share one turn must not be tiny: they switch between them.
  uint32_t shared_us = 1'000;
};

// Exclusive turns (turns.h).
struct TurnRules {
  int64_t batch_us = 500'000;           // rondo.turn
  int64_t standard_us = 200'000;        // of one that did not ask for turns
  double shortest = 0.1, longest = 10;  // by weight, of those
  int64_t gap_wait_us = 100'000;  // a due turn waits at most so long for a gap
  int64_t idle_start_us = 2'500;  // unused since the turn began: over
  int64_t idle_us = 5'000;        // unused after having run: over
  int64_t idle_sampled_us = 100'000;  // unused, by NVML's samples: over
  uint32_t idle_slice_us = 250;       // of one that waits for nothing
  // A gap is the end of a request, not a pause between two kernels of it.
  int64_t gap_least_us = 200;
  int64_t news_us = 500;  // older news tell nothing of now
  // Left just now: the whole think time lies ahead. Or long asleep.
  int64_t gap_fresh_us = 3'000, gap_asleep_us = 50'000;
  // A call within a gap is made at once or not at all: a host that is busy
  // holds it up, and then it would hit a request.
  int64_t call_us = 1'000;
};

struct Rules {
  DemandRules demand;
  CreditRules credit;
  EarnedSliceRules earned;
  HolderSliceRules holder;
  TurnRules turns;
  ControlOptions controls;

  // Where everybody begins: the driver's own, by weight.
  int64_t base_slice_us = rm::kDefaultComputeSliceUs;
  // Of one that comes and goes: its requests are not cut.
  int64_t visit_slice_us = 8'000;
  double visit_round_us = 32'000;  // of all of them, if all came at once
  int64_t latency_slice_us = 20'000, least_latency_slice_us = 4'000;
  double visit_factor = 1.5;  // of its longest request of late
  uint32_t least_slice_us = 1'000;
  double longest_slice_us = 100'000;  // that small weights stretch others to
  // The last visit is so long ago: nobody comes and goes just now.
  int64_t quiet_us = 100'000;
  int64_t duty_us = 200'000;  // of a limit: so much is its largest burst
  // Without any knowledge of use both are bounded, so that nobody starves
  // unseen.
  uint32_t blind_latency_slice_us = 4'000, blind_turn_slice_us = 1'000;
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_RULES_H_
