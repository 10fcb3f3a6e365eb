// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rondo/test/cluster/node"
)

// replicas is the config of most cases: each GPU is advertised so many times.
func replicas(count int) string { return fmt.Sprintf(config, "", count) }

// sharing is replicas with one more line under timeSlicing.
func sharing(count int, line string) string { return fmt.Sprintf(config, "\n    "+line, count) }

// strategy is replicas with more lines under flags.plugin.
func strategy(count int, line string) string {
	return "flags:\n  plugin:\n    " + line + "\n" + replicas(count)
}

const config = `version: v1
sharing:
  timeSlicing:%s
    resources:
    - name: nvidia.com/gpu
      replicas: %d
`

// allocatable: so many of the resource are on offer, by the node's status.
// None and not mentioned are the same.
func allocatable(resource corev1.ResourceName, want int64) func() error {
	return onNode("allocatable", resource, want, func(s *corev1.NodeStatus) corev1.ResourceList { return s.Allocatable })
}

// capacity counts those that are not healthy too.
func capacity(resource corev1.ResourceName, want int64) func() error {
	return onNode("capacity", resource, want, func(s *corev1.NodeStatus) corev1.ResourceList { return s.Capacity })
}

func onNode(what string, resource corev1.ResourceName, want int64, list func(*corev1.NodeStatus) corev1.ResourceList) func() error {
	return func() error {
		now, err := cluster.View.Nodes.Get(cluster.Name)
		if err != nil {
			return err
		}
		if got := count(list(&now.Status), resource); got != want {
			return fmt.Errorf("%s of %s is %d, want %d", what, resource, got, want)
		}
		return nil
	}
}

func count(list corev1.ResourceList, resource corev1.ResourceName) int64 {
	quantity := list[resource]
	return quantity.Value()
}

// configure gives Rondo one config, for the node without a label, and waits
// until the node offers what it should.
func configure(t *testing.T, text string, resource corev1.ResourceName, want int64) {
	t.Helper()
	if allocatable(resource, want)() == nil {
		// Another number first: else nothing would show when the new config
		// is in force.
		edit(t, map[string]string{node.RondoConfigKey: replicas(3)})
		until(t, soon, "another number", func() error {
			if allocatable(resource, want)() == nil {
				return fmt.Errorf("it is still %d", want)
			}
			return nil
		})
	}
	edit(t, map[string]string{node.RondoConfigKey: text})
	until(t, soon, "the configured number", allocatable(resource, want))
}

// edit replaces the content of the ConfigMap, waits until kubelet has brought
// it to the agent's pod, and returns when that was.
func edit(t *testing.T, data map[string]string) time.Time {
	t.Helper()
	volume := configVolume(t)
	swaps := watchFolder(t, volume)
	if holds(volume, data) == nil {
		return time.Now()
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/data", "value": data}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cluster.Client.CoreV1().ConfigMaps(node.RondoNamespace).Patch(
		deadline(t, soon), node.RondoConfigMap, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		at := swaps()
		if holds(volume, data) == nil {
			return at
		}
	}
}

// configVolume is the folder with the files of the ConfigMap, as the agent sees
// them. Waits for an agent that an earlier case has not waited for.
func configVolume(t *testing.T) string {
	t.Helper()
	var volume string
	until(t, soon, "an agent", func() error {
		pod, err := cluster.RondoPod()
		if err != nil {
			return err
		}
		volume, err = node.ConfigMapVolume(pod, node.RondoConfigMap)
		return err
	})
	return volume
}

// holds: the folder has exactly these files. (Looked up through the link
// ..data, since kubelet makes and removes the links beside it later.)
func holds(volume string, data map[string]string) error {
	volume = filepath.Join(volume, "..data")
	files, err := filepath.Glob(filepath.Join(volume, "*"))
	if err != nil || len(files) != len(data) {
		return fmt.Errorf("%s holds %v (%w)", volume, files, err)
	}
	for name, want := range data {
		got, err := os.ReadFile(filepath.Join(volume, name))
		if err != nil || !bytes.Equal(got, []byte(want)) {
			return fmt.Errorf("%s is %q (%w)", name, got, err)
		}
	}
	return nil
}

// watchFolder returns a function that waits for the next rename in the folder
// (kubelet replaces the link ..data so) and says when it was.
func watchFolder(t *testing.T, folder string) func() time.Time {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { events.Close() })
	if _, err := unix.InotifyAddWatch(fd, folder, unix.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	return func() time.Time {
		t.Helper()
		if err := events.SetReadDeadline(time.Now().Add(soon)); err != nil {
			t.Fatal(err)
		}
		if _, err := events.Read(make([]byte, 4096)); err != nil {
			t.Fatalf("kubelet does not update %s: %v", folder, err)
		}
		return time.Now()
	}
}

// history is what a node offered of a resource over a time.
type history struct {
	mutex   sync.Mutex
	values  []int64
	changed time.Time // when the last value came
}

// record notes each change of the allocatable number from now until the end of
// the test.
func record(t *testing.T, resource corev1.ResourceName) *history {
	t.Helper()
	h := &history{}
	stop, err := cluster.View.EachNode(func(now *corev1.Node) {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		value := count(now.Status.Allocatable, resource)
		if len(h.values) == 0 || h.values[len(h.values)-1] != value {
			h.values, h.changed = append(h.values, value), time.Now()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return h
}

// until waits for the last value and returns all, in order.
func (h *history) until(t *testing.T, last int64) []int64 {
	t.Helper()
	var seen []int64
	until(t, soon, fmt.Sprintf("%d on offer", last), func() error {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		seen = slices.Clone(h.values)
		if len(seen) == 0 || seen[len(seen)-1] != last {
			return fmt.Errorf("so far %v", seen)
		}
		return nil
	})
	return seen
}

// backWithin fails the test if the node has got its number back later than
// promised after the start of the new process. It is called when all is well
// again. A node that never offered less has not been away.
func (h *history) backWithin(t *testing.T, limit time.Duration, start time.Time) {
	t.Helper()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.values) == 1 {
		t.Logf("the node offered %v all the time", h.values)
		return
	}
	took := h.changed.Sub(start)
	t.Logf("the node offered %v, the last %.2f s after the start of the new process", h.values, took.Seconds())
	if took > limit {
		t.Errorf("that is more than %v", limit)
	}
}

// agent returns the process id of the agent in the pod, or an error while
// there is none.
func agent(pod *corev1.Pod) (int, error) {
	pids, err := node.Processes(pod, "rondo")
	if err != nil {
		return 0, err
	}
	if len(pids) != 1 {
		return 0, fmt.Errorf("processes of the agent: %v", pids)
	}
	return pids[0], nil
}

// startTime is when the process started, by the kernel.
func startTime(pid int) (time.Time, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return time.Time{}, err
	}
	// Field 22, in ticks of 10 ms since boot; the 2nd, in brackets, may hold blanks.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	var ticks int64
	if _, err := fmt.Sscan(string(fields[19]), &ticks); err != nil {
		return time.Time{}, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Time{}, err
	}
	age := time.Duration(now.Nano()) - time.Duration(ticks)*10*time.Millisecond
	return time.Now().Add(-age), nil
}

// install puts Rondo on the node and waits until the manifest's own config is
// in force.
func install(ctx context.Context) error {
	if err := cluster.InstallDriver(ctx, profile); err != nil {
		return err
	}
	if err := cluster.InstallRondo(ctx); err != nil {
		return err
	}
	return cluster.View.Until(ctx, "GPUs", allocatable(gpu, 4))
}
