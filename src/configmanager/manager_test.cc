// SPDX-License-Identifier: Apache-2.0
//
// The real executable by the name config-manager, told by the environment as
// the GPU Operator tells it, beside the stand-in API server.

#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/status.h"
#include "configmanager/process.h"
#include "configmanager/test_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/test_node_server.h"

namespace rondo::configmanager {
namespace {

namespace fs = std::filesystem;
using kube::Event;
using kube::NodeJson;
using testing::HasSubstr;
using testing::Not;

class ManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeDirectories(source_).ok());
    ASSERT_TRUE(MakeDirectories(Path("config")).ok());
    ASSERT_TRUE(
        WriteFileAtomically(
            Path("kubeconfig"),
            absl::StrCat("current-context: c\n"
                         "contexts: [{name: c, context: {cluster: k}}]\n"
                         "clusters: [{name: k, cluster: {server: '",
                         server_.url(), "'}}]\n"))
            .ok());
  }

  std::string Path(absl::string_view name) const {
    return absl::StrCat(dir_.path(), "/", name);
  }
  // As kubelet mounts a ConfigMap, and swaps its content later: names are links
  // through ..data; first the new ones come, then the old ones go.
  void Mount(const std::vector<std::string>& keys, absl::string_view text) {
    const std::string version = absl::StrCat("..", ++version_);
    ASSERT_TRUE(MakeDirectories(absl::StrCat(source_, "/", version)).ok());
    for (const std::string& key : keys)
      ASSERT_TRUE(WriteFileAtomically(
                      absl::StrCat(source_, "/", version, "/", key), text)
                      .ok());
    ASSERT_EQ(symlink(version.c_str(), (source_ + "/..data_tmp").c_str()), 0);
    fs::rename(source_ + "/..data_tmp", source_ + "/..data");
    for (const std::string& key : keys)
      if (!fs::is_symlink(source_ + "/" + key))
        fs::create_symlink("..data/" + key, source_ + "/" + key);
    for (const auto& entry : fs::directory_iterator(source_))
      if (entry.is_symlink() && !fs::exists(entry.path()))
        fs::remove(entry.path());
  }
  void Label(const std::string& label) {
    server_.AnswerOnly(200, NodeJson(label, 1));
  }
  // Also for a watch that begins anew.
  void ChangeLabel(const std::string& label) {
    Label(label);
    server_.Send(Event("MODIFIED", NodeJson(label, 2)));
  }

  TestProcess& Start(std::vector<std::string> more) {
    std::vector<std::string> environment = {
        "KUBECONFIG=" + Path("kubeconfig"), "NODE_NAME=n1",
        "CONFIG_FILE_SRCDIR=" + source_, "CONFIG_FILE_DST=" + link_,
        "PROCESS_TO_SIGNAL=" + name_};
    if (const char* search = getenv("LD_LIBRARY_PATH"))
      environment.push_back(absl::StrCat("LD_LIBRARY_PATH=", search));
    environment.insert(environment.end(), more.begin(), more.end());
    manager_ = std::make_unique<TestProcess>(
        RONDO, std::vector<std::string>{"config-manager"}, environment);
    return *manager_;
  }
  int Oneshot(std::vector<std::string> more) {
    more.insert(more.end(), {"ONESHOT=true", "SEND_SIGNAL=false"});
    return Start(std::move(more)).Wait();
  }
  // A process called name_ that runs a script.
  std::unique_ptr<TestProcess> Reader(const std::string& script) const {
    return std::make_unique<TestProcess>(
        "/bin/sh", std::vector<std::string>{name_, "-c", script},
        std::vector<std::string>{});
  }
  std::string Key() const {
    std::error_code error;
    const fs::path target = fs::read_symlink(link_, error);
    if (error) return "(no link)";
    return target.parent_path() == source_ ? target.filename().string()
                                           : target.string();
  }

  TempDir dir_ = *TempDir::Create("rondo-config-manager");
  const std::string source_ = Path("available-configs");
  const std::string link_ = Path("config/config.yaml");
  // No other process of this machine has it.
  const std::string name_ = Path("nvidia-device-plugin");
  int version_ = 0;
  kube::TestNodeServer server_;
  std::unique_ptr<TestProcess> manager_;
};

constexpr char kCountsSignals[] =
    "trap 'echo told' HUP; echo ready; while :; do read x && exit 3; done";

TEST_F(ManagerTest, OneshotLinksTheConfigOfTheLabelAndEnds) {
  Mount({"a", "b", "default"}, "version: v1");
  Label("b");
  EXPECT_EQ(Oneshot({"DEFAULT_CONFIG=a", "FALLBACK_STRATEGIES=empty"}),
            kExitOk);
  EXPECT_EQ(Key(), "b");
  EXPECT_EQ(ReadFile(link_).value_or(""), "version: v1");
}

TEST_F(ManagerTest, WithoutALabelTheDefaultDecidesThenTheFallbacks) {
  const struct {
    std::vector<std::string> keys;
    std::string default_config, fallbacks, key;
  } kRows[] = {{{"a", "b", "default"}, "b", "named", "b"},
               {{"a", "default"}, "", "single,named", "default"},
               {{"only"}, "", "named,single", "only"},
               {{"a", "b"}, "", "named, single, empty", "/dev/null"},
               {{"a"}, "", "empty", "/dev/null"}};
  Label("");
  for (const auto& row : kRows) {
    Mount(row.keys, "");
    EXPECT_EQ(Oneshot({"DEFAULT_CONFIG=" + row.default_config,
                       "FALLBACK_STRATEGIES=" + row.fallbacks}),
              kExitOk)
        << manager_->Output();
    EXPECT_EQ(Key(), row.key);
  }
}

TEST_F(ManagerTest, WhatCannotBeChosenIsAnErrorAndTheOldLinkStays) {
  const struct {
    std::vector<std::string> keys;
    std::string label;
    std::vector<std::string> environment;
    int code;
    std::string text;
  } kRows[] = {
      {{"a", "b"},
       "typo",
       {"DEFAULT_CONFIG=b", "NODE_LABEL=nvidia.com/device-plugin.config"},
       kExitFailure,
       "specified config typo does not exist (named by the node's label "
       "nvidia.com/device-plugin.config"},
      {{"a"},
       "",
       {"DEFAULT_CONFIG=c"},
       kExitFailure,
       "specified config c does not exist (named by the default config"},
      {{"a", "b"},
       "",
       {"FALLBACK_STRATEGIES=named,single"},
       kExitFailure,
       "all fallbacks failed (configs: a, b)"},
      {{"a"},
       "",
       {"FALLBACK_STRATEGIES=nmaed"},
       kExitUsage,
       "unknown fallback strategy nmaed"},
      {{},
       "",
       {"FALLBACK_STRATEGIES=empty"},
       kExitFailure,
       "no configuration files available"}};
  for (const auto& row : kRows) {
    Mount(row.keys, "");
    Label(row.label);
    fs::remove(link_);
    fs::create_symlink("/etc/hostname", link_);
    EXPECT_EQ(Oneshot(row.environment), row.code);
    EXPECT_THAT(manager_->Output(), HasSubstr(row.text));
    EXPECT_EQ(Key(), "/etc/hostname");
  }
}

TEST_F(ManagerTest, ALinkToNothingAndAFileAreReplaced) {
  Mount({"a"}, "version: v1");
  Label("a");
  fs::create_symlink(source_ + "/gone", link_);
  EXPECT_EQ(Oneshot({}), kExitOk);
  EXPECT_EQ(Key(), "a");
  fs::remove(link_);
  ASSERT_TRUE(WriteFileAtomically(link_, "version: v1").ok());
  EXPECT_EQ(Oneshot({}), kExitOk);
  EXPECT_EQ(Key(), "a");
}

TEST_F(ManagerTest, AnApiServerThatIsAwayIsAskedAgain) {
  Mount({"a"}, "");
  server_.Answer(503, "starting");
  server_.Answer(200, NodeJson("a", 1));
  TestProcess& manager = Start({"ONESHOT=1", "SEND_SIGNAL=false"});
  EXPECT_TRUE(manager.SaysLineWith("503: starting; trying again"));
  EXPECT_EQ(manager.Wait(), kExitOk);
  EXPECT_EQ(Key(), "a");
}

TEST_F(ManagerTest, TheSidecarFollowsTheLabelAndSignals) {
  Mount({"a", "b"}, "");
  Label("a");
  fs::create_symlink(source_ + "/a", link_);  // by the init container
  const auto reader = Reader(kCountsSignals);
  ASSERT_TRUE(reader->SaysLineWith("ready"));
  TestProcess& manager = Start({});
  // The reader has read this one: no signal.
  ASSERT_TRUE(manager.SaysLineWith("already configured"));
  for (const std::string label : {"b", "a"}) {
    ChangeLabel(label);
    EXPECT_TRUE(manager.SaysLineWith("sent signal 1 to " + name_));
    EXPECT_TRUE(reader->SaysLineWith("told"));
    EXPECT_EQ(Key(), label);
  }
  manager.Signal(SIGTERM);
  EXPECT_EQ(manager.Wait(), kExitOk);
  reader->Say("end");
  EXPECT_EQ(reader->Wait(), 3);
  EXPECT_THAT(reader->Output(), Not(HasSubstr("told"))) << "once a change";
}

TEST_F(ManagerTest, AProcessThatHasJustStartedIsNotEndedByTheSignal) {
  Mount({"a"}, "");
  Label("a");
  const auto reader =
      Reader("echo ready; read x; " + std::string(kCountsSignals));
  ASSERT_TRUE(reader->SaysLineWith("ready"));
  TestProcess& manager = Start({});
  ASSERT_TRUE(manager.SaysLineWith("does not yet handle signal 1"));
  reader->Say("install the handler");
  EXPECT_TRUE(reader->SaysLineWith("told"));
}

// Sent while the agent starts, and once it runs.
TEST_F(ManagerTest, OurAgentLivesOnAndReadsItsConfigAnew) {
  Mount({"a", "b"}, "version: v1");
  fs::create_symlink(source_ + "/b", link_);
  Label("a");
  TestProcess& manager = Start({});
  TestProcess agent(
      RONDO,
      {name_, "--fail-on-init-error=false", "--listen=", "--state-dir=",
       "--kubelet-socket=", "--device-plugin-dir=" + Path("device-plugins"),
       "--cdi-dir=" + Path("cdi"), "--config-file=" + link_},
      {});
  // By then the manager may have found it or not.
  ASSERT_TRUE(agent.SaysLineWith("rondo agent"));
  ASSERT_TRUE(manager.SaysLineWith(" -> " + source_ + "/a"));
  ChangeLabel("b");
  EXPECT_TRUE(agent.SaysLineWith("SIGHUP: reading config and GPUs anew"));
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(), kExitOk) << agent.Output();
}

TEST_F(ManagerTest, WithoutTheProcessItGoesOn) {
  Mount({"a", "b"}, "");
  Label("a");
  TestProcess& manager = Start({});
  ASSERT_TRUE(manager.SaysLineWith("no process " + name_));
  ChangeLabel("b");
  ASSERT_TRUE(manager.SaysLineWith("no process " + name_));
  EXPECT_EQ(Key(), "b");
}

TEST_F(ManagerTest, AnotherSignalToAnotherProcessOrNone) {
  Mount({"a", "b"}, "");
  Label("a");
  const auto reader =
      Reader("trap 'exit 7' USR1; echo ready; while :; do read x; done");
  ASSERT_TRUE(reader->SaysLineWith("ready"));
  EXPECT_EQ(Oneshot({}), kExitOk);
  Label("b");
  EXPECT_EQ(Start({"ONESHOT=true", "SIGNAL=10"}).Wait(), kExitOk);
  EXPECT_EQ(reader->Wait(), 7);
}

TEST_F(ManagerTest, AnUnknownLabelEndsTheSidecarAndTheOldLinkStays) {
  Mount({"a"}, "");
  Label("a");
  TestProcess& manager = Start({"SEND_SIGNAL=false"});
  ASSERT_TRUE(manager.SaysLineWith(" -> " + source_ + "/a"));
  ChangeLabel("typo");
  EXPECT_TRUE(manager.SaysLineWith("specified config typo does not exist"));
  EXPECT_EQ(manager.Wait(), kExitFailure);
  EXPECT_EQ(Key(), "a");
}

TEST_F(ManagerTest, AnEditIsToldAndAConfigThatGoesLeavesACopy) {
  Mount({"a"}, "one");
  Label("a");
  TestProcess& manager = Start({});
  ASSERT_TRUE(manager.SaysLineWith("no process"));
  const auto reader = Reader(kCountsSignals);
  ASSERT_TRUE(reader->SaysLineWith("ready"));
  Mount({"a"}, "two");
  EXPECT_TRUE(reader->SaysLineWith("told"));
  EXPECT_EQ(ReadFile(link_).value_or(""), "two");
  Mount({"b"}, "other");
  ASSERT_TRUE(manager.SaysLineWith("specified config a does not exist"));
  ASSERT_TRUE(manager.SaysLineWith("a copy of the config that is gone"));
  EXPECT_EQ(ReadFile(link_).value_or(""), "two");
  Mount({"a", "b"}, "three");
  EXPECT_TRUE(reader->SaysLineWith("told"));
  EXPECT_EQ(Key(), "a");
}

TEST_F(ManagerTest, AnInitContainerThatIsStoppedHasNotSucceeded) {
  Mount({"a"}, "");
  server_.Answer(503, "away");
  TestProcess& manager = Start({"ONESHOT=true"});
  ASSERT_TRUE(manager.SaysLineWith("trying again"));
  manager.Signal(SIGTERM);
  EXPECT_EQ(manager.Wait(), kExitFailure);
  EXPECT_EQ(Key(), "(no link)");
}

TEST(Process, IsFoundByItsWholeNameOnly) {
  const std::string name = absl::StrCat("rondo-test-", getpid());
  EXPECT_FALSE(FindProcess(name));
  TestProcess process("/bin/sh", {name, "-c", "echo ready; read x"}, {});
  ASSERT_TRUE(process.SaysLineWith("ready"));
  const auto pid = FindProcess(name);
  ASSERT_TRUE(pid);
  EXPECT_FALSE(HandlesSignal(*pid, SIGUSR1));
  EXPECT_FALSE(FindProcess(name.substr(0, name.size() - 1)));
  process.Signal(SIGKILL);
  EXPECT_EQ(process.Wait(), 128 + SIGKILL);
  EXPECT_FALSE(FindProcess(name));
  EXPECT_FALSE(HandlesSignal(*pid, SIGUSR1));
}

}  // namespace
}  // namespace rondo::configmanager
