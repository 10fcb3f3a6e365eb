// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rondo/test/cluster/node"
)

// managerEnv is what the init container and the sidecar have in common.
const managerEnv = `
        - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: NODE_LABEL, value: nvidia.com/device-plugin.config}
        - {name: CONFIG_FILE_SRCDIR, value: /available-configs}
        - {name: CONFIG_FILE_DST, value: /config/config.yaml}
        - {name: DEFAULT_CONFIG, value: default}`

// withConfigManager makes of the DaemonSet what the GPU Operator makes: an init
// container that links the config of the node's label, the plugin, by NVIDIA's
// name, that reads the link, and a sidecar that follows the label and signals.
const withConfigManager = `
spec:
  template:
    spec:
      initContainers:
      - name: config-manager-init
        image: docker.io/library/rondo:0.1.0
        command: [config-manager]
        env:` + managerEnv + `
        - {name: SEND_SIGNAL, value: "false"}
        - {name: ONESHOT, value: "true"}
        volumeMounts: &mounts
        - {name: config, mountPath: /available-configs}
        - {name: link, mountPath: /config}
      containers:
      - name: rondo
        command: [nvidia-device-plugin]
        args: [--listen=:9400]
        env:
        - {name: CONFIG_FILE, value: /config/config.yaml}
        volumeMounts: *mounts
      - name: config-manager
        image: docker.io/library/rondo:0.1.0
        command: [config-manager]
        env:` + managerEnv + `
        - {name: SEND_SIGNAL, value: "true"}
        - {name: SIGNAL, value: "1"}
        - {name: PROCESS_TO_SIGNAL, value: nvidia-device-plugin}
        volumeMounts: *mounts
      volumes:
      - {name: link, emptyDir: {}}
`

// untilAgent waits for an agent's pod that has so many containers, and runs
// them.
func untilAgent(t *testing.T, containers int) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	until(t, soon, fmt.Sprintf("an agent's pod of %d containers", containers), func() error {
		pod, err := cluster.RondoPod()
		if err != nil {
			return err
		}
		if got := len(pod.Spec.Containers); got != containers {
			return fmt.Errorf("%s has %d containers", pod.Name, got)
		}
		found = pod
		return nil
	})
	return found
}

func TestConfigManager(t *testing.T) {
	configure(t, replicas(4), gpu, 4)
	edit(t, map[string]string{
		node.RondoConfigKey: replicas(4), "inference": replicas(2), "notebooks": replicas(6),
	})
	file := filepath.Join(t.TempDir(), "patch.yaml")
	if err := os.WriteFile(file, []byte(withConfigManager), 0o644); err != nil {
		t.Fatal(err)
	}
	daemonSet := func(args ...string) {
		t.Helper()
		if err := cluster.Kubectl(deadline(t, soon), append([]string{"-n", node.RondoNamespace}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	label(t, "notebooks")
	t.Cleanup(func() { label(t, nil) })
	daemonSet("patch", "daemonset/rondo", "--patch-file="+file)
	t.Cleanup(func() {
		daemonSet("rollout", "undo", "daemonset/rondo")
		untilAgent(t, 1)
	})

	agent := untilAgent(t, 2)
	until(t, soon, "the config that the init container linked", allocatable(gpu, 6))
	before := started(t, []*corev1.Pod{agent})
	pods := createAll(t, gpuPods(2, "busy", gpu)...)
	untilRunning(t, pods...)
	running := started(t, pods)
	for _, step := range []struct {
		label any
		want  int64
	}{{"inference", 2}, {"notebooks", 6}, {nil, 4}} {
		at := time.Now()
		label(t, step.label)
		until(t, soon, fmt.Sprintf("the config of label %v", step.label), allocatable(gpu, step.want))
		within(t, applied+time.Second, at, fmt.Sprintf("label %v", step.label))
	}
	// The linked config is edited: no label changes, and nobody restarts.
	swap := edit(t, map[string]string{
		node.RondoConfigKey: replicas(5), "inference": replicas(2), "notebooks": replicas(6),
	})
	until(t, soon, "the edit", allocatable(gpu, 5))
	within(t, applied, swap, "edit")
	if after := started(t, []*corev1.Pod{agent}); after != before {
		t.Errorf("the agent or config-manager was restarted:\n%s\nthen\n%s", before, after)
	}
	if after := started(t, pods); after != running {
		t.Errorf("pods were restarted:\n%s\nthen\n%s", running, after)
	}
}
