// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	containerdConfig = "/run/containerd/config.toml"
	networks         = "/run/cni"
	plugins          = "/usr/lib/cni" // Debian's containernetworking-plugins
)

// restrict_oom_score_adj: in a container this process may not lower the OOM
// score of another, and containerd would give up on each pod.
const (
	containerd2Config = `
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '%[1]s'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['%[2]s']
    conf_dir = '%[3]s'
`
	// 1.6, as Debian 12 has it. It knows no CDI.
	containerd1Config = `
version = 2
[plugins.'io.containerd.grpc.v1.cri']
  sandbox_image = '%[1]s'
  restrict_oom_score_adj = true
  [plugins.'io.containerd.grpc.v1.cri'.cni]
    bin_dir = '%[2]s'
    conf_dir = '%[3]s'
`
	// The node is the pods' gateway and all that they reach.
	network = `{
  "cniVersion": "0.4.0", "name": "pods",
  "plugins": [{
    "type": "bridge", "bridge": "pods0", "isGateway": true,
    "ipam": {
      "type": "host-local", "ranges": [[{"subnet": "203.0.113.0/24"}]],
      "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni-addresses"
    }
  }]
}
`
)

// startContainerd returns when containerd serves and holds the images.
func (n *Node) startContainerd(ctx context.Context, archives []string) error {
	config := containerd1Config
	if _, err := os.Stat(filepath.Join(n.bin, "containerd")); err == nil {
		config = containerd2Config // built with Kubernetes, not Debian's
	}
	for path, text := range map[string]string{
		containerdConfig:                         fmt.Sprintf(config, pauseImage, plugins, networks),
		filepath.Join(networks, "pods.conflist"): network,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, plugin := range []string{"bridge", "host-local", "loopback"} {
		if _, err := os.Stat(filepath.Join(plugins, plugin)); err != nil {
			return fmt.Errorf("CNI plugin is missing (%w): run tools/install-deps cluster", err)
		}
	}
	containerd, err := n.start("containerd", "--config="+containerdConfig)
	if err != nil {
		return err
	}
	err = containerd.untilReady(ctx, func(ctx context.Context) error {
		return n.ctr(ctx, "version")
	})
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if err := n.ctr(ctx, "-n", "k8s.io", "images", "import", archive); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) ctr(ctx context.Context, args ...string) error {
	path, err := n.find("ctr")
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %v: %w: %s", args, err, out)
	}
	return nil
}
