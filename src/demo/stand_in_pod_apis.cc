// SPDX-License-Identifier: Apache-2.0
#include "demo/stand_in_pod_apis.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <utility>

#include "proto/podresources/v1.grpc.pb.h"
#include "proto/pods/v1alpha1.grpc.pb.h"

namespace rondo::demo {

class StandInPodApis::Impl {
 public:
  Impl(std::string holders, std::string pods)
      : holders_socket_(std::move(holders)), pods_socket_(std::move(pods)) {}
  ~Impl() {
    Serve(false, holders_, holders_socket_, holders_server_);
    Serve(false, pods_, pods_socket_, pods_server_);
  }

  void ServeHolders(bool on) {
    Serve(on, holders_, holders_socket_, holders_server_);
  }
  void ServePods(bool on) { Serve(on, pods_, pods_socket_, pods_server_); }

  std::mutex mutex;
  bool ready = true;
  int lists = 0;
  std::map<std::string, std::vector<std::string>> devices;
  std::map<std::string, std::map<std::string, std::string>> annotations;
  std::set<std::string> ended;

 private:
  using Server = std::unique_ptr<grpc::Server>;

  static void Serve(bool on, grpc::Service& service, const std::string& socket,
                    Server& server) {
    if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
    server.reset();
    unlink(socket.c_str());
    if (!on) return;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket,
                             grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
  }

  class Holders : public v1::PodResourcesLister::Service {
   public:
    explicit Holders(Impl& impl) : impl_(impl) {}
    grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                      v1::ListPodResourcesResponse* response) override {
      std::lock_guard lock(impl_.mutex);
      ++impl_.lists;
      for (const auto& [name, ids] : impl_.devices) {
        v1::PodResources& pod = *response->add_pod_resources();
        pod.set_name(name);
        pod.set_namespace_("default");
        v1::ContainerResources& container = *pod.add_containers();
        container.set_name("main");
        if (ids.empty()) continue;
        v1::ContainerDevices& devices = *container.add_devices();
        devices.set_resource_name("nvidia.com/gpu");
        for (const std::string& id : ids) devices.add_device_ids(id);
      }
      return grpc::Status::OK;
    }

   private:
    Impl& impl_;
  };

  v1alpha1::Pod MakePod(
      const std::string& name,
      const std::map<std::string, std::string>& annotations) const {
    v1alpha1::Pod pod;
    pod.mutable_status()->set_phase(ended.contains(name) ? "Succeeded"
                                                         : "Running");
    v1alpha1::ObjectMeta& meta = *pod.mutable_metadata();
    meta.set_name(name);
    meta.set_namespace_("default");
    meta.set_uid(name + "-uid");
    meta.mutable_creation_timestamp()->set_seconds(1);
    for (const auto& [key, value] : annotations)
      (*meta.mutable_annotations())[key] = value;
    return pod;
  }

  class Pods : public v1alpha1::Pods::Service {
   public:
    explicit Pods(Impl& impl) : impl_(impl) {}
    grpc::Status ListPods(grpc::ServerContext*,
                          const v1alpha1::ListPodsRequest*,
                          v1alpha1::ListPodsResponse* response) override {
      std::lock_guard lock(impl_.mutex);
      if (!impl_.ready)
        return {grpc::StatusCode::FAILED_PRECONDITION,
                "Kubelet is initializing"};
      for (const auto& [name, annotations] : impl_.annotations)
        *response->add_pods() = impl_.MakePod(name, annotations);
      return grpc::Status::OK;
    }
    // Of what changes later it tells nothing, as the real one of annotations.
    grpc::Status WatchPods(
        grpc::ServerContext*, const v1alpha1::WatchPodsRequest*,
        grpc::ServerWriter<v1alpha1::WatchPodsEvent>* events) override {
      std::lock_guard lock(impl_.mutex);
      v1alpha1::WatchPodsEvent event;
      event.set_type(v1alpha1::ADDED);
      for (const auto& [name, annotations] : impl_.annotations) {
        *event.mutable_pod() = impl_.MakePod(name, annotations);
        events->Write(event);
      }
      event.clear_pod();
      event.set_type(v1alpha1::INITIAL_SYNC_COMPLETE);
      events->Write(event);
      return grpc::Status::OK;
    }

   private:
    Impl& impl_;
  };

  const std::string holders_socket_, pods_socket_;
  Holders holders_{*this};
  Pods pods_{*this};
  Server holders_server_, pods_server_;
};

StandInPodApis::StandInPodApis(std::string pod_resources_socket,
                               std::string pods_api_socket)
    : impl_(std::make_unique<Impl>(std::move(pod_resources_socket),
                                   std::move(pods_api_socket))) {}
StandInPodApis::~StandInPodApis() = default;

void StandInPodApis::ServeHolders(bool on) { impl_->ServeHolders(on); }
void StandInPodApis::ServePods(bool on) { impl_->ServePods(on); }

void StandInPodApis::SetReady(bool ready) {
  std::lock_guard lock(impl_->mutex);
  impl_->ready = ready;
}
void StandInPodApis::Hold(const std::string& pod,
                          std::vector<std::string> device_ids) {
  std::lock_guard lock(impl_->mutex);
  impl_->devices[pod] = std::move(device_ids);
}
void StandInPodApis::SetPod(const std::string& pod,
                            std::map<std::string, std::string> annotations) {
  std::lock_guard lock(impl_->mutex);
  impl_->annotations[pod] = std::move(annotations);
}
void StandInPodApis::End(const std::string& pod) {
  std::lock_guard lock(impl_->mutex);
  impl_->ended.insert(pod);
}
void StandInPodApis::Remove(const std::string& pod) {
  std::lock_guard lock(impl_->mutex);
  impl_->ended.erase(pod);
  impl_->devices.erase(pod);
  impl_->annotations.erase(pod);
}

int StandInPodApis::lists() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->lists;
}

}  // namespace rondo::demo
