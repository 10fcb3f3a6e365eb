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

// Scrapers and probes are few; more at once is a mistake or worse.
constexpr unsigned kMaxConnections = 64;
// One peer that opens many and says nothing must not lock out kubelet's probes.
constexpr unsigned kMaxConnectionsOfOneAddress = 16;
constexpr unsigned kIdleTimeoutSeconds = 30;

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
  const int on = 1, off = 0;
  if (dual) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (!fd.ok() ||
      bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0 ||
      listen(fd.get(), kMaxConnections) != 0)
    return absl::UnavailableError(absl::StrCat(
        "listen on ", address.host, ":", address.port, ": ", strerror(errno)));
  return fd;
}

MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url,
                     const char* method, const char*, const char*, size_t*,
                     void** seen) {
  // The first call has the headers only; a body, if one is sent, is not for us.
  static int marker;
  if (*seen == nullptr) {
    *seen = &marker;
    return MHD_YES;
  }
  const HttpResponse answer =
      static_cast<HttpServer*>(self)->Respond(method, url);
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()),
      MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
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
