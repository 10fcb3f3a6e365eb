// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rondo/test/cluster/node"
)

// In all of these the limit of a slot is 2 GiB, and chunks are of 64 MiB.
const (
	limited = "memory: enforce, slotMemory: 2Gi"
	limit   = 2 * gib
	chunk   = 64 * mib
	tooMuch = "--memory 4096 --chunk 64 "
)

// isLimited: the program was refused what is too much, had all up to there,
// went on, and saw a GPU of the limit's size.
func isLimited(r report) error {
	switch {
	case !strings.Contains(r.MemoryDenied, "OUT_OF_MEMORY"):
		return fmt.Errorf("nothing was refused: %+v", r)
	case r.MemoryBytes < limit/2 || r.MemoryBytes >= limit:
		return fmt.Errorf("it got %d MiB: %+v", r.MemoryBytes/mib, r)
	case r.TotalBytes != limit || r.FreeBytes >= chunk:
		return fmt.Errorf("it sees %d of %d MiB free", r.FreeBytes/mib, r.TotalBytes/mib)
	case r.Requests == 0:
		return fmt.Errorf("it did no work after that: %+v", r)
	}
	return nil
}

func TestMemoryLimit(t *testing.T) {
	govern(t, limited)
	pods := createAll(t, tenantPod("hog"), tenantPod("modest"))
	untilRunning(t, pods...)
	slot := slotOf(t, pods[0])

	hog := prepare(t, pods[0], tooMuch+"--seconds 0.5")
	held := untilSlot(t, slot, "the driver's own numbers", func(now slotView) bool {
		return len(now.Processes) == 1 && now.Processes[0].DriverBytes != nil &&
			*now.Processes[0].DriverBytes == now.MemoryUsedBytes
	})
	if held.MemoryUsedBytes <= limit-chunk || held.MemoryUsedBytes > limit || held.Denials == 0 || !held.Governed {
		t.Errorf("the hog's slot is %+v", held)
	}
	if pids, err := node.Processes(pods[0], node.TenantProgram); err != nil || !slices.Equal(pids, []int{held.Processes[0].PID}) {
		t.Errorf("its process is %v (%v), not the %d that the agent speaks of", pids, err, held.Processes[0].PID)
	}

	// Beside it, another has all of its own.
	if r := use(t, pods[1], "--memory 1024 --chunk 64 --seconds 0"); r.MemoryDenied != "" || r.MemoryBytes != gib {
		t.Errorf("the neighbour got %+v", r)
	}
	hog.begin()
	if err := isLimited(hog.finish()); err != nil {
		t.Error(err)
	}
	untilSlot(t, slot, "it to give everything back", holdsBytes(0))
}

// restricted is what a cluster with the level "restricted" demands, and more:
// nobody's user, nothing to write to.
func restricted(name string) *corev1.Pod {
	yes, no, nobody := true, false, int64(65534)
	container := tenantContainer()
	container.SecurityContext = &corev1.SecurityContext{
		RunAsUser: &nobody, RunAsGroup: &nobody, RunAsNonRoot: &yes,
		ReadOnlyRootFilesystem: &yes, AllowPrivilegeEscalation: &no,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	return podOfTenant(name, container)
}

// Each way of injection, whatever the container may do.
func TestInjection(t *testing.T) {
	for _, injection := range []string{"env", "file", "cdi"} {
		t.Run(injection, func(t *testing.T) {
			govern(t, limited+", injection: "+injection)
			pods := createAll(t, restricted("restricted"), tenantPod("plain"))
			untilRunning(t, pods...)
			for _, pod := range pods {
				if err := isLimited(use(t, pod, tooMuch+"--seconds 0.1")); err != nil {
					t.Errorf("%s: %v", pod.Name, err)
				}
			}
			if injection == "file" { // needs no variable
				bare := append([]string{"env", "-i", "PATH=/bin", "LD_LIBRARY_PATH=/driver"}, command(tooMuch+"--seconds 0.1")...)
				if err := isLimited(parse(t, run(t, pods[1], "main", bare...))); err != nil {
					t.Errorf("under env -i: %v", err)
				}
			}
			const look = `echo "$LD_PRELOAD"; id -u; grep -w Seccomp: /proc/self/status; touch /here 2>&1; true`
			want := "/usr/local/rondo/librondo.so"
			if injection == "file" {
				want = ""
			}
			want += "\n65534\nSeccomp:\t2\ntouch: /here: Read-only file system\n"
			if got := run(t, pods[0], "main", "sh", "-c", look); got != want {
				t.Errorf("the container is not what it should be: %q, want %q", got, want)
			}
		})
	}
}

func TestEqualShares(t *testing.T) {
	govern(t, limited)
	pods := createAll(t, tenantPod("one"), tenantPod("two"))
	untilRunning(t, pods...)
	wantRatio(t, compete(t, pods), 1)
}

// wantRatio: the first share is about so many times the second. The pods do not
// begin and end at the very same time.
func wantRatio(t *testing.T, shares []float64, want float64) {
	t.Helper()
	if got := shares[0] / shares[1]; got < want*0.87 || got > want*1.15 {
		t.Errorf("shares are %.3f, want %v : 1", shares, want)
	}
}

// mostly is what a share of the whole GPU is at least. A simulated GPU that the
// machine holds up for more than 250 ms gives up that time, for everybody.
const mostly = 0.7

// compete lets all pods want the GPU at the same time, and returns the share
// that each got.
func compete(t *testing.T, pods []*corev1.Pod) []float64 {
	t.Helper()
	var tenants []*tenant
	for _, pod := range pods { // one by one: each measures its kernel alone
		tenants = append(tenants, prepare(t, pod, "--kernel-us 1000 --warmup 0.7 --seconds 2"))
	}
	for _, tenant := range tenants {
		tenant.begin()
	}
	var shares []float64
	sum := 0.0
	for _, tenant := range tenants {
		r := tenant.finish()
		shares = append(shares, r.Share)
		sum += r.Share
	}
	t.Logf("shares: %.3f", shares)
	if sum < mostly || sum > 1.1 {
		t.Errorf("shares are %v: together they should be the GPU", shares)
	}
	return shares
}

// However a pod ends, its slot is empty then.
func TestEndOfAPod(t *testing.T) {
	govern(t, limited)
	now := int64(0)
	for name, end := range map[string]func(*testing.T, *corev1.Pod){
		"killed": func(t *testing.T, pod *corev1.Pod) {
			pids, err := node.Processes(pod, node.TenantProgram)
			if err != nil || len(pids) != 1 {
				t.Fatalf("processes %v (%v)", pids, err)
			}
			if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
		"deleted by force": func(t *testing.T, pod *corev1.Pod) {
			err := cluster.Client.CoreV1().Pods(pod.Namespace).Delete(deadline(t, soon), pod.Name,
				metav1.DeleteOptions{GracePeriodSeconds: &now})
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			container := tenantContainer() // the program is all that runs in it
			container.Command = command("--memory 1024 --chunk 64 --kernel-us 1000 --seconds 600")
			pod := create(t, podOfTenant("holder", container))
			untilRunning(t, pod)
			slot := slotOf(t, pod)
			untilSlot(t, slot, "it to hold memory", func(now slotView) bool { return now.MemoryUsedBytes > gib })
			end(t, pod)
			untilSlot(t, slot, "it to give everything back", func(now slotView) bool {
				return now.MemoryUsedBytes == 0 && len(now.Processes) == 0
			})
		})
	}
}
