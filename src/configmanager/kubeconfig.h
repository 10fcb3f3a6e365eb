// SPDX-License-Identifier: Apache-2.0
//
// The part of a kubeconfig file that our API client can follow: the current
// context's server, its CA file, and a bearer token. Pure but for reading the
// file; any thread.

#ifndef RONDO_CONFIGMANAGER_KUBECONFIG_H_
#define RONDO_CONFIGMANAGER_KUBECONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "kube/api_client.h"

namespace rondo::configmanager {

// NotFound where the file is not there; InvalidArgument, with the key, where it
// is no kubeconfig or asks for what the client cannot do (client certificates,
// certificates within the file, programs that give tokens, no verification).
absl::StatusOr<kube::ApiClient::Options> ReadKubeconfig(
    const std::string& path);

}  // namespace rondo::configmanager

#endif  // RONDO_CONFIGMANAGER_KUBECONFIG_H_
