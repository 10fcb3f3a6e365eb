// SPDX-License-Identifier: Apache-2.0
//
// A program under librondo.so, driven line by line (tenant.cc), and the folder
// that stands for /run/rondo. For one test, one thread.

#ifndef RONDO_TEST_SHIM_TENANT_PROCESS_H_
#define RONDO_TEST_SHIM_TENANT_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace rondo {

inline constexpr char kGpu[] = "GPU-11111111-2222-3333-4444-555555555555";
inline constexpr char kSecondGpu[] = "GPU-66666666-7777-8888-9999-000000000000";

// A folder of its own, removed at the end.
class RunDir {
 public:
  RunDir();
  ~RunDir();
  const std::string& path() const { return path_; }
  // Where the agent of a slot listens; makes its folder.
  std::string Socket(const std::string& uuid, int n);

 private:
  std::string path_;
};

class TenantProcess {
 public:
  struct Options {
    std::string program = RONDO_TEST_TENANT;
    std::string preload = RONDO_TEST_LIBRONDO;
    std::vector<std::string> args;
    std::string slots = std::string(kGpu) + "::0";
    std::map<std::string, std::string> env;  // besides what injection sets
    bool clear_slots = false;                // no RONDO_SLOTS
    // Runs in the child just before exec.
    void (*prepare)() = nullptr;
  };

  TenantProcess(const RunDir& run_dir, const Options& options);
  explicit TenantProcess(const RunDir& run_dir)
      : TenantProcess(run_dir, Options()) {}
  ~TenantProcess();  // kills it if it still runs

  // One command, its answer; "<gone>" when the program ends or hangs (20 s).
  std::string Do(const std::string& command);
  // Writes a command without reading its answer.
  void Send(const std::string& command);
  std::string ReadLine();

  pid_t pid() const { return pid_; }
  void Kill(int signal);
  // Closes its input, waits; the wait status.
  int Finish();
  // What it wrote to standard error until now.
  std::string Errors();

 private:
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string buffered_;
};

}  // namespace rondo

#endif  // RONDO_TEST_SHIM_TENANT_PROCESS_H_
