// SPDX-License-Identifier: Apache-2.0
#include "kube/api_client.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace rondo::kube {
namespace {

constexpr size_t kMostOther = 1 << 20;  // of an answer that nobody reads
// A list may be long, and is waited for while it comes: at least so many bytes
// a second on average over the timeout, and not for more than so many timeouts.
constexpr long kSlowestBytes = 16 << 10;
constexpr long kMostTimeouts = 12;

// The functions of libcurl that are used, typed by its own header.
struct Curl {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_reset) easy_reset;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
};

template <typename Function>
bool Resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Never unloaded: curl_global_init cannot be undone safely while other threads
// run.
absl::StatusOr<const Curl*> Load() {
  static Curl curl;
  static std::mutex mutex;
  static bool loaded = false;
  std::lock_guard lock(mutex);
  if (loaded) return &curl;
  void* library = dlopen("libcurl-gnutls.so.4", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr)
    library = dlopen("libcurl.so.4", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr)
    return absl::NotFoundError(
        "libcurl is not installed: install libcurl3-gnutls or libcurl4");
  if (!Resolve(library, "curl_global_init", curl.global_init) ||
      !Resolve(library, "curl_easy_init", curl.easy_init) ||
      !Resolve(library, "curl_easy_cleanup", curl.easy_cleanup) ||
      !Resolve(library, "curl_easy_reset", curl.easy_reset) ||
      !Resolve(library, "curl_easy_setopt", curl.easy_setopt) ||
      !Resolve(library, "curl_easy_perform", curl.easy_perform) ||
      !Resolve(library, "curl_easy_getinfo", curl.easy_getinfo) ||
      !Resolve(library, "curl_easy_strerror", curl.easy_strerror) ||
      !Resolve(library, "curl_slist_append", curl.slist_append) ||
      !Resolve(library, "curl_slist_free_all", curl.slist_free_all))
    return absl::InternalError("libcurl lacks a function that is used");
  if (const CURLcode code = curl.global_init(CURL_GLOBAL_ALL); code != CURLE_OK)
    return absl::InternalError(
        absl::StrCat("curl_global_init: ", curl.easy_strerror(code)));
  loaded = true;
  return &curl;
}

absl::Status FromHttp(long code, absl::string_view body) {
  const std::string text =
      absl::StrCat("API server answered ", code, ": ",
                   absl::StripAsciiWhitespace(body.substr(0, 300)));
  switch (code) {
    case 401:
    case 403:
      return absl::PermissionDeniedError(text);
    case 404:
      return absl::NotFoundError(text);
    case 409:
      return absl::AlreadyExistsError(text);
    case 410:
      return absl::OutOfRangeError(text);
  }
  if (code == 429 || code >= 500) return absl::UnavailableError(text);
  return absl::InternalError(text);
}

}  // namespace

// One request under way. Bytes of a good answer go to on_bytes, if there is
// one; others are kept, for what they say.
struct ApiClient::Transfer {
  const Curl& curl;
  CURL* easy;
  const std::atomic<bool>& cancelled;
  const OnBytes* on_bytes = nullptr;
  std::string body;
  absl::Status refused;  // why the rest of the answer was not wanted

  long HttpCode() const {
    long code = 0;
    curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }

  size_t Take(absl::string_view bytes) {
    if (on_bytes != nullptr && HttpCode() == 200) {
      refused = (*on_bytes)(bytes);
    } else {
      body.append(bytes.data(), bytes.size());
      if (body.size() > kMostOther)
        refused = absl::ResourceExhaustedError("the answer is too large");
    }
    return refused.ok() ? bytes.size() : 0;  // fewer than given: curl gives up
  }

  static size_t OnData(char* data, size_t size, size_t count, void* self) {
    return static_cast<Transfer*>(self)->Take({data, size * count});
  }
  static int OnProgress(void* self, curl_off_t, curl_off_t, curl_off_t,
                        curl_off_t) {
    return static_cast<Transfer*>(self)->cancelled ? 1 : 0;
  }
};

absl::StatusOr<ApiClient::Options> ApiClient::InCluster(
    const std::function<const char*(const char*)>& getenv,
    absl::string_view root) {
  const char* host = getenv("KUBERNETES_SERVICE_HOST");
  const char* port = getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || *host == '\0' || port == nullptr || *port == '\0')
    return absl::NotFoundError(
        "not in a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set");
  const std::string dir =
      PathUnder(root, "/var/run/secrets/kubernetes.io/serviceaccount");
  const bool ipv6 = absl::string_view(host).find(':') != std::string::npos;
  return Options{.base_url = absl::StrCat("https://", ipv6 ? "[" : "", host,
                                          ipv6 ? "]" : "", ":", port),
                 .token_file = dir + "/token",
                 .ca_file = dir + "/ca.crt"};
}

absl::StatusOr<std::unique_ptr<ApiClient>> ApiClient::Create(Options options) {
  RONDO_ASSIGN_OR_RETURN(const Curl* curl, Load());
  std::unique_ptr<ApiClient> client(new ApiClient(std::move(options)));
  client->easy_ = curl->easy_init();
  if (client->easy_ == nullptr)
    return absl::InternalError("curl_easy_init failed");
  return client;
}

ApiClient::ApiClient(Options options) : options_(std::move(options)) {}

ApiClient::~ApiClient() {
  if (easy_ != nullptr) (*Load())->easy_cleanup(easy_);
}

absl::Status ApiClient::Perform(const std::string& path, int timeout_seconds,
                                Transfer& transfer, const std::string* post) {
  const Curl& curl = transfer.curl;
  CURL* easy = transfer.easy;
  curl.easy_reset(easy);
  curl_slist* headers = curl.slist_append(nullptr, "Accept: application/json");
  absl::StatusOr<std::string> token = options_.token;
  if (!options_.token_file.empty()) token = ReadFile(options_.token_file);
  if (!token.ok()) {
    curl.slist_free_all(headers);
    return token.status();
  }
  if (!token->empty())
    headers = curl.slist_append(headers,
                                absl::StrCat("Authorization: Bearer ",
                                             absl::StripAsciiWhitespace(*token))
                                    .c_str());
  if (post != nullptr) {
    headers = curl.slist_append(headers, "Content-Type: application/json");
    curl.easy_setopt(easy, CURLOPT_POSTFIELDS, post->c_str());
    curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(post->size()));
  }
  curl.easy_setopt(easy, CURLOPT_URL, (options_.base_url + path).c_str());
  curl.easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, 5L);
  const long seconds = timeout_seconds;  // 0: for ever
  curl.easy_setopt(easy, CURLOPT_TIMEOUT, seconds * kMostTimeouts);
  curl.easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, kSlowestBytes);
  curl.easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, seconds);
  // A watch may be silent for long; a dead peer must not keep it for ever.
  curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  // The API server is never behind the proxy that HTTPS_PROXY names for the
  // outside.
  curl.easy_setopt(easy, CURLOPT_NOPROXY, "*");
  if (!options_.ca_file.empty())
    curl.easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
  curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::OnData);
  curl.easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl.easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, &Transfer::OnProgress);
  curl.easy_setopt(easy, CURLOPT_XFERINFODATA, &transfer);
  curl.easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  const CURLcode code = curl.easy_perform(easy);
  curl.slist_free_all(headers);
  if (cancelled_) return absl::CancelledError("cancelled");
  if (!transfer.refused.ok()) return Annotate(transfer.refused, path);
  if (code != CURLE_OK)
    return absl::UnavailableError(
        absl::StrCat(options_.base_url, path, ": ", curl.easy_strerror(code)));
  if (const long http = transfer.HttpCode();
      http != 200 && !(post != nullptr && (http == 201 || http == 202)))
    return FromHttp(http, transfer.body);
  return absl::OkStatus();
}

absl::Status ApiClient::Get(const std::string& path, const OnBytes& on_bytes) {
  RONDO_ASSIGN_OR_RETURN(const Curl* curl, Load());
  Transfer transfer{*curl, easy_, cancelled_, &on_bytes};
  return Perform(path, options_.timeout_seconds, transfer);
}

absl::Status ApiClient::Post(const std::string& path, const std::string& body) {
  RONDO_ASSIGN_OR_RETURN(const Curl* curl, Load());
  Transfer transfer{*curl, easy_, cancelled_};
  return Perform(path, options_.timeout_seconds, transfer, &body);
}

absl::Status ApiClient::Watch(const std::string& path, const OnLine& on_line) {
  RONDO_ASSIGN_OR_RETURN(const Curl* curl, Load());
  std::string waiting;  // what came of a line so far
  const OnBytes split = [&](absl::string_view bytes) -> absl::Status {
    size_t begin = 0;
    // Only the new bytes are searched: a line may come in many pieces.
    for (size_t end; (end = bytes.find('\n', begin)) != bytes.npos;
         begin = end + 1) {
      absl::StrAppend(&waiting, bytes.substr(begin, end - begin));
      RONDO_RETURN_IF_ERROR(on_line(waiting));
      waiting.clear();
    }
    waiting.append(bytes.data() + begin, bytes.size() - begin);
    if (waiting.size() > kMostObject)
      return absl::ResourceExhaustedError("a line is too long");
    return absl::OkStatus();
  };
  Transfer transfer{*curl, easy_, cancelled_, &split};
  return Perform(path, /*timeout_seconds=*/0, transfer);
}

}  // namespace rondo::kube
