// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// createJob makes a Job of so many pods at once, each of which holds a GPU
// while it runs the shell command.
func createJob(t *testing.T, name string, pods int32, command string) *batchv1.Job {
	t.Helper()
	container := sleeper("main", gpu)
	container.Command = []string{"sh", "-c", command}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Namespace: namespace},
		Spec: batchv1.JobSpec{
			Completions: &pods, Parallelism: &pods,
			Template: corev1.PodTemplateSpec{Spec: podOf(name, container).Spec},
		},
	}
	job, err := cluster.Client.BatchV1().Jobs(namespace).Create(deadline(t, soon), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		background := metav1.DeletePropagationBackground
		err := cluster.Client.BatchV1().Jobs(namespace).Delete(ctx, job.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil {
			t.Error(err)
		}
		remove(t, podsOf(t, job)...)
	})
	return job
}

func podsOf(t *testing.T, job *batchv1.Job) []*corev1.Pod {
	t.Helper()
	pods, err := cluster.View.Pods.Pods(job.Namespace).List(labels.SelectorFromSet(labels.Set{batchv1.JobNameLabel: job.Name}))
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

func describe(pods []*corev1.Pod) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, fmt.Sprintf("%s %s %s %s", pod.Name, pod.Status.Phase, pod.Status.Reason, pod.Status.Message))
	}
	return all
}

// untilComplete waits until as many pods of the job as it wants have succeeded.
func untilComplete(t *testing.T, job *batchv1.Job) {
	t.Helper()
	until(t, 2*soon, "the job to complete", func() error {
		pods := podsOf(t, job)
		succeeded := int32(0)
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodSucceeded {
				succeeded++
			}
		}
		if succeeded != *job.Spec.Completions {
			return fmt.Errorf("%d of %d have succeeded: %v", succeeded, *job.Spec.Completions, describe(pods))
		}
		return nil
	})
}

// NVIDIA's documentation shows such a Job for time-slicing: more pods than
// shares, and all get their turn.
func TestJobOfTwentyOnFour(t *testing.T) {
	configure(t, replicas(4), gpu, 4)
	var mutex sync.Mutex
	most := 0
	stop := watchRunning(t, func(running int) {
		mutex.Lock()
		defer mutex.Unlock()
		most = max(most, running)
	})
	job := createJob(t, "twenty", 20, "sleep 1")
	untilComplete(t, job)
	stop()
	for _, pod := range podsOf(t, job) {
		if pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("a pod did not finish: %v", describe([]*corev1.Pod{pod}))
		}
	}
	mutex.Lock()
	defer mutex.Unlock()
	if most < 2 || most > 4 {
		t.Errorf("at most %d of its pods ran at the same time, want 2 to 4 (there are 4 shares)", most)
	}
}

// sayGPU leaves what the container was given where the API shows it.
const sayGPU = "echo $NVIDIA_VISIBLE_DEVICES > /dev/termination-log"

// An init container's share is free again for the others of the pod; a sidecar
// (an init container that stays) keeps its own.
func TestInitContainerAndSidecar(t *testing.T) {
	configure(t, replicas(2), gpu, 2)
	always := corev1.ContainerRestartPolicyAlways
	first, sidecar := sleeper("init", gpu), sleeper("sidecar", gpu)
	first.Command = []string{"sh", "-c", sayGPU}
	sidecar.RestartPolicy = &always
	pod := podOf("pod", sleeper("main", gpu))
	pod.Spec.InitContainers = []corev1.Container{first, sidecar}
	pod = create(t, pod)
	untilRunning(t, pod)

	now, err := current(pod)
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range now.Status.InitContainerStatuses {
		switch {
		case status.Name == "init" && status.State.Terminated != nil:
			if got := strings.TrimSpace(status.State.Terminated.Message); !gpuUUID.MatchString(got) {
				t.Errorf("the init container saw %q", got)
			}
		case status.Name == "sidecar" && status.State.Running != nil:
		default:
			t.Errorf("%s is %v", status.Name, status.State)
		}
	}
	for _, container := range []string{"sidecar", "main"} {
		if got := strings.TrimSpace(run(t, pod, container, "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES")); !gpuUUID.MatchString(got) {
			t.Errorf("%s sees %q", container, got)
		}
	}
	// Two containers run with one share each: nothing is left.
	third := create(t, gpuPod("third", gpu))
	until(t, soon, "the third to wait", isUnschedulable(third, gpu))
	remove(t, pod)
	untilRunning(t, third)
}

// watchRunning calls see with the number of pods with a GPU that run, at each
// change.
func watchRunning(t *testing.T, see func(int)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cluster.View.Until(ctx, "the end", func() error {
			pods, err := cluster.View.Pods.Pods(namespace).List(labels.Everything())
			running := 0
			for _, pod := range pods {
				if pod.Status.Phase == corev1.PodRunning {
					running++
				}
			}
			see(running)
			return fmt.Errorf("still watching (%v)", err)
		})
	}()
	return func() { cancel(); <-done }
}
