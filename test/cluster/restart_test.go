// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// back is how soon after the start of a new process the node offers its GPUs
// again.
const back = 3 * time.Second

// k8s #118559, #125579, #133382: kubelet comes back before the plugin.
func TestKubeletRestart(t *testing.T) {
	configure(t, replicas(4), gpu, 4)
	pods := createAll(t, gpuPods(4, "busy", gpu)...)
	untilRunning(t, pods...)
	before := started(t, pods)

	offered := record(t, gpu)
	at, err := cluster.RestartKubelet()
	if err != nil {
		t.Fatal(err)
	}
	// What the node says of itself counts only once the new kubelet says it.
	// Times in its status are cut to seconds.
	until(t, soon, "GPUs after the restart of kubelet", func() error {
		if err := readySince(at.Truncate(time.Second).Add(time.Second)); err != nil {
			return err
		}
		return allocatable(gpu, 4)()
	})
	// It takes pods, so the plugin is really there.
	remove(t, pods[0])
	untilRunning(t, append(pods[1:], create(t, gpuPod("next", gpu)))...)
	offered.backWithin(t, back, at)
	if after := started(t, pods[1:]); !strings.HasSuffix(before, after) {
		t.Errorf("pods were restarted:\n%s\nthen\n%s", before, after)
	}
}

// readySince: kubelet has said since then that the node is ready.
func readySince(since time.Time) error {
	now, err := cluster.View.Nodes.Get(cluster.Name)
	if err != nil {
		return err
	}
	for _, condition := range now.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue &&
			!condition.LastHeartbeatTime.Time.Before(since) {
			return nil
		}
	}
	return fmt.Errorf("not ready since %v: %v", since, now.Status.Conditions)
}

func TestAgentRestart(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *corev1.Pod){
		// As an upgrade does: another pod takes over.
		"pod deleted": func(t *testing.T, pod *corev1.Pod) {
			err := cluster.Client.CoreV1().Pods(pod.Namespace).Delete(deadline(t, soon), pod.Name, metav1.DeleteOptions{})
			if err != nil {
				t.Fatal(err)
			}
		},
		// As a crash does: kubelet starts the container again.
		"process killed": func(t *testing.T, pod *corev1.Pod) {
			signal(t, pod, syscall.SIGKILL)
		},
	} {
		t.Run(name, func(t *testing.T) {
			configure(t, replicas(4), gpu, 4)
			pods := createAll(t, gpuPods(4, "busy", gpu)...)
			untilRunning(t, pods...)
			before := started(t, pods)
			old, err := cluster.RondoPod()
			if err != nil {
				t.Fatal(err)
			}
			offered := record(t, gpu)
			end(t, old)
			at := startOfNext(t, old)
			until(t, soon, "GPUs after the restart of the agent", allocatable(gpu, 4))
			remove(t, pods[0])
			untilRunning(t, append(pods[1:], create(t, gpuPod("next", gpu)))...)
			offered.backWithin(t, back, at)
			if after := started(t, pods[1:]); !strings.HasSuffix(before, after) {
				t.Errorf("pods were restarted:\n%s\nthen\n%s", before, after)
			}
		})
	}
}

// startOfNext waits until another agent than the old one is ready, and returns
// when its process started.
func startOfNext(t *testing.T, old *corev1.Pod) time.Time {
	t.Helper()
	at := startOfNextProcess(t, old)
	until(t, soon, "the new agent to be ready", func() error {
		pod, err := cluster.RondoPod()
		if err == nil && containerID(pod) == containerID(old) {
			err = fmt.Errorf("%s has still the old container", pod.Name)
		}
		return err
	})
	return at
}

// startOfNextProcess does not wait for it to be ready.
func startOfNextProcess(t *testing.T, old *corev1.Pod) time.Time {
	t.Helper()
	var at time.Time
	until(t, soon, "a new agent", func() error {
		pod, err := cluster.FindRondoPod(func(pod *corev1.Pod) bool {
			return containerID(pod) != "" && containerID(pod) != containerID(old) &&
				pod.Status.ContainerStatuses[0].State.Running != nil
		})
		if err != nil {
			return err
		}
		pid, err := agent(pod)
		if err != nil {
			return err
		}
		at, err = startTime(pid)
		return err
	})
	return at
}

func containerID(pod *corev1.Pod) string {
	if len(pod.Status.ContainerStatuses) == 0 {
		return ""
	}
	return pod.Status.ContainerStatuses[0].ContainerID
}

func signal(t *testing.T, pod *corev1.Pod, what syscall.Signal) {
	t.Helper()
	pid, err := agent(pod)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, what); err != nil {
		t.Fatal(err)
	}
}

// Kubelet gives up a pod whose Allocate fails, for good (k8s #108152), so the
// pod comes from a Job, which makes another. What must not happen: shares that
// stay taken, a node that stays without GPUs.
func TestAgentKilledDuringAllocate(t *testing.T) {
	configure(t, replicas(4), gpu, 4)
	old, err := cluster.RondoPod()
	if err != nil {
		t.Fatal(err)
	}
	offered := record(t, gpu)
	// Stopped, it takes no request, and the test can see one wait.
	signal(t, old, syscall.SIGSTOP)
	job := createJob(t, "victim", 1, "sleep 0")
	untilUnread(t)
	signal(t, old, syscall.SIGKILL)

	until(t, soon, "the first pod to be refused", func() error {
		for _, pod := range podsOf(t, job) {
			if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "UnexpectedAdmissionError" {
				return nil
			}
		}
		return fmt.Errorf("pods of the job: %v", describe(podsOf(t, job)))
	})
	at := startOfNext(t, old)
	untilComplete(t, job)
	untilRunning(t, createAll(t, gpuPods(4, "after", gpu)...)...)
	offered.backWithin(t, back, at)
}

// untilUnread waits until a request from kubelet lies unread in a socket of the
// device plugin.
func untilUnread(t *testing.T) {
	t.Helper()
	ctx := deadline(t, soon)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		// State, Recv-Q, Send-Q, local address: of each unix connection.
		out, err := exec.CommandContext(ctx, "ss", "-xnH", "state", "connected").Output()
		if err != nil {
			t.Fatal("ss:", err)
		}
		for _, line := range strings.Split(string(out), "\n") {
			fields := strings.Fields(line)
			if len(fields) > 3 && strings.Contains(line, "/device-plugins/nvidia-") && fields[1] != "0" {
				return
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("no request is waiting for the agent:\n%s", out)
		}
	}
}
