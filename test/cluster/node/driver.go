// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Driver is the simulated NVIDIA driver of the node. To Rondo and to
// containers this machine looks like one with that driver installed.
type Driver struct {
	rondo string // the executable
	state string
}

// InstallDriver puts a simulated driver for the GPUs of the profile on the
// node. It may be called again: the GPUs are replaced, as on a reboot.
func (n *Node) InstallDriver(ctx context.Context, profile string) error {
	d := &Driver{
		rondo: filepath.Join(n.tree, "build/release/bin/rondo"),
		state: filepath.Join(os.Getenv("RONDO_NODE_DIR"), "driver"),
	}
	if err := d.sim(ctx, "--profile", profile); err != nil {
		return err
	}
	// The real folders, with the driver's files in them. A copy, since the
	// machine's own /usr must not change; mounted over it for this node only.
	const libraries = "/usr/lib64"
	for _, step := range [][]string{
		{"sh", "-c", "rm -rf /dev/nvidia*"}, // of earlier GPUs
		{"cp", "-an", libraries + "/.", d.state + libraries},
		{"mount", "--bind", d.state + libraries, libraries},
		{"cp", "-a", d.state + "/dev/.", "/dev"},
	} {
		if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", step, err, out)
		}
	}
	n.Driver = d
	return nil
}

// Xid lets a GPU fail with an Xid; Clear makes it well again.
func (d *Driver) Xid(ctx context.Context, gpu, xid int) error {
	return d.sim(ctx, "fault", "--gpu", fmt.Sprint(gpu), "xid", fmt.Sprint(xid))
}

func (d *Driver) Clear(ctx context.Context, gpu int) error {
	return d.sim(ctx, "fault", "--gpu", fmt.Sprint(gpu), "clear")
}

func (d *Driver) sim(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, d.rondo, append([]string{"sim", "--state", d.state}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("rondo sim %v: %w: %s", args, err, out)
	}
	return nil
}
