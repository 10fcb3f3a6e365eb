// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Xid takes away all replicas of the GPU that has it (k8s-device-plugin
// #1929); once it is over they come back (#189, #1014).
func TestXid(t *testing.T) {
	configure(t, replicas(4), gpu, 4)
	pods := createAll(t, gpuPods(2, "busy", gpu)...)
	untilRunning(t, pods...)
	until(t, soon, "what earlier configs had to be forgotten", capacity(gpu, 4))
	before := started(t, pods)
	t.Cleanup(func() { clearFault(t, 0) })

	if err := cluster.Driver.Xid(deadline(t, soon), 0, 79); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "all replicas to go", allocatable(gpu, 0))
	if err := capacity(gpu, 4)(); err != nil {
		t.Errorf("an unhealthy GPU is still there, but %v", err)
	}
	late := create(t, gpuPod("late", gpu))
	until(t, soon, "the newcomer to wait", isUnschedulable(late, gpu))

	clearFault(t, 0)
	until(t, soon, "the GPU to recover", allocatable(gpu, 4))
	untilRunning(t, late)
	if after := started(t, pods); after != before {
		t.Errorf("pods were restarted:\n%s\nthen\n%s", before, after)
	}
}

// The other GPU of the node is not touched.
func TestXidOfOneOfTwo(t *testing.T) {
	t.Cleanup(func() {
		swapGPUs(t, profile)
		configure(t, replicas(4), gpu, 4)
	})
	swapGPUs(t, "2xA100-SXM4-80GB")
	configure(t, replicas(4), gpu, 8)

	if err := cluster.Driver.Xid(deadline(t, soon), 1, 79); err != nil {
		t.Fatal(err)
	}
	until(t, soon, "the replicas of one GPU to go", allocatable(gpu, 4))
	pods := createAll(t, gpuPods(4, "on-the-other", gpu)...)
	untilRunning(t, pods...)
	first := visible(t, pods[0])
	for _, pod := range pods {
		if got := visible(t, pod); got != first {
			t.Errorf("%s sees %s, another %s: one GPU is well", pod.Name, got, first)
		}
	}
	clearFault(t, 1)
	until(t, soon, "the GPU to recover", allocatable(gpu, 8))
	late := create(t, gpuPod("late", gpu))
	untilRunning(t, late)
	if got := visible(t, late); got == first {
		t.Errorf("it sees %s, which is taken four times; the other is free", got)
	}
}

// swapGPUs gives the node other GPUs, and a new agent, as a reboot does.
func swapGPUs(t *testing.T, profile string) {
	t.Helper()
	old, err := cluster.RondoPod()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := cluster.InstallDriver(ctx, profile); err != nil {
		t.Fatal(err)
	}
	err = cluster.Client.CoreV1().Pods(old.Namespace).Delete(ctx, old.Name, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	startOfNext(t, old)
}

func clearFault(t *testing.T, gpu int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := cluster.Driver.Clear(ctx, gpu); err != nil {
		t.Error(err)
	}
}
