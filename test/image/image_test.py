#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The image as its users meet it: what a registry sees, what kubelet starts, what the GPU Operator's script finds.

Usage: image_test.py --binary build/release/bin/rondo [unittest's options]
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import ssl
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = ""
MAX_BYTES = 40_000_000
# Fewer than Mozilla's list has ever had; the point is that the bundle is neither empty nor one machine's own.
MIN_CERTIFICATES = 100


def build(*args, tool=os.path.join(ROOT, "tools/image"), cwd=None, **env):
    done = subprocess.run([tool, "--binary", BINARY, *args], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, **env})
    if done.returncode:
        raise AssertionError(f"tools/image: {done.stderr}")
    return done.stdout


def enter(root, *command):
    """Runs command with root as its /, as root inside: by right, or in a user namespace."""
    become = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
    return subprocess.run([*become, chroot, root, *command], capture_output=True, text=True, timeout=30,
                          env={"PATH": "/usr/bin:/bin"})


def setUpModule():
    global scratch, archive
    scratch = tempfile.TemporaryDirectory(prefix="rondo-image-test-")
    archive = os.path.join(scratch.name, "rondo.tar")
    build("--out", archive)


def tearDownModule():
    scratch.cleanup()


class Archive:
    """A reader of OCI layouts that knows nothing of the writer."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
        self.index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))

    def blob(self, descriptor):
        return self.files["blobs/" + descriptor["digest"].replace(":", "/")]

    def extract(self, root):
        for layer in self.manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(self.blob(layer)), mode="r:gz") as tar:
                tar.extractall(root, numeric_owner=True)


class LayoutTest(unittest.TestCase):

    def setUp(self):
        self.archive = Archive(archive)

    def test_every_blob_has_the_digest_and_size_that_it_is_named_by(self):
        manifest = self.archive.manifest
        for descriptor in [self.archive.index["manifests"][0], manifest["config"], *manifest["layers"]]:
            data = self.archive.blob(descriptor)
            self.assertEqual("sha256:" + hashlib.sha256(data).hexdigest(), descriptor["digest"])
            self.assertEqual(len(data), descriptor["size"])

    def test_the_config_names_the_layers_by_their_unpacked_digests(self):
        unpacked = [gzip.decompress(self.archive.blob(layer)) for layer in self.archive.manifest["layers"]]
        self.assertEqual(["sha256:" + hashlib.sha256(data).hexdigest() for data in unpacked],
                         self.archive.config["rootfs"]["diff_ids"])

    def test_containerd_and_docker_load_it_under_the_same_name(self):
        annotations = self.archive.index["manifests"][0]["annotations"]
        docker = json.loads(self.archive.files["manifest.json"])
        self.assertEqual([annotations["io.containerd.image.name"]], docker[0]["RepoTags"])
        self.assertTrue(docker[0]["RepoTags"][0].endswith(":" + annotations["org.opencontainers.image.ref.name"]))
        self.assertIn(docker[0]["Config"], self.archive.files)
        self.assertLessEqual(set(docker[0]["Layers"]), set(self.archive.files))

    def test_it_starts_the_agent(self):
        self.assertEqual(["/usr/bin/rondo", "agent"], self.archive.config["config"]["Entrypoint"])

    def test_it_stays_small(self):
        self.assertLess(os.path.getsize(archive), MAX_BYTES)

    def test_it_says_for_which_machine_it_is(self):
        with open(BINARY, "rb") as f:
            machine = struct.unpack_from("<H", f.read(20), 18)[0]
        self.assertEqual({62: "amd64", 183: "arm64"}[machine], self.archive.config["architecture"])

    def test_tag_names_the_image(self):
        out = os.path.join(scratch.name, "tagged.tar")
        build("--out", out, "--tag", "registry.example.com:5000/gpu/rondo:edge")
        annotations = Archive(out).index["manifests"][0]["annotations"]
        self.assertEqual("registry.example.com:5000/gpu/rondo:edge", annotations["io.containerd.image.name"])
        self.assertEqual("edge", annotations["org.opencontainers.image.ref.name"])


class ContainerfileTest(unittest.TestCase):

    def test_it_ends_in_the_same_config(self):
        with open(os.path.join(ROOT, "Containerfile"), encoding="utf-8") as f:
            final = f.read().replace("\\\n", " ").split("\nFROM scratch\n")[1]
        config = Archive(archive).config["config"]
        self.assertEqual(config["Entrypoint"], json.loads(re.search(r"^ENTRYPOINT (.*)", final, re.MULTILINE)[1]))
        self.assertEqual(config["Env"], re.findall(r"^ENV (.*)", final, re.MULTILINE))
        self.assertEqual(config["User"], re.search(r"^USER (.*)", final, re.MULTILINE)[1])
        self.assertEqual(config["WorkingDir"], re.search(r"^WORKDIR (.*)", final, re.MULTILINE)[1])
        self.assertEqual(config["Labels"], dict(re.findall(r'(org\.[\w.]+)="([^"]*)"', final)))


class ReproducibleTest(unittest.TestCase):

    def test_the_executable_does_not_know_where_it_was_built(self):
        # What a compiler writes of paths (__FILE__, assertions) would make two checkouts differ.
        rondo = os.path.join(scratch.name, "stripped")
        subprocess.run(["strip", "-o", rondo, BINARY], check=True)
        with open(rondo, "rb") as f:
            data = f.read()
        for folder in (ROOT, os.path.dirname(BINARY)):
            self.assertFalse(folder.encode() in data, f"{folder} stands in the executable")

    def test_another_checkout_folder_umask_and_time_zone_give_the_same_bytes(self):
        checkout = os.path.join(scratch.name, "another", "checkout")
        os.makedirs(checkout)
        shutil.copytree(os.path.join(ROOT, "tools"), os.path.join(checkout, "tools"))
        for name in ("CMakeLists.txt", "LICENSE"):
            shutil.copy(os.path.join(ROOT, name), checkout)
        out = os.path.join(scratch.name, "again.tar")
        before = os.umask(0o077)
        try:
            build("--out", out, tool=os.path.join(checkout, "tools/image"), cwd=checkout, TZ="Asia/Kathmandu",
                  LC_ALL="C", PYTHONHASHSEED="7", HOME="/nonexistent")
        finally:
            os.umask(before)
        with open(archive, "rb") as first, open(out, "rb") as second:
            self.assertTrue(first.read() == second.read(), "the two tars differ")

    def test_source_date_epoch_is_the_only_time_inside(self):
        out = os.path.join(scratch.name, "dated.tar")
        build("--out", out, SOURCE_DATE_EPOCH="1000000000")
        dated = Archive(out)
        self.assertEqual("2001-09-09T01:46:40Z", dated.config["created"])
        for layer in dated.manifest["layers"]:
            with tarfile.open(fileobj=io.BytesIO(dated.blob(layer))) as tar:
                self.assertEqual({(1000000000, 0, 0)}, {(m.mtime, m.uid, m.gid) for m in tar})


class RootTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.root = os.path.join(scratch.name, "root")
        Archive(archive).extract(cls.root)

    def path(self, name):
        return os.path.join(self.root, name.lstrip("/"))

    def test_rondo_runs_in_it_and_is_the_version_on_the_label(self):
        done = enter(self.root, "/usr/bin/rondo", "version")
        label = Archive(archive).config["config"]["Labels"]["org.opencontainers.image.version"]
        self.assertEqual((0, f"rondo {label}\n"), (done.returncode, done.stdout), done.stderr)

    def test_every_library_inside_finds_its_own(self):
        folder = next(f"/usr/lib/{name}" for name in os.listdir(self.path("/usr/lib")) if name.endswith("-linux-gnu"))
        loader = next(f"{top}/{name}" for top in ("/lib64", "/lib") if os.path.isdir(self.path("/usr" + top))
                      for name in os.listdir(self.path("/usr" + top)) if name.startswith("ld-linux"))
        objects = ["/usr/bin/rondo", *(f"{folder}/{name}" for name in os.listdir(self.path(folder)) if ".so" in name)]
        self.assertIn(f"{folder}/libcurl-gnutls.so.4", objects)
        for path in objects:
            done = enter(self.root, loader, "--list", path)
            self.assertEqual((0, ""), (done.returncode, done.stderr), path)
            self.assertNotIn("not found", done.stdout, path)

    def test_a_driver_linked_before_glibc_2_34_finds_its_libraries(self):
        for name in ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libm.so.6", "libc.so.6"):
            self.assertTrue(any(name in files for _, _, files in os.walk(self.path("/usr/lib"))), name)

    def test_the_operators_shell_script_can_run(self):
        # The words of the GPU Operator's entrypoint.sh: wait for a file, source it, look for modules, exec by name.
        script = """
            set -o allexport
            until [ -f /tmp/driver-ready ]; do sleep 1; done
            cat /tmp/driver-ready
            . /tmp/driver-ready
            if lsmod | grep -q "^gdrdrv "; then echo "gdrdrv with $NVIDIA_DRIVER_ROOT"; fi
            if lsmod | grep -q "^nvidia_fs "; then echo nvidia_fs; fi
            exec rondo version
        """
        with open(self.path("/tmp/driver-ready"), "w") as f:
            f.write("NVIDIA_DRIVER_ROOT=/run/nvidia/driver\n")
        with open(self.path("/proc/modules"), "w") as f:
            f.write("gdrdrv 24576 0 - Live 0x0000000000000000\nnvidia 9 0 - Live 0x0000000000000000\n")
        done = enter(self.root, "/bin/sh", "-c", script)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(["NVIDIA_DRIVER_ROOT=/run/nvidia/driver", "gdrdrv with /run/nvidia/driver"],
                         done.stdout.splitlines()[:2])
        self.assertRegex(done.stdout, r"rondo [\d.]+\n$")

    def test_it_answers_to_the_names_of_nvidias_image_that_it_replaces_and_no_others(self):
        for name in ("nvidia-device-plugin", "config-manager"):
            self.assertEqual("rondo", os.readlink(self.path(f"/usr/bin/{name}")))
        for name in ("gpu-feature-discovery", "mps-control-daemon"):
            self.assertFalse(os.path.lexists(self.path(f"/usr/bin/{name}")), name)

    def test_certificates_are_mozillas_and_not_this_machines(self):
        bundle = self.path("/etc/ssl/certs/ca-certificates.crt")
        trusted = ssl.create_default_context(cafile=bundle).get_ca_certs(binary_form=True)
        self.assertGreater(len(trusted), MIN_CERTIFICATES)
        local = "/usr/local/share/ca-certificates"
        with open(bundle, encoding="ascii") as f:
            text = f.read()
        for name in os.listdir(local) if os.path.isdir(local) else []:
            with open(os.path.join(local, name), encoding="ascii", errors="replace") as f:
                self.assertNotIn(f.read().strip(), text, name)

    def test_each_package_inside_is_recorded_with_its_licence(self):
        records = os.listdir(self.path("/var/lib/dpkg/status.d"))
        self.assertLessEqual({"libc6", "busybox-static", "ca-certificates", "libgrpc++-dev"}, set(records))
        for name in records:
            with open(self.path(f"/var/lib/dpkg/status.d/{name}"), encoding="utf-8") as f:
                self.assertRegex(f.read(), rf"^Package: {re.escape(name)}\nVersion: \S+\nArchitecture: \S+\n")
            self.assertGreater(os.path.getsize(self.path(f"/usr/share/doc/{name}/copyright")), 0, name)

    def test_the_executable_is_stripped(self):
        done = subprocess.run(["readelf", "-SW", self.path("/usr/bin/rondo")], capture_output=True, text=True)
        self.assertEqual(0, done.returncode)
        self.assertNotRegex(done.stdout, r"\.symtab|\.debug_")

    def test_rootfs_lays_out_what_the_layers_hold(self):
        # The Containerfile copies this folder.
        folder = os.path.join(scratch.name, "rootfs")
        build("--rootfs", folder)
        fresh = os.path.join(scratch.name, "fresh")
        Archive(archive).extract(fresh)
        self.assertEqual(describe(fresh), describe(folder))


class RefusalTest(unittest.TestCase):

    def refuse(self, *args):
        done = subprocess.run([os.path.join(ROOT, "tools/image"), *args], capture_output=True, text=True)
        self.assertNotEqual(0, done.returncode)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_what_is_no_executable_is_refused_and_leaves_no_file(self):
        out = os.path.join(scratch.name, "none.tar")
        self.assertIn("not a 64-bit", self.refuse("--binary", os.path.join(ROOT, "LICENSE"), "--out", out))
        self.assertFalse(os.path.exists(out))

    def test_a_missing_executable_names_the_remedy(self):
        self.assertIn("make image", self.refuse("--binary", os.path.join(scratch.name, "absent")))

    def test_a_tag_without_a_version_is_refused(self):
        self.assertIn("NAME:TAG", self.refuse("--binary", BINARY, "--tag", "localhost:5000/rondo"))

    def test_a_folder_with_content_is_not_overwritten(self):
        folder = os.path.join(scratch.name, "precious")
        os.makedirs(os.path.join(folder, "usr"))
        self.assertIn("not empty", self.refuse("--binary", BINARY, "--rootfs", folder))
        self.assertEqual(["usr"], os.listdir(folder))


def describe(root):
    """path -> what is there, in one comparable word."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if os.path.islink(path):
                what = os.readlink(path)
            elif os.path.isdir(path):
                what = "folder"
            else:
                with open(path, "rb") as f:
                    what = hashlib.sha256(f.read()).hexdigest()
            found[os.path.relpath(path, root)] = (oct(mode), what)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    args, rest = parser.parse_known_args()
    BINARY = os.path.abspath(args.binary)
    unittest.main(argv=[sys.argv[0], *rest])
