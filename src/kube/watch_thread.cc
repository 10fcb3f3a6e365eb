// SPDX-License-Identifier: Apache-2.0
#include "kube/watch_thread.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kube/backoff.h"

namespace rondo::kube {
namespace {

class WholeBodyReader : public ListReader {
 public:
  explicit WholeBodyReader(const WatchThread::OnBody& on_body)
      : on_body_(on_body) {}

  absl::Status Add(absl::string_view bytes) override {
    absl::StrAppend(&body_, bytes);
    if (body_.size() > ApiClient::kMostObject)
      return absl::ResourceExhaustedError("the answer is too large");
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Finish() override { return on_body_(body_); }

 private:
  const WatchThread::OnBody& on_body_;
  std::string body_;
};

}  // namespace

WatchThread::OnList WatchThread::WholeBody(OnBody on_body) {
  return [on_body = std::move(on_body)] {
    return std::make_unique<WholeBodyReader>(on_body);
  };
}

WatchThread::WatchThread(std::unique_ptr<ApiClient> client, Options options,
                         OnList on_list, OnLine on_line, OnError on_error)
    : client_(std::move(client)),
      options_(std::move(options)),
      on_list_(std::move(on_list)),
      on_line_(std::move(on_line)),
      on_error_(std::move(on_error)),
      thread_([this] { Run(); }) {}

WatchThread::~WatchThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  client_->Cancel();
  stop_changed_.notify_all();
  thread_.join();
}

absl::Status WatchThread::ListAndWatch() {
  const std::unique_ptr<ListReader> list = on_list_();
  RONDO_RETURN_IF_ERROR(
      client_->Get(options_.list_path,
                   [&](absl::string_view bytes) { return list->Add(bytes); }));
  RONDO_ASSIGN_OR_RETURN(const std::string version, list->Finish());
  told_.clear();
  return client_->Watch(
      absl::StrCat(options_.watch_path, "&resourceVersion=", version),
      [&](absl::string_view line) {
        return line.empty() ? absl::OkStatus() : on_line_(line);
      });
}

void WatchThread::Run() {
  Backoff backoff(options_.first_pause, options_.longest_pause);
  while (true) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = ListAndWatch();
    const auto lasted = std::chrono::steady_clock::now() - start;
    std::unique_lock lock(mutex_);
    if (stop_) return;
    // The server ends a watch every few minutes and tells an old one to start
    // again: neither is an error, and after a good watch there is no pause, in
    // which an edit would go unseen.
    const bool good = status.ok() || absl::IsOutOfRange(status);
    if (std::string text(status.message()); !good && text != told_) {
      told_ = std::move(text);
      on_error_(status);
    }
    if (stop_changed_.wait_for(lock, backoff.After(good, lasted),
                               [this] { return stop_; }))
      return;
  }
}

}  // namespace rondo::kube
