# SPDX-License-Identifier: Apache-2.0
"""What is in the image, and why. Everything comes from the executable or from a Debian package of this machine.

Two trees (see image_oci): `base`, which changes with Debian, and `rondo`, which changes with the project.
"""

import os
import subprocess
import tempfile

import image_elf
from image_oci import Entry

# Libraries that no DT_NEEDED of the executable names, because they are opened at run time.
OPENED = {
    "libcurl-gnutls.so.4": "the agent's client of the API server",
    # The driver's libnvidia-ml.so.1 is taken from the node and finds its own DT_NEEDED here. Since glibc 2.34 these
    # are empty shells beside libc.so.6, but a driver that was linked before then still asks for them by name.
    "libdl.so.2": "the driver's library",
    "libm.so.6": "the driver's library",
    "libpthread.so.0": "the driver's library",
    "librt.so.1": "the driver's library",
    "libgcc_s.so.1": "glibc opens it to unwind a cancelled or exiting thread",
}

# Names under which NVIDIA's image is started; `rondo` looks at the name. Not here, on purpose:
# gpu-feature-discovery and mps-control-daemon, which Rondo does not replace (docs/install.md).
NAMES = ("nvidia-device-plugin", "config-manager")

# The GPU Operator starts the plugin by a shell script of its own, so the image needs a shell and these words.
APPLETS = {
    "sh": "runs the operator's entrypoint.sh",
    "cat": "prints the driver's settings, which the script then sources",
    "sleep": "waits between two looks for the driver",
    "lsmod": "finds the kernel modules of GDRCopy and GPUDirect Storage",
    "grep": "picks them out of lsmod's list",
}

# Packages whose code is compiled into the executable: their licences travel with it.
COMPILED_IN = ("libabsl-dev", "libc-ares-dev", "libcli11-dev", "libfmt-dev", "libgrpc-dev", "libgrpc++-dev",
               "libprotobuf-dev", "libre2-dev", "libspdlog-dev", "libstdc++-12-dev", "libyaml-cpp-dev",
               "nlohmann-json3-dev", "zlib1g-dev")

CERTIFICATES = "/usr/share/ca-certificates/mozilla"
LICENCES = "/usr/share/common-licenses"  # base-files' own; the copyright files of the others refer to them


class StageError(Exception):
    """Something that the image needs is not on this machine; the text says what to do."""


def base_tree(elf):
    """The Debian part: loader, libraries, certificates, shell, and the few files that libc asks for."""
    files = {elf.interpreter: _real(elf.interpreter)}  # path in the image -> file of this machine
    for name, path in libraries(elf).items():
        files[f"/usr/lib/{elf.multiarch}/{name}"] = path
    files["/usr/bin/busybox"] = _real("/bin/busybox", "busybox-static")
    files["/usr/lib/os-release"] = _real("/usr/lib/os-release")
    # libnvidia-container and scanners take this file as the sign that libraries lie in the multiarch folder.
    files["/etc/debian_version"] = _real("/etc/debian_version")
    certificates = _certificates()
    packages = owners([*files.values(), *certificates])

    # Debian's merged /usr: both spellings of a path must work (the loader's is /lib64, a script's shell is /bin/sh).
    tree = {name: Entry(target=f"usr/{name}") for name in ("bin", "lib", "lib64")}
    for path, source in files.items():
        inside = path.lstrip("/")
        inside = inside if inside.startswith(("usr/", "etc/")) else f"usr/{inside}"
        tree[inside] = Entry(0o755 if os.access(source, os.X_OK) else 0o644, _bytes(source))
    tree |= {f"usr/bin/{applet}": Entry(target="busybox") for applet in APPLETS}
    tree["etc/ssl/certs/ca-certificates.crt"] = Entry(0o644, b"".join(map(_bytes, certificates)))
    tree |= _settings(elf)
    tree |= _package_records(packages | set(COMPILED_IN))
    return tree


def rondo_tree(binary, root):
    """The project's part: the stripped executable, the names it answers to, its licence."""
    tree = {"usr/bin/rondo": Entry(0o755, stripped(binary))}
    tree |= {f"usr/bin/{name}": Entry(target="rondo") for name in NAMES}
    tree["usr/share/doc/rondo/LICENSE"] = Entry(0o644, _bytes(os.path.join(root, "LICENSE")))
    # librondo.so belongs here as "usr/lib/rondo/librondo.so" once the build has it; the agent copies it to the node.
    return tree


def libraries(elf):
    """Soname -> file, for all that the executable needs or opens, and all that those need."""
    found, wanted = {}, [*elf.needed, *OPENED]
    while wanted:
        name = wanted.pop()
        if name in found or name == os.path.basename(elf.interpreter):
            continue
        path = _real(f"/usr/lib/{elf.multiarch}/{name}")
        found[name] = path
        wanted.extend(image_elf.read(path).needed)
    return dict(sorted(found.items()))


def owners(paths):
    """The packages that the files come from. A file that no package owns is refused: nobody could rebuild it."""
    spellings = {}  # dpkg knows a file by the path in its package, which may be before or after the merge of /usr
    for path in paths:
        spellings[path] = path
        spellings[path.removeprefix("/usr") if path.startswith("/usr/") else "/usr" + path] = path
    done = subprocess.run(["dpkg-query", "-S", *sorted(spellings)], capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"})
    packages, owned = set(), set()
    for line in done.stdout.splitlines():
        names, _, path = line.partition(": ")
        if path in spellings and not names.startswith("diversion "):
            packages.add(names.split(",")[0].split(":")[0])
            owned.add(spellings[path])
    if missing := sorted(set(paths) - owned):
        raise StageError(f"{missing[0]} belongs to no Debian package; build on Debian 12, or use the Containerfile")
    return packages


def stripped(binary):
    with tempfile.TemporaryDirectory(prefix="rondo-image-") as folder:
        out = os.path.join(folder, "rondo")
        subprocess.run(["strip", "--strip-all", "-o", out, binary], check=True)
        return _bytes(out)


def _certificates():
    """The package's own files: the machine's bundle also holds what its administrator added."""
    if not os.path.isdir(CERTIFICATES):
        raise StageError(f"{CERTIFICATES} is missing; run tools/install-deps")
    return _files_of(CERTIFICATES)


def _settings(elf):
    """Small files that a libc, a loader or a runtime looks for, and empty folders for mounts."""
    text = {
        "etc/passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        "etc/group": "root:x:0:\nnogroup:x:65534:\n",
        "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        # For the node's ldconfig, which NVIDIA's container runtime runs in here after it has mounted the driver.
        "etc/ld.so.conf": "include /etc/ld.so.conf.d/*.conf\n",
        f"etc/ld.so.conf.d/{elf.multiarch}.conf": f"/lib/{elf.multiarch}\n/usr/lib/{elf.multiarch}\n",
    }
    tree = {path: Entry(0o644, content.encode()) for path, content in text.items()}
    tree["etc/os-release"] = Entry(target="../usr/lib/os-release")
    # Where deploy/rondo.yaml and every runtime mount.
    for folder in ("dev", "driver-root", "etc/rondo/config", "proc", "run", "sys", "var/lib/kubelet/device-plugins"):
        tree[folder] = Entry()
    tree["var/run"] = Entry(target="../run")
    tree["tmp"] = Entry(0o1777)
    return tree


def _package_records(packages):
    """Licence texts, and the records by which vulnerability scanners know what is inside (status.d, one a package)."""
    tree = {path.lstrip("/"): Entry(0o644, _bytes(path)) for path in _files_of(LICENCES)}
    for package in sorted(packages):
        licence = f"/usr/share/doc/{package}/copyright"
        tree[licence.lstrip("/")] = Entry(0o644, _bytes(_real(licence, package)))
        fields = ("Package", "Version", "Architecture", "Source", "Maintainer")
        shown = subprocess.run(
            ["dpkg-query", "-W", "-f", "".join(f"{field}: ${{{field}}}\n" for field in fields) + "\n", package],
            capture_output=True, text=True, check=True).stdout.split("\n\n")[0]
        lines = [line for line in shown.splitlines() if not line.endswith(": ")]
        tree[f"var/lib/dpkg/status.d/{package}"] = Entry(0o644, "\n".join([*lines, ""]).encode())
    return tree


def _files_of(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def _real(path, package=""):
    if not os.path.exists(path):
        raise StageError(f"{path} is missing; run tools/install-deps" + (f" ({package})" if package else ""))
    return os.path.realpath(path)


def _bytes(path):
    with open(path, "rb") as f:
        return f.read()
