// SPDX-License-Identifier: Apache-2.0

// Package node turns the namespaces that test/cluster/isolate made into a
// Kubernetes cluster of one node: etcd, the control plane, containerd and
// kubelet, all real.
//
// Use it from one goroutine. Nothing needs to be stopped: when the caller's
// process ends, so does everything that it started.
package node

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Node is a running cluster of one node.
type Node struct {
	Name       string
	Kubeconfig string // of an administrator; a path that is the same outside
	Client     kubernetes.Interface
	View       *View
	Driver     *Driver // nil until InstallDriver

	config  *rest.Config
	tree    string // the project's
	bin     string // the executables of test/cluster/build
	pki     string
	cgroup  string
	kubelet *process
}

// Start returns when the node is Ready and holds Rondo's image. Where things
// are comes from the environment that isolate and run have set; what is missing
// is named in the error.
func Start(ctx context.Context) (*Node, error) {
	n := &Node{
		Name:       name,
		Kubeconfig: filepath.Join(os.Getenv("RONDO_NODE_DIR"), "kubeconfig"),
		tree:       os.Getenv("RONDO_TREE"),
		bin:        os.Getenv("RONDO_KUBE_BIN"),
		pki:        "/run/pki",
		cgroup:     os.Getenv("RONDO_NODE_CGROUP"),
	}
	if n.cgroup == "" || n.bin == "" || n.tree == "" {
		return nil, fmt.Errorf("not in a node's namespaces: start this by test/cluster/run or test/cluster/up")
	}
	image := filepath.Join(n.tree, "build/image/rondo.tar")
	if _, err := os.Stat(image); err != nil {
		return nil, fmt.Errorf("%w: run `make image`", err)
	}
	if err := n.issueCertificates(); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	var err error
	if n.config, err = clientcmd.BuildConfigFromFlags("", n.Kubeconfig); err != nil {
		return nil, err
	}
	n.config.QPS, n.config.Burst = 200, 200 // its own API server: no need to be shy
	if n.Client, err = kubernetes.NewForConfig(n.config); err != nil {
		return nil, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.startControlPlane(groupCtx) })
	group.Go(func() error {
		own := "/run/images.tar"
		if err := writeImages(own, filepath.Join(n.tree, "build/release/bin", TenantProgram)); err != nil {
			return err
		}
		return n.startContainerd(groupCtx, []string{own, image})
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := n.startKubelet(); err != nil {
		return nil, err
	}
	if n.View, err = newView(ctx, n.Client); err != nil {
		return nil, err
	}
	return n, n.View.Until(ctx, "the node to be Ready", n.ready)
}

func (n *Node) ready() error {
	node, err := n.View.Nodes.Get(n.Name)
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("conditions: %v", node.Status.Conditions)
}

// RestartKubelet kills kubelet, starts it again, and returns when the new one
// started.
func (n *Node) RestartKubelet() (time.Time, error) {
	n.kubelet.kill()
	return time.Now(), n.startKubelet()
}

// Kubectl runs the kubectl of the cluster's version.
func (n *Node) Kubectl(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(n.bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %v: %w: %s", args, err, out)
	}
	return nil
}

// find prefers what was built for this version of Kubernetes to Debian's.
func (n *Node) find(program string) (string, error) {
	if path, err := exec.LookPath(filepath.Join(n.bin, program)); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%w: run tools/install-deps cluster", err)
	}
	return path, nil
}

func (n *Node) start(program string, args ...string) (*process, error) {
	path, err := n.find(program)
	if err != nil {
		return nil, err
	}
	return startProcess(path, args...)
}

func (n *Node) cert(file string) string { return filepath.Join(n.pki, file) }

func httpOK(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, response.Status)
		}
		return nil
	}
}
