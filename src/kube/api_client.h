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
    // Of a Get or Post that goes on slowly, or not at all. One that goes on
    // well, as a long list does, may take twelve times as long.
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

  // An object of the API server, as a whole answer, a part of a list or a line
  // of a watch. It stores 1.5 MiB of one, and 3 MiB can be sent to it; as JSON
  // a byte may take six.
  static constexpr size_t kMostObject = 32 << 20;

  // GETs path ("/api/v1/pods") and hands on the body as it comes, however long
  // it gets. An error of on_bytes ends it, and is its result.
  using OnBytes = std::function<absl::Status(absl::string_view bytes)>;
  absl::Status Get(const std::string& path, const OnBytes& on_bytes);

  // GETs a watch and calls on_line for each line of it, until the server ends
  // the stream (OK), an error, one of on_line included, or Cancel (Cancelled).
  // A line over kMostObject ends it with ResourceExhausted.
  using OnLine = std::function<absl::Status(absl::string_view line)>;
  absl::Status Watch(const std::string& path, const OnLine& on_line);

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
