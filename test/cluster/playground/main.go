// SPDX-License-Identifier: Apache-2.0

// A Kubernetes node with simulated GPUs and Rondo, to play with. Started by
// test/cluster/up; runs until it is killed.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"rondo/test/cluster/node"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := start(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "test/cluster/up:", err)
		os.Exit(1)
	}
	select {}
}

func start(ctx context.Context, gpus string) error {
	n, err := node.Start(ctx)
	if err != nil {
		return err
	}
	if err := n.InstallDriver(ctx, gpus); err != nil {
		return err
	}
	if err := n.InstallRondo(ctx); err != nil {
		return err
	}
	// test/cluster/up waits for this file.
	return os.WriteFile(filepath.Join(os.Getenv("RONDO_NODE_DIR"), "ready"), nil, 0o644)
}
