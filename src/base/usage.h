// SPDX-License-Identifier: Apache-2.0
//
// How a program answers words that it cannot use: one line on the error stream
// with what is wrong, what may have been meant and where the options are told,
// and kExitUsage. Single-threaded; never throws.

#ifndef RONDO_BASE_USAGE_H_
#define RONDO_BASE_USAGE_H_

#include <iosfwd>
#include <string>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace rondo {

// What every --help ends with, where a program's own status is not passed on.
inline constexpr char kExitHelp[] =
    "Exit status: 0 fine, 1 a failure that may pass (try again), 2 bad usage "
    "or configuration.";

// "rondo run: --weight needs a value (`rondo run --help` tells the options)"
std::string UsageError(absl::string_view program, absl::string_view what);

// What App::parse threw: help goes to out and is kExitOk, anything else is
// kExitUsage. The app's name is the program's.
int ReportParse(const CLI::App& app, const CLI::ParseError& error,
                std::ostream& out, std::ostream& err);

}  // namespace rondo

#endif  // RONDO_BASE_USAGE_H_
