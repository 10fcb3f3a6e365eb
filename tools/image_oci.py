# SPDX-License-Identifier: Apache-2.0
"""File trees, and how they become an OCI image: the same trees give the same bytes, on any day, for any user.

A tree is a dict: path without leading slash -> Entry. Folders above an entry need not be listed.
Sources: OCI image specification 1.1 (image-layout, manifest, config, layer); `docker load` reads manifest.json.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import tarfile
from dataclasses import dataclass

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX = "application/vnd.oci.image.index.v1+json"


@dataclass(frozen=True)
class Entry:
    """One of: a file (data), a symbolic link (target), a folder (neither)."""
    mode: int = 0o755
    data: bytes | None = None
    target: str | None = None


@dataclass(frozen=True)
class Image:
    name: str  # registry/repository, as kubelet spells it: "docker.io/library/rondo"
    tag: str
    architecture: str
    layers: list  # (what it is, tree), the rarely changing first
    config: dict  # Entrypoint, Env, Labels …
    epoch: int  # seconds since 1970, written wherever a time is asked for


def with_folders(tree):
    """The tree with every folder above an entry present."""
    full = dict(tree)
    for path in tree:
        while "/" in path:
            path = path.rpartition("/")[0]
            full.setdefault(path, Entry())
    return full


def tar_of(tree, epoch):
    """An uncompressed tar of the tree: sorted, owned by root, one time for all."""
    out = io.BytesIO()
    # GNU format: PAX would add headers that hold sub-second times where a caller has them.
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, entry in sorted(with_folders(tree).items()):
            info = tarfile.TarInfo(path)
            info.mode, info.mtime = entry.mode, epoch
            if entry.data is not None:
                info.size = len(entry.data)
            elif entry.target is not None:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.target, 0o777
            else:
                info.type = tarfile.DIRTYPE
            tar.addfile(info, io.BytesIO(entry.data or b""))
    return out.getvalue()


def write_archive(image, out):
    """Writes the image as a tar that containerd, podman, skopeo and docker load."""
    blobs = {}

    def blob(data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = Entry(0o644, data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    created = _timestamp(image.epoch)
    diff_ids, layers, history = [], [], []
    for what, tree in image.layers:
        plain = tar_of(tree, image.epoch)
        diff_ids.append("sha256:" + hashlib.sha256(plain).hexdigest())
        layers.append(blob(_gzip(plain), LAYER))
        history.append({"created": created, "created_by": f"tools/image: {what}"})
    config = blob(_json({"architecture": image.architecture, "os": "linux", "created": created, "config": image.config,
                         "rootfs": {"type": "layers", "diff_ids": diff_ids}, "history": history}), CONFIG)
    manifest = blob(_json({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}), MANIFEST)

    name = f"{image.name}:{image.tag}"
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest | {
        "platform": {"architecture": image.architecture, "os": "linux"},
        # containerd takes the image's name from the first, skopeo and podman the tag from the second.
        "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": image.tag}}]}
    docker = [{"Config": _blob_path(config), "RepoTags": [name], "Layers": [_blob_path(layer) for layer in layers]}]
    tree = blobs | {"oci-layout": Entry(0o644, _json({"imageLayoutVersion": "1.0.0"})),
                    "index.json": Entry(0o644, _json(index)), "manifest.json": Entry(0o644, _json(docker))}
    data = tar_of(tree, image.epoch)
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    with open(out + ".part", "wb") as f:
        f.write(data)
    os.replace(out + ".part", out)  # never half a file under the final name
    return manifest["digest"], len(data)


def write_folder(trees, root):
    """Lays the trees out under root, which must be absent or empty; the later tree wins."""
    if os.path.isdir(root) and os.listdir(root):
        raise FileExistsError(f"{root} is not empty: name a new folder, or empty it first")
    os.makedirs(root, exist_ok=True)
    for tree in trees:
        for path, entry in sorted(with_folders(tree).items()):
            full = os.path.join(root, path)
            if entry.target is not None:
                os.symlink(entry.target, full)
            elif entry.data is not None:
                with open(full, "wb") as f:
                    f.write(entry.data)
                os.chmod(full, entry.mode)
            else:
                os.makedirs(full, exist_ok=True)
                os.chmod(full, entry.mode)


def _gzip(data):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0) as f:
        f.write(data)
    return out.getvalue()


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _blob_path(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


def _timestamp(epoch):
    return datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
