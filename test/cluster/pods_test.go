// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rondo/test/cluster/node"
)

const (
	gpu       = corev1.ResourceName("nvidia.com/gpu")
	gpuShared = corev1.ResourceName("nvidia.com/gpu.shared")
	namespace = metav1.NamespaceDefault
)

// soon is how long the cluster may take for what takes it a second or two.
const soon = 60 * time.Second

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// until waits for a state of the cluster and fails the test if it doesn't come.
func until(t *testing.T, d time.Duration, what string, condition func() error) {
	t.Helper()
	if err := cluster.View.Until(deadline(t, d), what, condition); err != nil {
		t.Fatal(err)
	}
}

// within fails the test if the wait took longer than the promise.
func within(t *testing.T, limit time.Duration, since time.Time, what string) {
	t.Helper()
	took := time.Since(since)
	t.Logf("%s took %.2f s", what, took.Seconds())
	if took > limit {
		t.Errorf("%s took %v, want at most %v", what, took, limit)
	}
}

// sleeper is a container that runs until it is told to end.
func sleeper(name string, resources ...corev1.ResourceName) corev1.Container {
	limits := corev1.ResourceList{}
	for _, each := range resources {
		limits[each] = resource.MustParse("1")
	}
	return corev1.Container{
		Name: name, Image: node.BusyboxImage, ImagePullPolicy: corev1.PullNever,
		Command:   []string{"sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"},
		Resources: corev1.ResourceRequirements{Limits: limits},
	}
}

func podOf(name string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Namespace: namespace},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: containers},
	}
}

// gpuPod asks for one GPU and holds it.
func gpuPod(name string, of corev1.ResourceName) *corev1.Pod {
	return podOf(name, sleeper("main", of))
}

// create creates the pod, and takes it away again when the test ends.
func create(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	return createAll(t, pod)[0]
}

func createAll(t *testing.T, pods ...*corev1.Pod) []*corev1.Pod {
	t.Helper()
	var created []*corev1.Pod
	t.Cleanup(func() { remove(t, created...) })
	for _, pod := range pods {
		pod, err := cluster.Client.CoreV1().Pods(pod.Namespace).Create(deadline(t, soon), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		created = append(created, pod)
	}
	until(t, soon, "the view to show the pods", func() error {
		for _, pod := range created {
			if _, err := current(pod); err != nil {
				return err
			}
		}
		return nil
	})
	return created
}

// gpuPods asks for one GPU so many times.
func gpuPods(count int, name string, of corev1.ResourceName) []*corev1.Pod {
	var pods []*corev1.Pod
	for range count {
		pods = append(pods, gpuPod(name, of))
	}
	return pods
}

// remove deletes the pods and waits until kubelet has ended them, since only
// then are their devices free.
func remove(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		err := cluster.Client.CoreV1().Pods(pod.Namespace).Delete(deadline(t, soon), pod.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	until(t, soon, "pods to be gone", func() error {
		for _, pod := range pods {
			if _, err := cluster.View.Pods.Pods(pod.Namespace).Get(pod.Name); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is still there", pod.Name)
			}
		}
		return nil
	})
}

// current returns the pod as the API server has it now.
func current(pod *corev1.Pod) (*corev1.Pod, error) {
	return cluster.View.Pods.Pods(pod.Namespace).Get(pod.Name)
}

// isRunning: all containers of the pod run, for the first time each.
func isRunning(pod *corev1.Pod) error {
	now, err := current(pod)
	if err != nil {
		return err
	}
	switch now.Status.Phase {
	case corev1.PodRunning:
	case corev1.PodFailed, corev1.PodSucceeded:
		return fmt.Errorf("%s is %s: %s %s: %w", now.Name, now.Status.Phase, now.Status.Reason, now.Status.Message, node.ErrFinal)
	default:
		return fmt.Errorf("%s is %s: %s %s", now.Name, now.Status.Phase, now.Status.Reason, now.Status.Message)
	}
	for _, status := range now.Status.ContainerStatuses {
		if status.State.Running == nil || status.RestartCount > 0 {
			return fmt.Errorf("%s/%s, restarted %d times: %v", now.Name, status.Name, status.RestartCount, status.State)
		}
	}
	return nil
}

// allRunning: they run at the same time.
func allRunning(pods []*corev1.Pod) error {
	var missing []error
	for _, pod := range pods {
		missing = append(missing, isRunning(pod))
	}
	return errors.Join(missing...)
}

func untilRunning(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	until(t, soon, "pods to run", func() error { return allRunning(pods) })
}

// started identifies the containers that run now: a restart, in place or as a
// new pod, changes it.
func started(t *testing.T, pods []*corev1.Pod) string {
	t.Helper()
	var all []string
	for _, pod := range pods {
		now, err := current(pod)
		if err != nil {
			t.Fatal(err)
		}
		for _, status := range now.Status.ContainerStatuses {
			all = append(all, fmt.Sprintf("%s/%s %s", now.Name, status.Name, status.ContainerID))
		}
	}
	return strings.Join(all, "\n")
}

// hasEvent: an event about the object, with this reason and text.
func hasEvent(object, reason, text string) error {
	events, err := cluster.View.Events.List(labels.Everything())
	if err != nil {
		return err
	}
	var seen []string
	for _, event := range events {
		if event.InvolvedObject.Name != object {
			continue
		}
		if event.Reason == reason && strings.Contains(event.Message, text) {
			return nil
		}
		seen = append(seen, event.Reason+": "+event.Message)
	}
	return fmt.Errorf("%s has no event %s with %q, only %q", object, reason, text, seen)
}

// run runs a command in the pod's container and returns what it printed.
func run(t *testing.T, pod *corev1.Pod, container string, command ...string) string {
	t.Helper()
	out, err := cluster.Exec(deadline(t, soon), pod, container, command...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
