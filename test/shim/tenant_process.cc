// SPDX-License-Identifier: Apache-2.0

#include "test/shim/tenant_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace rondo {

RunDir::RunDir() {
  char name[] = "/tmp/rondo-shim-XXXXXX";
  if (mkdtemp(name) == nullptr) abort();
  chmod(name, 0755);
  path_ = name;
}

RunDir::~RunDir() { std::filesystem::remove_all(path_); }

std::string RunDir::Socket(const std::string& uuid, int n) {
  const std::string folder = path_ + "/" + uuid + "-" + std::to_string(n);
  mkdir(folder.c_str(), 0755);
  return folder + "/agent.sock";
}

TenantProcess::TenantProcess(const RunDir& run_dir, const Options& options) {
  signal(SIGPIPE, SIG_IGN);
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) abort();
  err_ = memfd_create("errors", MFD_CLOEXEC);
  std::vector<std::string> env = {"LD_PRELOAD=" + options.preload,
                                  "RONDO_RUN_DIR=" + run_dir.path(),
                                  "PATH=/usr/bin:/bin"};
  if (!options.clear_slots) env.push_back("RONDO_SLOTS=" + options.slots);
  for (const auto& [name, value] : options.env) {
    env.push_back(name + "=" + value);
  }
  std::vector<char*> envp, argv;
  for (std::string& e : env) envp.push_back(e.data());
  envp.push_back(nullptr);
  std::vector<std::string> args = options.args;
  args.insert(args.begin(), options.program);
  for (std::string& a : args) argv.push_back(a.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err_, 2);
    close(in[1]);  // `prepare` may fork: nobody else is to keep the input open
    close(out[0]);
    if (options.prepare != nullptr) options.prepare();
    execve(options.program.c_str(), argv.data(), envp.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  in_ = in[1];
  out_ = out[0];
}

TenantProcess::~TenantProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (in_ >= 0) close(in_);
  close(out_);
  close(err_);
}

void TenantProcess::Send(const std::string& command) {
  const std::string line = command + "\n";
  if (write(in_, line.data(), line.size()) < 0) buffered_.clear();
}

std::string TenantProcess::ReadLine() {
  for (;;) {
    const size_t end = buffered_.find('\n');
    if (end != std::string::npos) {
      const std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return line;
    }
    pollfd p{out_, POLLIN, 0};
    if (poll(&p, 1, 20000) <= 0) return "<gone>";
    char chunk[4096];
    const ssize_t n = read(out_, chunk, sizeof chunk);
    if (n <= 0) return "<gone>";
    buffered_.append(chunk, static_cast<size_t>(n));
  }
}

std::string TenantProcess::Do(const std::string& command) {
  Send(command);
  return ReadLine();
}

void TenantProcess::Kill(int signal) { kill(pid_, signal); }

int TenantProcess::Finish() {
  close(in_);
  in_ = -1;
  int status = -1;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

std::string TenantProcess::Errors() {
  std::string text(1 << 16, '\0');
  const ssize_t n = pread(err_, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

}  // namespace rondo
