// SPDX-License-Identifier: Apache-2.0
//
// Programs that have nothing to do with GPUs, of another libc or of none: under
// librondo.so they run as if nothing were preloaded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "test/shim/fake_agent.h"
#include "test/shim/tenant_process.h"

namespace rondo {
namespace {

std::string Outcome(const std::string& program, std::vector<std::string> args,
                    const RunDir& dir, bool preload) {
  TenantProcess::Options options{.program = program, .args = std::move(args)};
  if (!preload) options.preload = "";
  TenantProcess process(dir, options);
  std::string all;
  for (std::string line; (line = process.ReadLine()) != "<gone>";) {
    all += line + "\n";
  }
  const int status = process.Finish();
  return all + "status " + std::to_string(WEXITSTATUS(status)) + "\n" +
         process.Errors();
}

class ShimForeign : public testing::TestWithParam<const char*> {};

TEST_P(ShimForeign, RunsAsIfNothingWerePreloaded) {
  const std::string program = GetParam();
  if (access(program.c_str(), X_OK) != 0) {
    GTEST_SKIP() << program << " was not built here (no musl-gcc)";
  }
  RunDir dir;
  // Beside an agent, and without one.
  auto agent =
      std::make_unique<FakeAgent>(dir.Socket(kGpu, 0), FakeAgent::Options{});
  const std::string plain = Outcome(program, {}, dir, false);
  EXPECT_THAT(plain, testing::HasSubstr("status 3"));
  EXPECT_EQ(Outcome(program, {}, dir, true), plain);
  agent.reset();
  EXPECT_EQ(Outcome(program, {}, dir, true), plain);
}

INSTANTIATE_TEST_SUITE_P(All, ShimForeign,
                         testing::Values(RONDO_TEST_PLAIN "_glibc",
                                         RONDO_TEST_PLAIN "_glibc_static",
                                         RONDO_TEST_PLAIN "_musl",
                                         RONDO_TEST_PLAIN "_musl_static"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(name.rfind("plain_") + 6);
                         });

TEST(ShimForeignShell, UnderEnvIgnoreEnvironment) {
  RunDir dir;
  FakeAgent agent(dir.Socket(kGpu, 0), {});
  const std::string program = RONDO_TEST_PLAIN "_glibc";
  EXPECT_EQ(Outcome("/usr/bin/env", {"-i", program}, dir, true),
            Outcome("/usr/bin/env", {"-i", program}, dir, false));
}

TEST(ShimForeignShell, UnderAShellAndItsChildren) {
  RunDir dir;
  FakeAgent agent(dir.Socket(kGpu, 0), {});
  const std::string script =
      "for i in 1 2 3; do ls / | sort | head -2; done; exit 5";
  EXPECT_EQ(Outcome("/bin/sh", {"-c", script}, dir, true),
            Outcome("/bin/sh", {"-c", script}, dir, false));
  EXPECT_EQ(agent.Get().hellos, 0);
}

}  // namespace
}  // namespace rondo
