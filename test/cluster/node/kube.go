// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// Fixed, since each node has a network to itself; test/cluster/isolate has
// given both addresses to the node's interface. No kube-proxy runs, so the API
// server itself listens on the address of its own service.
const (
	name         = "rondo-node"
	address      = "192.0.2.10"
	services     = "198.51.100.0/24"
	firstService = "198.51.100.1"
	etcdURL      = "http://127.0.0.1:2379"
)

func (n *Node) issueCertificates() error {
	if err := os.MkdirAll(n.pki, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority(n.pki)
	if err != nil {
		return err
	}
	admins := []string{"system:masters"}
	if err := ca.issue("admin", "admin", admins); err != nil {
		return err
	}
	if err := ca.issue("apiserver", "apiserver", admins, address, firstService, "127.0.0.1", "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc"); err != nil {
		return err
	}
	if err := ca.issue("kubelet", "system:node:"+name, []string{"system:nodes"}, address, name); err != nil {
		return err
	}
	if err := ca.issue("accounts", "service accounts", nil); err != nil {
		return err
	}
	if err := ca.kubeconfig("kubelet", filepath.Join(n.pki, "kubelet.kubeconfig")); err != nil {
		return err
	}
	return ca.kubeconfig("admin", n.Kubeconfig)
}

// startControlPlane returns when the API server is ready to serve.
func (n *Node) startControlPlane(ctx context.Context) error {
	// On tmpfs, and worth nothing tomorrow: no fsync.
	etcd, err := n.start("etcd", "--data-dir=/var/lib/etcd", "--unsafe-no-fsync", "--logger=zap",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls=http://127.0.0.1:2380")
	if err != nil {
		return err
	}
	if err := etcd.untilReady(ctx, httpOK(etcdURL+"/health")); err != nil {
		return err
	}
	server, err := n.start("kube-apiserver",
		"--etcd-servers="+etcdURL,
		"--secure-port=443", "--advertise-address="+address, "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range="+services,
		"--authorization-mode=Node,RBAC", "--allow-privileged",
		"--client-ca-file="+n.cert("ca.crt"),
		"--tls-cert-file="+n.cert("apiserver.crt"), "--tls-private-key-file="+n.cert("apiserver.key"),
		"--kubelet-certificate-authority="+n.cert("ca.crt"),
		"--kubelet-client-certificate="+n.cert("apiserver.crt"), "--kubelet-client-key="+n.cert("apiserver.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+n.cert("accounts.crt"),
		"--service-account-signing-key-file="+n.cert("accounts.key"))
	if err != nil {
		return err
	}
	if err := server.untilReady(ctx, n.apiReady); err != nil {
		return err
	}
	var group errgroup.Group
	group.Go(func() error {
		_, err := n.start("kube-controller-manager", "--kubeconfig="+n.Kubeconfig,
			"--leader-elect=false", "--secure-port=0",
			"--root-ca-file="+n.cert("ca.crt"),
			"--service-account-private-key-file="+n.cert("accounts.key"),
			"--flex-volume-plugin-dir=/var/lib/flex-volume")
		return err
	})
	group.Go(func() error {
		_, err := n.start("kube-scheduler", "--kubeconfig="+n.Kubeconfig, "--leader-elect=false", "--secure-port=0")
		return err
	})
	return group.Wait()
}

func (n *Node) apiReady(ctx context.Context) error {
	_, err := n.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// kubeletConfig: what differs from kubelet's defaults, and why.
//   - failCgroupV1, failSwapOn: take the machine as it is.
//   - syncFrequency: a ConfigMap reaches the pod's volume at the next sync of
//     the pod, by default up to a minute later.
//   - nodeStatusUpdateFrequency: kubelet tells the API server of a changed
//     allocatable at this pace, by default 10 s.
//   - eviction and image collection: the disk is the machine's, don't judge it.
const kubeletConfig = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[2]s/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: %[2]s/kubelet.crt
tlsPrivateKeyFile: %[2]s/kubelet.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: %[3]s
failCgroupV1: false
failSwapOn: false
syncFrequency: 1s
nodeStatusUpdateFrequency: 1s
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: 0%%, imagefs.available: 0%%, nodefs.inodesFree: 0%%}
volumePluginDir: /var/lib/flex-volume
localStorageCapacityIsolation: false
`

func (n *Node) startKubelet() error {
	config := fmt.Sprintf(kubeletConfig, address, n.pki, n.cgroup)
	path := filepath.Join(n.pki, "kubelet.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return err
	}
	var err error
	n.kubelet, err = n.start("kubelet", "--config="+path, "--kubeconfig="+n.cert("kubelet.kubeconfig"),
		"--hostname-override="+name, "--node-ip="+address)
	return err
}
