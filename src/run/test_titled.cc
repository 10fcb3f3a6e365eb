// SPDX-License-Identifier: Apache-2.0
//
// A daemon that shows a title in place of its arguments and environment, as
// many do: test_titled CMD... waits for a line on standard input, then becomes
// CMD with the environment that it was started with.

#include <unistd.h>

#include <cstring>
#include <iostream>
#include <string>
#include <vector>

int main(int, char** argv) {
  std::vector<std::string> words, environment;
  char* end = argv[0];
  for (char** word = argv; *word != nullptr; ++word) {
    words.emplace_back(*word);
    end = *word + strlen(*word);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
    end = *entry + strlen(*entry);
  }
  memset(argv[0], 0, static_cast<size_t>(end - argv[0]));
  argv[0][0] = 'd';
  std::string line;
  std::getline(std::cin, line);
  std::vector<char*> arguments, variables;
  for (size_t i = 1; i < words.size(); ++i)
    arguments.push_back(words[i].data());
  arguments.push_back(nullptr);
  for (std::string& entry : environment) variables.push_back(entry.data());
  variables.push_back(nullptr);
  return execve(arguments[0], arguments.data(), variables.data());
}
