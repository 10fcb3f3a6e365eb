// SPDX-License-Identifier: Apache-2.0
//
// The voice of `rondo demo`: numbered scenes, and lines of what was done and
// what came of it. One thread.

#ifndef RONDO_DEMO_NARRATOR_H_
#define RONDO_DEMO_NARRATOR_H_

#include <iostream>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace rondo::demo {

class Narrator {
 public:
  void Scene(absl::string_view title) {
    std::cout << "\n" << ++scene_ << ". " << title << "\n";
  }
  void Show(absl::string_view what, absl::string_view result) {
    std::cout << absl::StreamFormat("   %-34s %s\n", what, result);
  }

 private:
  int scene_ = 0;
};

}  // namespace rondo::demo

#endif  // RONDO_DEMO_NARRATOR_H_
