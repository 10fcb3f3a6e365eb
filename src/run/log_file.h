// SPDX-License-Identifier: Apache-2.0
//
// Bounds the arbiter's log. It is the arbiter's standard error, so that what
// libraries and a crash have to say stands in it too.

#ifndef RONDO_RUN_LOG_FILE_H_
#define RONDO_RUN_LOG_FILE_H_

#include <cstdint>
#include <string>

namespace rondo::run {

// Where fd, which writes to the file of that path, is past most_bytes: the file
// becomes <path>.1, in place of an older one, and fd writes to a new one. Where
// that cannot be (the folder was removed), the file is emptied. One thread;
// others may write meanwhile.
void CutLog(int fd, const std::string& path, int64_t most_bytes);

}  // namespace rondo::run

#endif  // RONDO_RUN_LOG_FILE_H_
