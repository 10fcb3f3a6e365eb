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

// InstallRondo applies the manifest as it is, and nothing else, and returns
// when the agent is ready.
func (n *Node) InstallRondo(ctx context.Context) error {
	if err := n.Kubectl(ctx, "apply", "-f", filepath.Join(n.tree, "deploy/rondo.yaml")); err != nil {
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
		if pod.DeletionTimestamp == nil && isReady(pod) {
			return pod, nil
		}
		seen = append(seen, fmt.Sprintf("%s %s %v", pod.Name, pod.Status.Phase, pod.Status.ContainerStatuses))
	}
	return nil, fmt.Errorf("no ready pod among %q", seen)
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
