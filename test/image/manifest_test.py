#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/rondo.yaml holds together, and fits the image and the agent that it starts."""

import os
import re
import subprocess
import unittest

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Unique(yaml.SafeLoader):
    """A loader that refuses a key given twice, as the API server's strict validation does."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.constructor.ConstructorError(None, None, f"a key is given twice: {keys}", node.start_mark)
        return super().construct_mapping(node, deep)


class ManifestTest(unittest.TestCase):

    def setUp(self):
        with open(os.path.join(ROOT, "deploy/rondo.yaml"), encoding="utf-8") as f:
            self.objects = {document["kind"]: document for document in yaml.load_all(f, Loader=Unique)}
        self.pod = self.objects["DaemonSet"]["spec"]["template"]["spec"]
        self.container, = self.pod["containers"]

    def test_it_holds_what_an_installation_needs_and_nothing_else(self):
        self.assertEqual({"Namespace", "ConfigMap", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet"},
                         set(self.objects))

    def test_the_namespace_comes_first_and_holds_the_rest(self):
        name = self.objects["Namespace"]["metadata"]["name"]
        self.assertEqual("Namespace", next(iter(self.objects)))
        for kind in ("ConfigMap", "ServiceAccount", "DaemonSet"):
            self.assertEqual(name, self.objects[kind]["metadata"]["namespace"], kind)

    def test_the_agent_has_the_rights_that_it_uses_and_no_other(self):
        self.assertEqual([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "watch"]},
                          {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
                          {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}],
                         self.objects["ClusterRole"]["rules"])
        binding = self.objects["ClusterRoleBinding"]
        self.assertEqual(self.objects["ClusterRole"]["metadata"]["name"], binding["roleRef"]["name"])
        account = self.objects["ServiceAccount"]["metadata"]
        self.assertEqual([(account["name"], account["namespace"])],
                         [(subject["name"], subject["namespace"]) for subject in binding["subjects"]])
        self.assertEqual(account["name"], self.pod["serviceAccountName"])

    def test_the_selector_finds_the_pods(self):
        spec = self.objects["DaemonSet"]["spec"]
        self.assertLessEqual(spec["selector"]["matchLabels"].items(), spec["template"]["metadata"]["labels"].items())

    def test_it_runs_the_image_that_tools_image_builds(self):
        usage = subprocess.run([os.path.join(ROOT, "tools/image"), "--help"],
                               capture_output=True, text=True, check=True)
        default = re.search(r"^  --tag TAG.*?\(default:\s*(\S+)\)", usage.stdout, re.DOTALL | re.MULTILINE)[1]
        self.assertEqual(default, self.container["image"])
        self.assertNotIn("command", self.container, "the image's entry point is the agent")

    def test_the_agent_knows_every_flag_and_variable_that_it_is_given(self):
        known = ""
        for name in ("src/agent/options.cc", "src/agent/own_options.h", "src/config/flag_table.h"):
            with open(os.path.join(ROOT, name), encoding="utf-8") as f:
                known += f.read()
        with open(os.path.join(ROOT, "src/agent/options.h"), encoding="utf-8") as f:
            own = f.read()
        for argument in self.container["args"]:
            self.assertIn(f'"{argument.partition("=")[0]}"', known)
        # The last is for NVIDIA's container runtime, not for the agent.
        for variable in {each["name"] for each in self.container["env"]} - {"NVIDIA_VISIBLE_DEVICES"}:
            self.assertIn(f'"{variable}"', known)
        mounts = {mount["mountPath"] for mount in self.container["volumeMounts"]}
        for default in ("/var/lib/kubelet/device-plugins", "/var/run/cdi", "/run/rondo"):
            self.assertIn(default, mounts, "a folder that the agent writes to by default")
        for socket in ("pod-resources", "pods-api"):
            self.assertIn(f"/var/lib/kubelet/{socket}", mounts, "a folder with a socket of kubelet's")
            self.assertIn(f'"/var/lib/kubelet/{socket}/', own, "the agent's default")

    def test_volumes_and_mounts_match(self):
        mounts = {mount["name"]: mount for mount in self.container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        self.assertEqual(set(volumes), set(mounts))
        self.assertEqual(self.objects["ConfigMap"]["metadata"]["name"], volumes["config"]["configMap"]["name"])
        self.assertNotIn("subPath", mounts["config"], "kubelet never updates a subPath")
        self.assertIn(f"--config-dir={mounts['config']['mountPath']}", self.container["args"])
        self.assertTrue(mounts["driver-root"]["readOnly"])
        for name in ("device-plugins", "state"):
            self.assertEqual(volumes[name]["hostPath"]["path"], mounts[name]["mountPath"],
                             f"{name}: must have one path for kubelet and the agent")

    def test_probes_ask_the_port_that_the_agent_listens_on(self):
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.assertIn(f"--listen=:{ports['http']}", self.container["args"])
        paths = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
        for probe, path in paths.items():
            self.assertEqual({"path": path, "port": "http"}, self.container[probe]["httpGet"])
        annotations = self.objects["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]
        self.assertEqual(str(ports["http"]), annotations["prometheus.io/port"])

    def test_each_privilege_stands_below_its_reason(self):
        with open(os.path.join(ROOT, "deploy/rondo.yaml"), encoding="utf-8") as f:
            lines = [line.strip() for line in f]
        for privilege in ("privileged: true", "pod-security.kubernetes.io/enforce: privileged",
                          "hostPID: true"):
            for number in [i for i, line in enumerate(lines) if line == privilege]:
                self.assertTrue(lines[number - 1].startswith("#"), f"line {number + 1}: {privilege} without a comment")


if __name__ == "__main__":
    unittest.main()
