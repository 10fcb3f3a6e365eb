// SPDX-License-Identifier: Apache-2.0
//
// A small client of the Kubernetes API server: GET, watch and POST. Enough for
// an agent that reads its own node and tells events.
//
// libcurl is loaded at run time (curl.h here): a node without API access, or a
// machine without libcurl, pays nothing. Threads: an ApiClient is used by one
// thread at a time; Cancel may be called from any thread. Failure: Unavailable
// where the server cannot be reached or answers 429 or 5xx (try again);
// PermissionDenied for 401 and 403; NotFound for 404; AlreadyExists for 409;
// OutOfRange for 410 Gone (list again); Internal for what is not HTTP. Source:
// Kubernetes API concepts, "Efficient detection of changes".

#ifndef RONDO_KUBE_API_CLIENT_H_
#define RONDO_KUBE_API_CLIENT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rondo::kube {

class ApiClient {
 public:
  struct Options {
    std::string base_url;    // "https://10.0.0.1:443"
    std::string token_file;  // read anew for each request: kubelet rotates it;
                             // empty = no token
    std::string ca_file;     // empty = the system's certificates
    int timeout_seconds = 10;
    std::string token;  // used where token_file is empty
  };

  // What every pod finds: KUBERNETES_SERVICE_HOST and _PORT, and the files of
  // its service account under root. NotFound outside a cluster. getenv is a
  // parameter so that a test needs no environment.
  static absl::StatusOr<Options> InCluster(
      const std::function<const char*(const char*)>& getenv,
      absl::string_view root = "");

  static absl::StatusOr<std::unique_ptr<ApiClient>> Create(Options options);
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // The body of a GET of path ("/api/v1/nodes/n1"), at most 16 MiB.
  absl::StatusOr<std::string> Get(const std::string& path);

  // GETs a watch and calls on_line for each line of it, until the server ends
  // the stream (OK), an error, or Cancel (Cancelled). A line over 4 MiB ends it
  // with ResourceExhausted.
  absl::Status Watch(
      const std::string& path,
      const std::function<void(absl::string_view line)>& on_line);

  // POSTs a JSON object.
  absl::Status Post(const std::string& path, const std::string& body);

  // Ends a running Get, Post or Watch within a second, and every later one at
  // once.
  void Cancel() { cancelled_ = true; }

 private:
  struct Transfer;
  explicit ApiClient(Options options);
  // post: the body of a POST; null for a GET.
  absl::Status Perform(const std::string& path, int timeout_seconds,
                       Transfer& transfer, const std::string* post = nullptr);

  const Options options_;
  void* easy_ = nullptr;  // CURL*
  std::atomic<bool> cancelled_ = false;
};

}  // namespace rondo::kube

#endif  // RONDO_KUBE_API_CLIENT_H_
