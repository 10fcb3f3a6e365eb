// SPDX-License-Identifier: Apache-2.0
#include "run/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/unique_fd.h"

namespace rondo::run {

void CutLog(int fd, const std::string& path, int64_t most_bytes) {
  struct stat st {};
  // Who starts the arbiter by hand may have given it a terminal.
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= most_bytes)
    return;
  if (rename(path.c_str(), (path + ".1").c_str()) == 0) {
    const UniqueFd next(
        open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (next.ok() && dup2(next.get(), fd) == fd) return;
  }
  // It is written by appending: what comes next is at the start.
  [[maybe_unused]] const int emptied = ftruncate(fd, 0);
}

}  // namespace rondo::run
