// SPDX-License-Identifier: Apache-2.0
#include "metrics/http_server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace rondo::metrics {
namespace {

// Scrapers and probes are few. So many are taken for the sake of kubelet's
// probes: who would lock them out by saying nothing needs sixteen addresses,
// and needs to come back every few seconds.
constexpr unsigned kMaxConnections = 1024;
constexpr unsigned kMaxConnectionsOfOneAddress = 64;
constexpr unsigned kIdleTimeoutSeconds = 5;
// A request's headers, then the answer's; those of scrapers have 1 KiB.
constexpr size_t kConnectionBytes = 8 << 10;
// The kernel's; it takes twice as much. Counted as the agent's by its cgroup.
constexpr int kSendBufferBytes = 64 << 10;

absl::StatusOr<UniqueFd> Listen(const ListenAddress& address) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  const auto port = htons(static_cast<uint16_t>(address.port));
  bool dual = false;
  if (inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    size = sizeof(v4);
  } else if (address.host.empty() ||
             inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr) == 1) {
    dual = address.host.empty();
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    size = sizeof(v6);
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "listen address '", address.host, "' is not an IP address"));
  }
  UniqueFd fd(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.ok() && dual) {  // a kernel without IPv6
    v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    size = sizeof(v4);
    dual = false;
    fd.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  const int on = 1, off = 0, send_bytes = kSendBufferBytes;
  if (dual) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // Connections have it from the listener.
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
  if (!fd.ok() ||
      bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0 ||
      listen(fd.get(), kMaxConnections) != 0)
    return absl::UnavailableError(absl::StrCat(
        "listen on ", address.host, ":", address.port, ": ", strerror(errno)));
  return fd;
}

// What is sent, until all of it is or the peer is gone.
struct Body {
  Body(HttpServer* s, std::string t) : server(s), text(std::move(t)) {
    server->NoteBody(static_cast<int64_t>(text.size()));
  }
  ~Body() { server->NoteBody(-static_cast<int64_t>(text.size())); }
  static void Free(void* self) { delete static_cast<Body*>(self); }

  HttpServer* const server;
  std::string text;
};

MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url,
                     const char* method, const char*, const char*, size_t*,
                     void** seen) {
  // The first call has the headers only; a body, if one is sent, is not for us.
  static int marker;
  if (*seen == nullptr) {
    *seen = &marker;
    return MHD_YES;
  }
  auto* server = static_cast<HttpServer*>(self);
  const HttpResponse answer = server->Admit(server->Respond(method, url));
  auto body = std::make_unique<Body>(server, answer.body);
  MHD_Response* response =
      MHD_create_response_from_buffer_with_free_callback_cls(
          body->text.size(), body->text.data(), &Body::Free, body.get());
  if (response == nullptr) return MHD_NO;
  body.release();  // Free has it
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                          answer.content_type.c_str());
  const MHD_Result result = MHD_queue_response(
      connection, static_cast<unsigned>(answer.code), response);
  MHD_destroy_response(response);
  return result;
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  ListenAddress address;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(text.substr(colon + 1), &address.port) ||
      address.port < 0 || address.port > 65535)
    return absl::InvalidArgumentError(absl::StrCat(
        "listen address '", text, "' is not HOST:PORT, such as :9400"));
  absl::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  address.host = std::string(host);
  return address;
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const ListenAddress& address, std::map<std::string, Handler> routes) {
  RONDO_ASSIGN_OR_RETURN(UniqueFd fd, Listen(address));
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(routes)));
  server->daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr,
      &OnRequest, server.get(), MHD_OPTION_LISTEN_SOCKET, fd.get(),
      MHD_OPTION_CONNECTION_LIMIT, kMaxConnections,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, kMaxConnectionsOfOneAddress,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleTimeoutSeconds, MHD_OPTION_END);
  if (server->daemon_ == nullptr)
    return absl::UnavailableError("libmicrohttpd cannot start");
  fd.Release();  // MHD_stop_daemon closes it
  return server;
}

HttpServer::HttpServer(std::map<std::string, Handler> routes)
    : routes_(std::move(routes)) {}

HttpServer::~HttpServer() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

int HttpServer::port() const {
  // MHD does not know the port of a socket that it was given.
  const MHD_DaemonInfo* info =
      MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_LISTEN_FD);
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  getsockname(info->listen_fd, reinterpret_cast<sockaddr*>(&storage), &size);
  return ntohs(storage.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6&>(storage).sin6_port
                   : reinterpret_cast<sockaddr_in&>(storage).sin_port);
}

HttpResponse HttpServer::Admit(HttpResponse answer) const {
  if (answer.body.size() <= kSmallBody ||
      waiting_bytes_ + answer.body.size() <= kMaxWaitingBytes)
    return answer;
  return {.code = 503, .body = "too many answers wait for their readers\n"};
}

HttpResponse HttpServer::Respond(absl::string_view method,
                                 absl::string_view path) const {
  if (method != "GET" && method != "HEAD")
    return {.code = 405, .body = "only GET and HEAD\n"};
  const auto route = routes_.find(std::string(path));
  if (route != routes_.end()) return route->second();
  std::string known;
  for (const auto& [name, handler] : routes_)
    absl::StrAppend(&known, " ", name);
  return {
      .code = 404,
      .body = absl::StrCat("nothing at ", path, "; there is:", known, "\n")};
}

}  // namespace rondo::metrics
