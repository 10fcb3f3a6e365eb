// SPDX-License-Identifier: Apache-2.0
//
// Keeps the config in force. A new text is compiled, then applied by the owner;
// what fails either step is refused and remembered as such, and the last good
// one stays in force - also across restarts, through a file.
//
// One thread (the agent's loop). Reads and writes only
// <state_dir>/last-good.yaml.

#ifndef RONDO_AGENT_CONFIG_KEEPER_H_
#define RONDO_AGENT_CONFIG_KEEPER_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/config_source.h"
#include "config/compile.h"
#include "metrics/node_view.h"

namespace rondo::agent {

class ConfigKeeper {
 public:
  // Makes a plan real. origin: of its text, as in ConfigText. An error refuses
  // the config; what was in force must then still be.
  using Apply = std::function<absl::Status(const config::Plan&,
                                           const std::string& origin)>;

  ConfigKeeper(config::Overrides overrides, config::Getenv getenv,
               std::string state_dir, Apply apply);

  // Takes a text, or the reason why there is none. always = also a text equal
  // to the one in force (SIGHUP, new GPUs). Returns OK when the text is in
  // force afterwards.
  absl::Status Offer(const absl::StatusOr<ConfigText>& offered, bool always);

  // After a refused first offer: the config that an earlier process had in
  // force. NotFound where there is none.
  absl::Status OfferRemembered();

  const std::optional<config::Plan>& plan() const { return plan_; }
  const metrics::ConfigView& view() const { return view_; }

 private:
  absl::Status Take(const ConfigText& config);
  void Refuse(const std::string& origin, const absl::Status& why);
  void Remember(const std::string& text);

  const config::Overrides overrides_;
  const config::Getenv getenv_;
  const std::string state_dir_;
  const Apply apply_;
  std::optional<config::Plan> plan_;
  std::string text_in_force_;
  metrics::ConfigView view_;
};

}  // namespace rondo::agent

#endif  // RONDO_AGENT_CONFIG_KEEPER_H_
