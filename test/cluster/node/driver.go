// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// DriverLibraries is where the node has the driver's libraries, the simulation's
// among them.
const DriverLibraries = "/usr/lib64"

// interposer makes a program's calls of the kernel driver reach the simulated
// one. It finds the driver by the folder that it is loaded from.
const interposer = "librondo-sim-driver.so"

// Driver is the simulated NVIDIA driver of the node: libraries, device files
// and a process in the place of the kernel's part. To Rondo and to containers
// this machine looks like one with that driver installed.
type Driver struct {
	rondo  string // the executable
	state  string
	kernel *process
}

// InstallDriver puts a simulated driver for the GPUs of the profile on the
// node. It may be called again: the GPUs are replaced, as on a reboot.
func (n *Node) InstallDriver(ctx context.Context, profile string) error {
	d := &Driver{
		rondo: filepath.Join(n.tree, "build/release/bin/rondo"),
		state: filepath.Join(os.Getenv("RONDO_NODE_DIR"), "driver"),
	}
	if n.Driver != nil {
		n.Driver.kernel.kill()
	}
	if err := d.sim(ctx, "--profile", profile); err != nil {
		return err
	}
	// The real folders, with the driver's files in them. A copy, since the
	// machine's own /usr must not change; mounted over it for this node only.
	const libraries = DriverLibraries
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
	var err error
	if d.kernel, err = n.start(d.rondo, "sim", "driver", "--state", d.state); err != nil {
		return err
	}
	return d.kernel.untilReady(ctx, func(ctx context.Context) error {
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "unixpacket", filepath.Join(libraries, "rondo-sim.nvidia0"))
		if err != nil {
			return err
		}
		return connection.Close()
	})
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
