// SPDX-License-Identifier: Apache-2.0

// Package cluster tests Rondo as a user meets it: installed by its manifest on
// a real Kubernetes node. What is expected is read from the API server, from
// inside containers and from the agent's HTTP API, never from Rondo's own logs.
// Start it by test/cluster/run.
package cluster

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"rondo/test/cluster/node"
)

// cluster is the one node that all cases share. A case leaves it as it was:
// Rondo running, no pods, no faults.
var cluster *node.Node

// profile is what the node has: one GPU.
const profile = "A100-SXM4-80GB"

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	var err error
	if cluster, err = node.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "the node does not start:", err)
		os.Exit(1)
	}
	if err := install(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Rondo is not installed:", err)
		os.Exit(1)
	}
	cancel()
	os.Exit(m.Run())
}

// The node itself works: a pod runs, and one can look into it.
func TestNode(t *testing.T) {
	pod := create(t, podOf("node", sleeper("main")))
	untilRunning(t, pod)
	if out := run(t, pod, "main", "hostname"); out != pod.Name+"\n" {
		t.Errorf("hostname is %q", out)
	}
}
