// SPDX-License-Identifier: Apache-2.0
#include "metrics/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"

namespace rondo::metrics {
namespace {

std::unique_ptr<HttpServer> StartServer() {
  auto server = HttpServer::Start(
      {.host = "127.0.0.1", .port = 0},
      {{"/healthz", [] { return HttpResponse{.body = "ok\n"}; }},
       {"/readyz", [] { return HttpResponse{.code = 503, .body = "no\n"}; }}});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

sockaddr_in Loopback(uint32_t host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl((INADDR_LOOPBACK & 0xffffff00) + host);
  return address;
}

// A connection from 127.0.0.<host>; not ok() if there is none.
UniqueFd Connect(int port, uint32_t host = 1) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in from = Loopback(host, 0), to = Loopback(1, port);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)) !=
          0 ||
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) !=
          0)
    fd.Reset();
  return fd;
}

// The whole answer to one request on a connection of its own.
std::string Talk(int port, const std::string& request, uint32_t host = 1) {
  const UniqueFd fd = Connect(port, host);
  if (!fd.ok()) return "no connection";
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return "no request";
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = read(fd.get(), buffer, sizeof(buffer))) > 0;)
    answer.append(buffer, static_cast<size_t>(n));
  return answer;
}

std::string Request(const std::string& method, const std::string& path) {
  return absl::StrCat(method, " ", path,
                      " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

// Not closed by the other side.
bool Open(const UniqueFd& fd) {
  char byte;
  return recv(fd.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

TEST(HttpServer, ServesItsRoutesAndNothingElse) {
  auto server = StartServer();
  struct Row {
    std::string request, status, body;
  };
  EXPECT_EQ(Talk(server->port(), "nonsense\r\n\r\n"), "") << "closed";
  const Row rows[] = {
      {Request("GET", "/healthz"), "HTTP/1.1 200", "ok\n"},
      {Request("GET", "/healthz?x=1"), "HTTP/1.1 200", "ok\n"},
      {Request("GET", "/readyz"), "HTTP/1.1 503", "no\n"},
      {Request("GET", "/../etc/passwd"), "HTTP/1.1 404",
       "nothing at /../etc/passwd; there is: /healthz /readyz\n"},
      {Request("DELETE", "/healthz"), "HTTP/1.1 405", "only GET and HEAD\n"},
  };
  for (const Row& row : rows) {
    const std::string answer = Talk(server->port(), row.request);
    EXPECT_EQ(answer.substr(0, row.status.size()), row.status) << row.request;
    if (!row.body.empty()) {
      EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), row.body);
    }
  }
}

TEST(HttpServer, OnePeerCannotLockOutTheOthers) {
  auto server = StartServer();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(Connect(server->port()));
    ASSERT_TRUE(silent.back().ok());
  }
  const std::string answer =
      Talk(server->port(), Request("GET", "/healthz"), /*host=*/2);
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 200");
  EXPECT_EQ(std::count_if(silent.begin(), silent.end(), Open), 64)
      << "of one address";
}

TEST(HttpServer, SilentPeersOfSeveralAddressesCannotLockOutAProbe) {
  auto server = StartServer();
  std::vector<UniqueFd> silent;
  for (uint32_t host = 2; host <= 7; ++host) {
    for (int i = 0; i < 60; ++i) {
      silent.push_back(Connect(server->port(), host));
      ASSERT_TRUE(silent.back().ok());
      ASSERT_EQ(send(silent.back().get(), "G", 1, MSG_NOSIGNAL), 1);
    }
  }
  const std::string answer = Talk(server->port(), Request("GET", "/healthz"));
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 200");
  EXPECT_TRUE(std::all_of(silent.begin(), silent.end(), Open))
      << "the probe did not wait for one of them to go";
}

TEST(HttpServer, AnswersThatNobodyTakesAreBounded) {
  auto started = HttpServer::Start(
      {.host = "127.0.0.1", .port = 0},
      {{"/metrics",
        [] { return HttpResponse{.body = std::string(4 << 20, 'x')}; }},
       {"/healthz", [] { return HttpResponse{.body = "ok\n"}; }}});
  ASSERT_TRUE(started.ok());
  const auto& server = *started;
  const std::string request = Request("GET", "/metrics");
  std::vector<UniqueFd> deaf;
  char first[13];
  for (int i = 0; i < 6; ++i) {
    deaf.push_back(Connect(server->port(), 2));
    ASSERT_TRUE(deaf.back().ok());
    ASSERT_GT(send(deaf.back().get(), request.data(), request.size(), 0), 0);
    // That it has begun, and no more.
    ASSERT_EQ(recv(deaf.back().get(), first, 12, MSG_WAITALL), 12);
    first[12] = 0;
    EXPECT_STREQ(first, i < 4 ? "HTTP/1.1 200" : "HTTP/1.1 503");
  }
  EXPECT_EQ(Talk(server->port(), Request("GET", "/healthz")).substr(0, 12),
            "HTTP/1.1 200");
  // One that takes it makes room.
  char buffer[1 << 16];
  while (read(deaf[0].get(), buffer, sizeof(buffer)) > 0) continue;
  EXPECT_EQ(Talk(server->port(), request).substr(0, 12), "HTTP/1.1 200");
}

TEST(HttpServer, APortInUseIsAnError) {
  auto first = StartServer();
  const auto second =
      HttpServer::Start({.host = "127.0.0.1", .port = first->port()}, {});
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

TEST(ParseListenAddress, TakesWhatAFlagMayHold) {
  EXPECT_EQ(ParseListenAddress(":9400")->port, 9400);
  EXPECT_EQ(ParseListenAddress(":9400")->host, "");
  EXPECT_EQ(ParseListenAddress("127.0.0.1:0")->host, "127.0.0.1");
  EXPECT_EQ(ParseListenAddress("[::1]:80")->host, "::1");
  for (const char* bad : {"", "9400", ":", ":x", ":65536", ":-1"})
    EXPECT_FALSE(ParseListenAddress(bad).ok()) << bad;
  EXPECT_FALSE(HttpServer::Start({.host = "localhosst", .port = 0}, {}).ok());
}

}  // namespace
}  // namespace rondo::metrics
