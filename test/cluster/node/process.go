// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is one long-running program of the node. Its output is in
// /var/log/NAME.log, which people outside see too. It needs no clean-up of its
// own: it dies with the namespace.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the program has ended
}

func startProcess(program string, args ...string) (*process, error) {
	name := filepath.Base(program)
	p := &process{log: filepath.Join("/var/log", name+".log"), done: make(chan struct{})}
	// Appended to, since a restarted program goes on in the same file.
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// containerd looks for its shim, and the shim for runc, on the PATH: those
	// that were built together must find each other before Debian's.
	p.cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	// A Ctrl-C on the terminal is for whoever runs the node, not for its parts.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// kill ends the program at once, the way a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// untilReady asks again and again until ready says nil, the program ends, or
// the context does.
func (p *process) untilReady(ctx context.Context, ready func(context.Context) error) error {
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-retry.C:
		case <-p.done:
			return fmt.Errorf("%s ended with %v: see %s", p.cmd.Path, p.cmd.ProcessState, p.log)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready in time (%w): see %s", p.cmd.Path, err, p.log)
		}
	}
}
