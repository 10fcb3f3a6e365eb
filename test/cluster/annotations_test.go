// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// followed is how soon after the API server has it an annotation is in force.
const followed = time.Second

// annotated is the pod with these annotations.
func annotated(pod *corev1.Pod, annotations map[string]string) *corev1.Pod {
	pod.Annotations = annotations
	return pod
}

// annotate changes one annotation of a running pod, as `kubectl annotate
// --overwrite` does, and returns when that was.
func annotate(t *testing.T, pod *corev1.Pod, key, value string) time.Time {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	_, err = cluster.Client.CoreV1().Pods(pod.Namespace).Patch(
		deadline(t, soon), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func hasLimit(bytes uint64) func(slotView) bool {
	return func(slot slotView) bool { return slot.MemoryLimitBytes != nil && *slot.MemoryLimitBytes == bytes }
}

func hasWeight(weight float64) func(slotView) bool {
	return func(slot slotView) bool { return slot.Weight == weight }
}

// The source of annotations: kubelet itself where it has the Pods API.
func TestSourceOfAnnotations(t *testing.T) {
	govern(t, limited)
	now, err := cluster.View.Nodes.Get(cluster.Name)
	if err != nil {
		t.Fatal(err)
	}
	want := "pods-api"
	if now.Status.NodeInfo.KubeletVersion < "v1.37" {
		want = "api-server"
	}
	untilAPI(t, "the source", func(now nodeView) error {
		if pods := now.Sharing.Pods; pods.AnnotationSource != want || !pods.HoldersKnown {
			return fmt.Errorf("it is %+v, want %s", pods, want)
		}
		return nil
	})
}

func TestWeights(t *testing.T) {
	govern(t, limited)
	pods := createAll(t, annotated(tenantPod("heavy"), map[string]string{"rondo/weight": "3"}), tenantPod("light"))
	untilRunning(t, pods...)
	heavy, light := slotOf(t, pods[0]), slotOf(t, pods[1])
	untilSlot(t, heavy, "its weight", hasWeight(3))
	untilSlot(t, light, "its weight", hasWeight(1))
	wantRatio(t, compete(t, pods), 3)

	// The other way round, while they run.
	at := annotate(t, pods[0], "rondo/weight", "1")
	untilSlot(t, heavy, "the edit", hasWeight(1))
	within(t, followed, at, "the edit of a weight")
	at = annotate(t, pods[1], "rondo/weight", "2")
	untilSlot(t, light, "the edit", hasWeight(2))
	within(t, followed, at, "the edit of a weight")
	shares := compete(t, pods)
	wantRatio(t, []float64{shares[1], shares[0]}, 2)

	// A limit holds also for who is alone. (--turns: its measuring would take
	// long under a limit.)
	annotate(t, pods[1], "rondo/limit", "0.5")
	untilSlot(t, light, "the limit", func(slot slotView) bool { return slot.TimeLimit == 0.5 })
	if r := use(t, pods[1], "--turns 1000 --kernel-us 1000 --warmup 1 --seconds 3"); r.Share < 0.35 || r.Share > 0.55 {
		t.Errorf("limited to a half, it got %+v", r)
	}
}

// A request of 2 ms that comes now and then, beside a pod that always has work:
// 3.2 ms by the driver's own slices, 2.1 by what the class gives it.
func TestClasses(t *testing.T) {
	govern(t, limited)
	pods := createAll(t, annotated(tenantPod("latency"), map[string]string{"rondo/class": "latency"}),
		annotated(tenantPod("batch"), map[string]string{"rondo/class": "batch"}))
	untilRunning(t, pods...)
	for i, class := range []string{"latency", "batch"} {
		untilSlot(t, slotOf(t, pods[i]), "its class", func(slot slotView) bool { return slot.Class == class })
	}
	latency := prepare(t, pods[0], "--think-us 10000 --jitter-us 2000 --warmup 1 --seconds 3")
	batch := prepare(t, pods[1], "--kernel-us 1000 --warmup 1 --seconds 3")
	latency.begin()
	batch.begin()
	l, b := latency.finish(), batch.finish()
	t.Logf("latency: p50 %.0f us, share %.3f; batch: share %.3f", l.LatencyUS.P50, l.Share, b.Share)
	if l.LatencyUS.P50 > 2600 {
		t.Errorf("half of the requests took more than %.0f us", l.LatencyUS.P50)
	}
	if b.Share < 4*l.Share || l.Share == 0 { // 0.82 and 0.15
		t.Errorf("the batch pod got %.3f of the GPU, the other %.3f", b.Share, l.Share)
	}
}

func TestMemoryOfOnePod(t *testing.T) {
	govern(t, limited)
	pods := createAll(t, annotated(tenantPod("small"), map[string]string{"rondo/memory": "1Gi"}), tenantPod("usual"))
	untilRunning(t, pods...)
	before := started(t, pods)
	slot := slotOf(t, pods[0])
	untilSlot(t, slot, "its limit", hasLimit(gib))

	holder := prepare(t, pods[0], "--memory 4096 --chunk 64 --more 4096 --seconds 0.1")
	held := untilSlot(t, slot, "it to be full", func(now slotView) bool { return now.Denials > 0 })
	if held.MemoryUsedBytes > gib || held.MemoryUsedBytes <= gib-chunk {
		t.Errorf("under 1 GiB, it holds %d MiB", held.MemoryUsedBytes/mib)
	}
	// More of it, for a program that runs.
	at := annotate(t, pods[0], "rondo/memory", "2Gi")
	untilSlot(t, slot, "the edit", hasLimit(2*gib))
	within(t, followed, at, "the edit of a limit")
	holder.begin()
	if err := isLimited(holder.finish()); err != nil {
		t.Errorf("by the edited limit: %v", err)
	}
	// The other one was not meant.
	if r := use(t, pods[1], "--seconds 0"); r.TotalBytes != limit {
		t.Errorf("the other sees %d MiB", r.TotalBytes/mib)
	}
	if after := started(t, pods); after != before {
		t.Errorf("pods were restarted:\n%s\nthen\n%s", before, after)
	}
	// The next pod on the slot has nothing of it.
	annotate(t, pods[0], "rondo/memory", "1Gi")
	untilSlot(t, slot, "the edit", hasLimit(gib))
	remove(t, pods...)
	next := createAll(t, tenantPod("next"), tenantPod("next"), tenantPod("next"), tenantPod("next"))
	untilRunning(t, next...)
	for _, pod := range next {
		if r := use(t, pod, "--seconds 0"); r.TotalBytes != limit {
			t.Errorf("the next pod sees %d MiB", r.TotalBytes/mib)
		}
	}
}

// An init container that holds a slot that no other container gets: kubelet
// lists no such holder.
func TestInitContainerHasItsPodsAnnotations(t *testing.T) {
	govern(t, limited)
	pod := annotated(podOfTenant("init", sleeper("main")), map[string]string{"rondo/weight": "5", "rondo/memory": "1Gi"})
	first := tenantContainer()
	first.Name = "first"
	pod.Spec.InitContainers = []corev1.Container{first}
	pod = create(t, pod)
	until(t, soon, "the init container to run", func() error {
		now, err := current(pod)
		if err != nil {
			return err
		}
		for _, status := range now.Status.InitContainerStatuses {
			if status.State.Running != nil {
				return nil
			}
		}
		return fmt.Errorf("its init containers are %+v", now.Status.InitContainerStatuses)
	})
	slot := strings.TrimSpace(run(t, pod, "first", "sh", "-c", "echo $RONDO_SLOTS"))
	untilSlot(t, slot, "its weight", hasWeight(5))
	untilSlot(t, slot, "its limit", hasLimit(gib))
	at := annotate(t, pod, "rondo/weight", "2")
	untilSlot(t, slot, "the edit", hasWeight(2))
	within(t, followed, at, "the edit of a weight")
	// The next pods on the slot have nothing of it.
	remove(t, pod)
	next := createAll(t, tenantPod("next"), tenantPod("next"), tenantPod("next"), tenantPod("next"))
	untilRunning(t, next...)
	untilSlot(t, slot, "the default", hasWeight(1))
}

// A mistake is told where its author looks, and costs nothing else.
func TestAnnotationThatDoesNotParse(t *testing.T) {
	govern(t, limited)
	pod := create(t, annotated(tenantPod("typo"), map[string]string{"rondo/memory": "8 gigs", "rondo/wieght": "3"}))
	untilRunning(t, pod)
	slot := slotOf(t, pod)
	for _, text := range []string{"8 gigs", "rondo/weight"} {
		until(t, soon, "an event", func() error { return hasEvent(pod.Name, "RondoAnnotationInvalid", text) })
	}
	if err := isLimited(use(t, pod, tooMuch+"--seconds 0.1")); err != nil {
		t.Errorf("with the default: %v", err)
	}
	// Put right, it is followed.
	annotate(t, pod, "rondo/memory", "1Gi")
	untilSlot(t, slot, "the correction", hasLimit(gib))
}
