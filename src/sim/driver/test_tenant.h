// SPDX-License-Identifier: Apache-2.0
//
// The tenant program as tests run it: on a simulated node, set up at once,
// begun when told, killed with the object.

#ifndef RONDO_SIM_DRIVER_TEST_TENANT_H_
#define RONDO_SIM_DRIVER_TEST_TENANT_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"
#include "sim/driver/node_driver.h"

namespace rondo::sim::driver {

class Tenant {
 public:
  // program: the path of rondo-tenant. preload: what comes before the simulated
  // driver, such as the shim. It is set up when this returns.
  Tenant(const std::string& program, const Node& node,
         const std::string& options, const std::string& preload = "",
         const std::vector<std::string>& environment = {}) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) abort();
    in_.Reset(in[1]);
    out_.Reset(out[0]);
    std::vector<std::string> words = {program, "--wait"};
    for (absl::string_view word :
         absl::StrSplit(options, ' ', absl::SkipEmpty()))
      words.emplace_back(word);
    std::vector<std::string> variables = environment;
    for (const auto& [name, value] : Environment(node, "", preload))
      variables.push_back(absl::StrCat(name, "=", value));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    const int error =
        posix_spawn(&pid_, program.c_str(), &actions, nullptr,
                    Pointers(&words).data(), Pointers(&variables).data());
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    EXPECT_EQ(error, 0);
    EXPECT_EQ(Line(), "ready");
  }
  ~Tenant() { Kill(); }
  Tenant(const Tenant&) = delete;
  Tenant& operator=(const Tenant&) = delete;

  void Begin() { EXPECT_EQ(write(in_.get(), "\n", 1), 1); }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

  // The report, once it ended by itself.
  std::string Finish() {
    report_ = Line();
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    EXPECT_EQ(status, 0);
    return report_;
  }
  // Its exit status.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WEXITSTATUS(status);
  }
  double Number(const std::string& name) const {
    const std::string key = absl::StrCat("\"", name, "\": ");
    const size_t at = report_.find(key);
    double value = NAN;
    if (at == std::string::npos) return value;
    const size_t begin = at + key.size();
    const size_t end = report_.find_first_of(",}", begin);
    EXPECT_TRUE(absl::SimpleAtod(report_.substr(begin, end - begin), &value));
    return value;
  }
  double Share() const { return Number("share"); }

 private:
  static std::vector<char*> Pointers(std::vector<std::string>* words) {
    std::vector<char*> pointers;
    for (std::string& word : *words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }
  std::string Line() {
    std::string line;
    for (char c; read(out_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  UniqueFd in_, out_;
  pid_t pid_ = -1;
  std::string report_;
};

using Tenants = std::vector<std::unique_ptr<Tenant>>;

// All at the same time, to their end.
inline void RunAll(const Tenants& tenants) {
  for (const auto& t : tenants) t->Begin();
  for (const auto& t : tenants) t->Finish();
}

}  // namespace rondo::sim::driver

#endif  // RONDO_SIM_DRIVER_TEST_TENANT_H_
