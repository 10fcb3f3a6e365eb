// SPDX-License-Identifier: Apache-2.0
//
// The tenant program (tenant/) as a child: started, begun when told, asked for
// its report. For `rondo demo` and for tests.
//
// Threads: one at a time. Failure: Internal where it cannot be started, Aborted
// with what it printed where it ends before it should or with another status
// than 0, DeadlineExceeded where it says nothing for a minute. It is killed and
// reaped by the destructor.

#ifndef RONDO_SIM_DRIVER_TENANT_PROCESS_H_
#define RONDO_SIM_DRIVER_TENANT_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace rondo::sim::driver {

class TenantProcess {
 public:
  // words: an executable's path and its arguments, the tenant's --wait among
  // them. It may be started through another program, such as `rondo run`.
  // environment: all of it, NAME=value.
  static absl::StatusOr<std::unique_ptr<TenantProcess>> Start(
      std::vector<std::string> words, std::vector<std::string> environment);
  ~TenantProcess() { Kill(); }
  TenantProcess(const TenantProcess&) = delete;
  TenantProcess& operator=(const TenantProcess&) = delete;

  // Blocks until it is set up: its context made, its memory taken.
  absl::Status AwaitReady();
  absl::Status Begin();
  // What a tenant with --progress has done, by a clock that all tenants share.
  struct Progress {
    double seconds = 0;
    double requests = 0;
  };
  // Blocks for the next one that it tells; what it told before is passed over.
  absl::StatusOr<Progress> NextProgress();
  // Blocks until its report and its end.
  absl::Status Finish();

  // Of the report: a number by its key; NaN where there is none.
  double Number(const std::string& name) const;
  // All that it printed so far, both streams.
  const std::string& said() const { return said_; }
  const std::string& report() const { return report_; }

  pid_t pid() const { return pid_; }  // -1 once reaped
  // Blocks until it ends; as a shell says it.
  int Wait();
  void Kill();

 private:
  TenantProcess(pid_t pid, UniqueFd in, UniqueFd out)
      : pid_(pid), in_(std::move(in)), out_(std::move(out)) {}
  absl::StatusOr<std::string> Line();

  pid_t pid_;
  UniqueFd in_, out_;
  std::string said_;
  std::string report_;
};

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_TENANT_PROCESS_H_
