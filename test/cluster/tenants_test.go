// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rondo/test/cluster/node"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// govern gives Rondo the usual config (four slots) with the lines under
// `rondo:`, and waits until it is in force.
func govern(t *testing.T, rondo string) {
	t.Helper()
	data := map[string]string{node.RondoConfigKey: replicas(4) + "rondo: {" + rondo + "}\n"}
	if holds(configVolume(t), data) != nil {
		taken := api(t).Config.Accepted
		edit(t, data)
		untilAPI(t, "the config to be in force", func(now nodeView) error {
			if now.Config.Accepted == taken {
				return fmt.Errorf("%d taken, refused: %v", taken, now.Config.Refused)
			}
			return nil
		})
	}
	until(t, soon, "four slots", allocatable(gpu, 4))
}

// tenantContainer holds a slot and runs nothing on it, until a test does.
func tenantContainer() corev1.Container {
	container := sleeper("main", gpu)
	container.Image = node.TenantImage
	// What NVIDIA's container runtime brings on a real node: the driver's
	// libraries, and a way for the loader to find them.
	container.Env = []corev1.EnvVar{{Name: "LD_LIBRARY_PATH", Value: "/driver"}}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "driver", MountPath: "/driver", ReadOnly: true}}
	return container
}

func podOfTenant(name string, container corev1.Container) *corev1.Pod {
	pod := podOf(name, container)
	pod.Spec.Volumes = []corev1.Volume{{Name: "driver", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: node.DriverLibraries},
	}}}
	return pod
}

func tenantPod(name string) *corev1.Pod { return podOfTenant(name, tenantContainer()) }

func command(options string) []string {
	return append([]string{node.TenantProgram}, strings.Fields(options)...)
}

// report is what the tenant program prints at its end.
type report struct {
	Requests  int     `json:"requests"`
	Share     float64 `json:"share"`
	LatencyUS struct {
		P50, P99 float64
	} `json:"latency_us"`
	MemoryBytes  uint64 `json:"memory_bytes"`
	MemoryDenied string `json:"memory_denied"`
	FreeBytes    uint64 `json:"free_bytes"`
	TotalBytes   uint64 `json:"total_bytes"`
}

func parse(t *testing.T, text string) report {
	t.Helper()
	var r report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("the tenant says %q: %v", text, err)
	}
	return r
}

// use runs the tenant program in the pod, to its end.
func use(t *testing.T, pod *corev1.Pod, options string) report {
	t.Helper()
	return parse(t, run(t, pod, "main", command(options)...))
}

// tenant is the tenant program in a pod, set up, waiting for the word.
type tenant struct {
	t       *testing.T
	session *node.Session
}

func prepare(t *testing.T, pod *corev1.Pod, options string) *tenant {
	t.Helper()
	session := cluster.Talk(deadline(t, 2*soon), pod, "main", command("--wait "+options)...)
	if line, err := session.Line(); err != nil || line != "ready\n" {
		t.Fatalf("the tenant says %q (%v)", line, err)
	}
	return &tenant{t, session}
}

func (p *tenant) begin() {
	p.t.Helper()
	if err := p.session.GoOn(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *tenant) finish() report {
	p.t.Helper()
	line, err := p.session.Line()
	if err == nil {
		_, err = p.session.Line()
	}
	if err != io.EOF {
		p.t.Fatalf("the tenant says %q and ends with %v", line, err)
	}
	return parse(p.t, line)
}

// nodeView is a part of what the agent tells at /api/v1/node.
type nodeView struct {
	Config struct {
		Accepted int
		Refused  any
	}
	Sharing struct {
		Problem *string
		Pods    struct {
			HoldersKnown     bool
			AnnotationSource string
		}
		Slots []slotView
	}
}

type slotView struct {
	Slot             string
	MemoryLimitBytes *uint64
	MemoryUsedBytes  uint64
	Denials          int
	AuditAlarms      int
	Weight           float64
	Class            string
	TimeLimit        float64
	Governed         bool
	Reason           *string
	Processes        []struct {
		PID         int
		MemoryBytes uint64
		DriverBytes *uint64
		Governed    bool
	}
}

func fetchAPI(ctx context.Context) (nodeView, error) {
	var view nodeView
	// Not only of one that kubelet has found ready.
	pod, err := cluster.FindRondoPod(func(pod *corev1.Pod) bool { return pod.Status.PodIP != "" })
	if err != nil {
		return view, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+":9400/api/v1/node", nil)
	if err != nil {
		return view, err
	}
	request.Close = true // the next answer may come from another agent
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return view, err
	}
	defer response.Body.Close()
	return view, json.NewDecoder(response.Body).Decode(&view)
}

func api(t *testing.T) nodeView {
	t.Helper()
	var view nodeView
	untilAPI(t, "an answer", func(now nodeView) error { view = now; return nil })
	return view
}

// untilAPI asks the agent again and again until it says what is wanted.
func untilAPI(t *testing.T, what string, condition func(nodeView) error) {
	t.Helper()
	ctx := deadline(t, soon)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		view, missing := fetchAPI(ctx)
		if missing == nil {
			missing = condition(view)
		}
		if missing == nil {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s: %v", what, missing)
		}
	}
}

// slotOf is the name of the slot that the pod has.
func slotOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	return strings.TrimSpace(run(t, pod, "main", "sh", "-c", "echo $RONDO_SLOTS"))
}

// untilSlot waits until the agent says of the slot what is wanted, and returns
// all that it says.
func untilSlot(t *testing.T, name, what string, condition func(slotView) bool) slotView {
	t.Helper()
	var found slotView
	untilAPI(t, what, func(now nodeView) error {
		for _, slot := range now.Sharing.Slots {
			if slot.Slot == name {
				if found = slot; condition(slot) {
					return nil
				}
				text, _ := json.Marshal(slot)
				return fmt.Errorf("it is %s", text)
			}
		}
		return fmt.Errorf("there is no slot %s", name)
	})
	return found
}

func holdsBytes(bytes uint64) func(slotView) bool {
	return func(slot slotView) bool { return slot.MemoryUsedBytes == bytes }
}

func hasProcesses(count int) func(slotView) bool {
	return func(slot slotView) bool { return len(slot.Processes) == count }
}
