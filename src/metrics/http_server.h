// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP server for scrapes, probes and the API: GET and HEAD of fixed
// paths. libmicrohttpd underneath, one thread of its own; handlers run on that
// thread.
//
// Peers are anybody who reaches the port. 1024 connections at once, 64 of one
// address; one that says nothing, or takes nothing, for 5 s is closed. All that
// they can make the server hold: 10 MiB for connections, 16 MiB of answers that
// nobody takes (then 503, but for answers of a KiB: a probe's is always given),
// and 128 KiB of the kernel's for each connection that takes no answer.
//
// Failure: Start is InvalidArgument for a malformed address, Unavailable (with
// the reason) where it cannot listen. A handler cannot fail: it returns a
// response with a code.

#ifndef RONDO_METRICS_HTTP_SERVER_H_
#define RONDO_METRICS_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct MHD_Daemon;

namespace rondo::metrics {

struct HttpResponse {
  int code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// "[host]:port" as in ":9400", "127.0.0.1:9400", "[::1]:0". No host = all
// addresses of both families; port 0 = any.
struct ListenAddress {
  std::string host;
  int port = 0;
};
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

class HttpServer {
 public:
  using Handler = std::function<HttpResponse()>;

  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const ListenAddress& address, std::map<std::string, Handler> routes);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port that it listens on, also when 0 was asked for.
  int port() const;

  // The response to a request, as the server would give it. Pure but for the
  // handler.
  HttpResponse Respond(absl::string_view method, absl::string_view path) const;

  // For the server's own thread: whether there is room for the answer (else
  // what is said instead), and what is held.
  HttpResponse Admit(HttpResponse answer) const;
  void NoteBody(int64_t bytes) {
    waiting_bytes_ += static_cast<uint64_t>(bytes);
  }

 private:
  static constexpr uint64_t kMaxWaitingBytes = 16 << 20;
  static constexpr size_t kSmallBody = 1 << 10;

  explicit HttpServer(std::map<std::string, Handler> routes);

  const std::map<std::string, Handler> routes_;
  uint64_t waiting_bytes_ = 0;  // bodies not yet sent
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace rondo::metrics

#endif  // RONDO_METRICS_HTTP_SERVER_H_
