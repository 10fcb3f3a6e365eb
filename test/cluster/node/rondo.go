// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// What deploy/rondo.yaml calls things.
const (
	RondoNamespace = "rondo"
	RondoConfigMap = "rondo-config"
	RondoConfigKey = "default"
	rondoLabel     = "app.kubernetes.io/name=rondo"
)

// kustomization is the manifest and one thing beside it: the way to the node's
// simulated kernel driver, which on a real node is the kernel's own.
const kustomization = `
resources: [rondo.yaml]
patches:
- target: {kind: DaemonSet, name: rondo}
  patch: |
    - op: add
      path: /spec/template/spec/containers/0/env/-
      value: {name: LD_PRELOAD, value: /driver-root` + DriverLibraries + "/" + interposer + `}
`

// InstallRondo applies the manifest and returns when the agent is ready.
func (n *Node) InstallRondo(ctx context.Context) error {
	manifest, err := os.ReadFile(filepath.Join(n.tree, "deploy/rondo.yaml"))
	if err != nil {
		return err
	}
	const folder = "/run/rondo-manifest"
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"rondo.yaml": manifest, "kustomization.yaml": []byte(kustomization)} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return err
		}
	}
	if err := n.Kubectl(ctx, "apply", "-k", folder); err != nil {
		return err
	}
	return n.View.Until(ctx, "Rondo's DaemonSet to be ready", func() error {
		_, err := n.RondoPod()
		return err
	})
}

// RondoPod returns the agent's pod: the one that is ready and not on its way
// out.
func (n *Node) RondoPod() (*corev1.Pod, error) {
	return n.FindRondoPod(isReady)
}

// FindRondoPod returns the pod of an agent, not on its way out, that is as
// wanted.
func (n *Node) FindRondoPod(wanted func(*corev1.Pod) bool) (*corev1.Pod, error) {
	selector, err := labels.Parse(rondoLabel)
	if err != nil {
		return nil, err
	}
	pods, err := n.View.Pods.Pods(RondoNamespace).List(selector)
	if err != nil {
		return nil, err
	}
	var seen []string
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && wanted(pod) {
			return pod, nil
		}
		seen = append(seen, fmt.Sprintf("%s: %s, ready: %v, deleted: %v", pod.Name, pod.Status.Phase, isReady(pod), pod.DeletionTimestamp))
	}
	return nil, fmt.Errorf("no such pod among %q", seen)
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Processes returns the ids of the processes of a pod whose executable has
// this name. (The node's processes are all in this pid namespace.)
func Processes(pod *corev1.Pod, executable string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process that ends meanwhile has no files to read.
		cgroups, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup"))
		path, _ := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		if bytes.Contains(cgroups, []byte(pod.UID)) && strings.TrimSuffix(filepath.Base(path), " (deleted)") == executable {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// ConfigMapVolume returns the folder in which kubelet keeps the files of the
// pod's ConfigMap.
func ConfigMapVolume(pod *corev1.Pod, configMap string) (string, error) {
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap != nil && volume.ConfigMap.Name == configMap {
			return filepath.Join("/var/lib/kubelet/pods", string(pod.UID), "volumes/kubernetes.io~configmap", volume.Name), nil
		}
	}
	return "", fmt.Errorf("%s has no volume of ConfigMap %s", pod.Name, configMap)
}
