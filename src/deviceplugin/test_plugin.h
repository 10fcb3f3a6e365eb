// SPDX-License-Identifier: Apache-2.0
//
// A manager on a loop of its own beside a stand-in kubelet, in a temporary
// folder.

#ifndef RONDO_DEVICEPLUGIN_TEST_PLUGIN_H_
#define RONDO_DEVICEPLUGIN_TEST_PLUGIN_H_

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/event_loop.h"
#include "base/file.h"
#include "demo/stand_in_kubelet.h"
#include "deviceplugin/manager.h"
#include "deviceplugin/test_node.h"
#include "nvml/test_backend.h"

namespace rondo::deviceplugin {

class TestPlugin {
 public:
  TestPlugin()
      : dir_(*TempDir::Create()), kubelet(dir_.path() + "/device-plugins") {
    options.socket_dir = dir_.path() + "/device-plugins";
    options.cdi_dir = dir_.path() + "/cdi";
    options.root = dir_.path() + "/root";
    options.recovery_quiet = std::chrono::milliseconds(100);
    options.probe_interval = std::chrono::milliseconds(100);
    options.retire_min = std::chrono::milliseconds(20);
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~TestPlugin() {
    StopManager();
    loop_.Post([this] { loop_.Stop(); });
    thread_.join();
  }

  // Runs a function on the loop's thread and waits for it.
  template <typename Function>
  auto OnLoop(Function function) {
    std::packaged_task<decltype(function())()> task(std::move(function));
    auto result = task.get_future();
    loop_.Post([&task] { task(); });
    return result.get();
  }

  absl::Status Apply(config::Plan plan, const GpuList& gpus) {
    plan.flags.kubelet_socket = kubelet.socket_path();
    return OnLoop([&] {
      if (manager_ == nullptr)
        manager_ = std::make_unique<Manager>(loop_, backend, options);
      return manager_->Apply(plan, gpus);
    });
  }
  void StopManager() {
    OnLoop([this] {
      manager_.reset();
      return 0;
    });
  }
  Manager& manager() { return *manager_; }
  ResourceStats Stats(const std::string& resource) {
    for (const ResourceStats& stats : manager_->Snapshot().resources) {
      if (stats.name == resource) return stats;
    }
    return {};
  }
  const std::string& dir() const { return dir_.path(); }

 private:
  TempDir dir_;
  EventLoop loop_;
  std::thread thread_;
  std::unique_ptr<Manager> manager_;

 public:
  ManagerOptions options;
  nvml::FakeBackend backend;
  demo::StandInKubelet kubelet;
};

}  // namespace rondo::deviceplugin

#endif  // RONDO_DEVICEPLUGIN_TEST_PLUGIN_H_
