// SPDX-License-Identifier: Apache-2.0
//
// What an unquoted YAML scalar means: the resolution rules of go-yaml v2, which
// are YAML 1.1 without base-60 numbers. Pure; any thread.

#ifndef RONDO_CONFIG_YAML_SCALAR_H_
#define RONDO_CONFIG_YAML_SCALAR_H_

#include <string>

#include "absl/strings/string_view.h"
#include "config/yaml.h"

namespace rondo::config::yaml {

// Fills kind, boolean, integer, text and json of `node` from a scalar.
// `tag` is "" (plain), "!!str", "!!int", "!!float", "!!bool", "!!null" or
// anything else, which makes a string. False with `error` set when the text
// does not fit the tag or JSON has no such value (.nan, .inf).
bool ResolveScalar(absl::string_view tag, absl::string_view text, Node& node,
                   std::string& error);

// The text of a scalar as a JSON object's key: 0x10 -> "16", yes -> "true",
// 1.50 -> "1.5". False for null, which cannot be a key.
bool ScalarKey(const Node& node, std::string& key);

// A double as Go's encoding/json prints it: 100, 4.5, 1e+21.
std::string GoFloat(double value);

// A string as Go prints it, with quotes: encoding/json escapes <, > and & for
// HTML, strconv.Quote does not.
std::string GoQuote(absl::string_view text, bool html = true);

}  // namespace rondo::config::yaml

#endif  // RONDO_CONFIG_YAML_SCALAR_H_
