// SPDX-License-Identifier: Apache-2.0
//
// Whose turn it is among those who run one at a time, until when, and when one
// that pauses loses it. Pure; of the arbiter alone. Times in us.

#ifndef RONDO_SHARE_TIME_TURNS_H_
#define RONDO_SHARE_TIME_TURNS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "share/time/event.h"
#include "share/time/rules.h"

namespace rondo::share {

class Turns {
 public:
  struct Taker {
    TenantId id = 0;
    double weight = 1;
    bool asked = false;   // for turns, by its class
    bool can_run = true;  // its limit lets it
  };

  std::optional<TenantId> holder() const { return holder_; }
  bool Holds(TenantId id) const { return holder_ == id; }
  void Clear() {
    holder_.reset();
    rest_.clear();
    interrupted_.reset();
  }
  void Forget(TenantId id) { rest_.erase(id); }

  struct Next {
    int64_t wake_us = INT64_MAX;       // ask again then
    int64_t not_after_us = INT64_MAX;  // a suspension for it is no longer good
  };
  // Whether a change that has been due for so long would disturb nobody now.
  // Empty where nobody can tell: then turns change when they are due.
  using InGap = std::function<bool(int64_t waited_us)>;
  // takers: by id, each once.
  Next Update(int64_t now_us, const std::vector<Taker>& takers,
              const InGap& in_gap, const TurnRules& rules);
  // The change within a gap came too late: the turn goes on.
  bool Undo(TenantId suspended);

  // What the holder made of a stretch of its turn. free_us: nobody else was on
  // the GPU either.
  void Ran() { ran_ = true, unused_us_ = absent_us_ = 0; }
  void Absent(int64_t free_us, int64_t interval_us) {
    unused_us_ += free_us;
    absent_us_ += interval_us;
  }
  // others_us: how long all others together may keep the GPU.
  bool Paused(int64_t others_us, const TurnRules& rules) const {
    return unused_us_ >= (ran_ ? rules.idle_us : rules.idle_start_us) ||
           absent_us_ >= others_us;
  }
  // The holder makes nothing of its turn. What is left of it waits until it
  // has work again.
  void Pause(int64_t now_us) {
    if (holder_ && end_us_ > now_us)
      rest_[*holder_] = {.us = end_us_ - now_us, .paused = true};
    holder_.reset();
  }
  // Close to its end, or in doubt: worth a closer look.
  bool Watched(int64_t now_us, int64_t margin_us) const {
    return holder_ &&
           (!ran_ || absent_us_ > 0 || now_us >= end_us_ - margin_us);
  }
  bool Due(int64_t now_us, int64_t margin_us) const {
    return holder_ && now_us >= end_us_ - margin_us;
  }

 private:
  int64_t LengthOf(const Taker& taker, const std::vector<Taker>& takers,
                   const TurnRules& rules) const;
  const Taker* Back(const std::vector<Taker>& takers) const;
  void Give(int64_t now_us, const Taker& taker,
            const std::vector<Taker>& takers, const TurnRules& rules);
  const Taker& After(const std::vector<Taker>& takers) const;

  std::optional<TenantId> holder_;
  TenantId last_ = 0;  // who had the last one
  // Who is to go on once one that came back has had its rest.
  std::optional<TenantId> interrupted_;
  int64_t end_us_ = 0;
  bool ran_ = false;
  int64_t unused_us_ = 0;  // GPU time that it could have had since it ran
  int64_t absent_us_ = 0;  // time since it ran, whoever ran
  // Of turns that ended early.
  struct Rest {
    int64_t us = 0;
    bool paused = false;  // for want of work: it goes on once there is some
  };
  std::map<TenantId, Rest> rest_;
  struct Before {
    TenantId holder;
    int64_t end_us;
    bool ran;
    int64_t unused_us, absent_us;
    std::map<TenantId, Rest> rest;
  };
  std::optional<Before> before_;  // that a change within a gap has replaced
};

}  // namespace rondo::share

#endif  // RONDO_SHARE_TIME_TURNS_H_
