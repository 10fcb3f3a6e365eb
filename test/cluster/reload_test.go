// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rondo/test/cluster/node"
)

// applied is how soon after kubelet has brought the file the node must offer
// what it says.
const applied = 2 * time.Second

func TestEditIsAppliedLive(t *testing.T) {
	configure(t, replicas(4), gpu, 4)
	pods := createAll(t, gpuPods(4, "busy", gpu)...)
	untilRunning(t, pods...)
	before := started(t, pods)

	swap := edit(t, map[string]string{node.RondoConfigKey: replicas(6)})
	until(t, soon, "the edit", allocatable(gpu, 6))
	within(t, applied, swap, "edit")

	more := createAll(t, gpuPods(2, "more", gpu)...)
	untilRunning(t, append(slices.Clone(pods), more...)...)
	if after := started(t, pods); after != before {
		t.Errorf("pods were restarted by the edit:\n%s\nthen\n%s", before, after)
	}
}

// A bad edit costs nothing: the node goes on with what it had.
func TestBadEditKeepsTheLastGood(t *testing.T) {
	configure(t, replicas(6), gpu, 6)
	pods := createAll(t, gpuPods(2, "busy", gpu)...)
	untilRunning(t, pods...)
	before := started(t, pods)
	offered := record(t, gpu)

	for name, text := range map[string]string{
		"a word for a number": strings.Replace(replicas(6), "6", "six", 1),
		"one replica":         replicas(1),
		"no resources":        "version: v1\nsharing:\n  timeSlicing:\n",
		"unknown version":     "version: v7\n",
		"not YAML":            "version: v1\n\tsharing: {{\n",
	} {
		edit(t, map[string]string{node.RondoConfigKey: text})
		// Meanwhile the node takes pods.
		pod := create(t, gpuPod("after-the-typo", gpu))
		untilRunning(t, pod)
		if got := offered.until(t, 6); !slices.Equal(got, []int64{6}) {
			t.Errorf("%s: the node offered %v, want 6 and nothing else", name, got)
		}
		remove(t, pod)
	}
	// And the agent still listens. It takes edits in their order, so by now
	// the bad ones have had all the effect that they will have.
	swap := edit(t, map[string]string{node.RondoConfigKey: replicas(5)})
	got := offered.until(t, 5)
	within(t, applied, swap, "correction")
	if !slices.Equal(got, []int64{6, 5}) {
		t.Errorf("the node offered %v, want 6 until the correction to 5", got)
	}
	if after := started(t, pods); after != before {
		t.Errorf("pods were restarted:\n%s\nthen\n%s", before, after)
	}
}

// label sets the node's config label, or removes it.
func label(t *testing.T, value any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	patch := `{"metadata":{"labels":{"nvidia.com/device-plugin.config":null}}}`
	if value != nil {
		patch = fmt.Sprintf(`{"metadata":{"labels":{"nvidia.com/device-plugin.config":%q}}}`, value)
	}
	_, err := cluster.Client.CoreV1().Nodes().Patch(ctx, cluster.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}

func TestNodeLabelChoosesTheConfig(t *testing.T) {
	configure(t, replicas(4), gpu, 4)
	t.Cleanup(func() {
		label(t, nil)
		// Else the next case may take this config for its own.
		until(t, soon, "the config without a label", allocatable(gpu, 4))
	})
	pods := createAll(t, gpuPods(2, "busy", gpu)...)
	untilRunning(t, pods...)
	before := started(t, pods)
	edit(t, map[string]string{
		node.RondoConfigKey: replicas(4), "inference": replicas(2), "notebooks": replicas(6),
	})

	for _, step := range []struct {
		label any
		want  int64
	}{{"notebooks", 6}, {"inference", 2}, {"notebooks", 6}, {nil, 4}} {
		at := time.Now()
		label(t, step.label)
		until(t, soon, fmt.Sprintf("the config of label %v", step.label), allocatable(gpu, step.want))
		within(t, applied+time.Second, at, fmt.Sprintf("label %v", step.label))
	}
	// A name that is not there is a mistake, and changes nothing.
	offered := record(t, gpu)
	label(t, "no-such-config")
	untilRunning(t, create(t, gpuPod("after-the-typo", gpu)))
	label(t, "notebooks")
	if got := offered.until(t, 6); !slices.Equal(got, []int64{4, 6}) {
		t.Errorf("the node offered %v, want 4 until the right label", got)
	}
	if after := started(t, pods); after != before {
		t.Errorf("pods were restarted by a label:\n%s\nthen\n%s", before, after)
	}
}

// Four pods hold four shares when the config is cut to two. The pods are not
// touched. The node offers two, and the two that it no longer has count as
// capacity for as long as they are held. A newcomer waits until it fits in.
func TestReductionLeavesRunningPods(t *testing.T) {
	configure(t, replicas(4), gpu, 4)
	pods := createAll(t, gpuPods(4, "busy", gpu)...)
	untilRunning(t, pods...)
	until(t, soon, "what earlier configs had to be forgotten", capacity(gpu, 4))
	before := started(t, pods)

	swap := edit(t, map[string]string{node.RondoConfigKey: replicas(2)})
	until(t, soon, "the reduction", allocatable(gpu, 2))
	within(t, applied, swap, "reduction")
	if err := capacity(gpu, 4)(); err != nil {
		t.Error(err)
	}
	late := create(t, gpuPod("late", gpu))
	until(t, soon, "the newcomer to wait", isUnschedulable(late, gpu))
	if after := started(t, pods); after != before {
		t.Errorf("pods were restarted by the reduction:\n%s\nthen\n%s", before, after)
	}
	if err := allRunning(pods); err != nil {
		t.Error(err)
	}
	remove(t, pods...)
	untilRunning(t, late)
	// Kubelet writes down who holds what when it gives out the next device, so
	// only that tells the agent which pods have ended.
	untilRunning(t, create(t, gpuPod("next", gpu)))
	until(t, soon, "two and no more", capacity(gpu, 2))
	until(t, soon, "two", allocatable(gpu, 2))
}
