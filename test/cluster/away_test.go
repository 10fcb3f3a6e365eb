// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rondo/test/cluster/node"
)

// known is how soon after its start the agent knows again who holds what. Of
// this, kubelet takes about a second to tell that there is a new one.
const known = 3 * time.Second

// Pods use their slots while one agent goes and another comes.
func TestAgentChangesUnderTenants(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *corev1.Pod){
		"rollout": func(t *testing.T, _ *corev1.Pod) {
			if err := cluster.Kubectl(deadline(t, soon), "-n", node.RondoNamespace, "rollout", "restart", "daemonset/rondo"); err != nil {
				t.Fatal(err)
			}
		},
		"killed": func(t *testing.T, pod *corev1.Pod) { signal(t, pod, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			govern(t, limited)
			pods := createAll(t, tenantPod("holder"), tenantPod("busy"))
			untilRunning(t, pods...)
			before := started(t, pods)
			slot := slotOf(t, pods[0])
			holder := prepare(t, pods[0], "--memory 768 --more 4096 --chunk 64 --seconds 0.1")
			held := untilSlot(t, slot, "it to hold memory", func(now slotView) bool { return now.MemoryUsedBytes > 768*mib })
			busy := prepare(t, pods[1], "--kernel-us 1000 --seconds 5")
			busy.begin()

			old, err := cluster.RondoPod()
			if err != nil {
				t.Fatal(err)
			}
			end(t, old)
			at := startOfNextProcess(t, old)
			now := untilSlot(t, slot, "the new agent to know it", holdsBytes(held.MemoryUsedBytes))
			within(t, known, at, "the new agent's knowledge")
			if !now.Governed || now.Processes[0].PID != held.Processes[0].PID {
				t.Errorf("the slot was %+v and is %+v", held, now)
			}
			if r := busy.finish(); r.Share < mostly {
				t.Errorf("alone on the GPU, it was held up: %+v", r)
			}
			holder.begin()
			if err := isLimited(holder.finish()); err != nil {
				t.Errorf("by the new agent: %v", err)
			}
			if after := started(t, pods); after != before {
				t.Errorf("pods were restarted:\n%s\nthen\n%s", before, after)
			}
		})
	}
}

// takeAgentAway kills the agent, and none follows until the returned function
// is called.
func takeAgentAway(t *testing.T) (bringBack func()) {
	t.Helper()
	old, err := cluster.RondoPod()
	if err != nil {
		t.Fatal(err)
	}
	send := func(selector string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{"rondo.test/nowhere":%s}}}}}`, selector)
		_, err := cluster.Client.AppsV1().DaemonSets(node.RondoNamespace).Patch(
			ctx, "rondo", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
	}
	away := true
	bringBack = func() {
		if away {
			send("null")
			startOfNext(t, old)
		}
		away = false
	}
	t.Cleanup(bringBack)
	// Stopped, it can't take leave of anybody; kubelet starts no container of
	// a pod again that is to be deleted.
	signal(t, old, syscall.SIGSTOP)
	send(`"x"`)
	until(t, soon, "the agent's pod to be deleted", func() error {
		now, err := current(old)
		if err != nil {
			return err
		}
		if now.DeletionTimestamp == nil {
			return fmt.Errorf("%s is %s", now.Name, now.Status.Phase)
		}
		return nil
	})
	signal(t, old, syscall.SIGKILL)
	until(t, soon, "the agent's pod to be gone", func() error {
		if _, err := current(old); err == nil {
			return fmt.Errorf("%s is still there", old.Name)
		}
		return nil
	})
	return bringBack
}

// onAgentLoss: closed. Who is full stays full; who is not, is not hindered.
func TestLimitsHoldWithoutTheAgent(t *testing.T) {
	govern(t, limited)
	pods := createAll(t, tenantPod("hog"), tenantPod("modest"), tenantPod("holder"))
	untilRunning(t, pods...)
	before := started(t, pods)
	var slots []string
	for _, pod := range pods {
		slots = append(slots, slotOf(t, pod))
	}
	hog := prepare(t, pods[0], "--memory 512 --more 4096 --chunk 64 --seconds 0.5")
	modest := prepare(t, pods[1], "--memory 512 --more 512 --chunk 64 --seconds 0.5")
	holder := prepare(t, pods[2], "--memory 512 --more 4096 --chunk 64 --seconds 0.1")
	held := untilSlot(t, slots[2], "it to hold memory", func(now slotView) bool { return now.MemoryUsedBytes > 512*mib })

	bringBack := takeAgentAway(t)
	hog.begin()
	if err := isLimited(hog.finish()); err != nil {
		t.Errorf("without an agent: %v", err)
	}
	modest.begin()
	if r := modest.finish(); r.MemoryDenied != "" || r.MemoryBytes != gib || r.Requests == 0 {
		t.Errorf("without an agent, the neighbour got %+v", r)
	}

	bringBack()
	untilSlot(t, slots[2], "the new agent to know it", holdsBytes(held.MemoryUsedBytes))
	for _, slot := range slots[:2] {
		untilSlot(t, slot, "nothing of who ended meanwhile", holdsBytes(0))
	}
	holder.begin()
	if err := isLimited(holder.finish()); err != nil {
		t.Errorf("by the new agent: %v", err)
	}
	if after := started(t, pods); after != before {
		t.Errorf("pods were restarted:\n%s\nthen\n%s", before, after)
	}
}
