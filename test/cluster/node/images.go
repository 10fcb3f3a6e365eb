// SPDX-License-Identifier: Apache-2.0

package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Images that the node itself brings. Nothing is pulled: there is no network.
const (
	BusyboxImage = "rondo.test/busybox:1"
	pauseImage   = "rondo.test/pause:1"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// object is a piece of JSON of the OCI image layout.
type object map[string]any

// writeImages writes an OCI image layout with the two images to path. Both are
// Debian's static busybox; a pod's sandbox needs no more than a process that
// waits.
func writeImages(path string) error {
	layer, err := busyboxLayer()
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	image := newTar(&archive)
	image.file("oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`))
	layerBlob := image.blob(layerType, layer)
	var manifests []object
	for _, each := range []struct {
		name    string
		command []string
	}{
		{BusyboxImage, []string{"/bin/sh"}},
		{pauseImage, []string{"/bin/tail", "-f", "/dev/null"}},
	} {
		config := image.json(configType, object{
			"os": "linux", "architecture": runtime.GOARCH,
			"config": object{"Cmd": each.command, "Env": []string{"PATH=/bin"}},
			"rootfs": object{"type": "layers", "diff_ids": []any{layerBlob["digest"]}},
		})
		manifest := image.json(manifestType, object{
			"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []object{layerBlob},
		})
		manifest["annotations"] = object{"io.containerd.image.name": each.name}
		manifests = append(manifests, manifest)
	}
	index, _ := json.Marshal(object{"schemaVersion": 2, "manifests": manifests})
	image.file("index.json", 0o644, index)
	if err := image.close(); err != nil {
		return err
	}
	return os.WriteFile(path, archive.Bytes(), 0o644)
}

func busyboxLayer() ([]byte, error) {
	const path = "/bin/busybox"
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: run tools/install-deps cluster", err)
	}
	binary, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if libraries, _ := binary.ImportedLibraries(); len(libraries) > 0 {
		return nil, fmt.Errorf("%s needs %v: install busybox-static (tools/install-deps cluster)", path, libraries)
	}
	applets, err := exec.Command(path, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list: %w", path, err)
	}
	var buffer bytes.Buffer
	layer := newTar(&buffer)
	for _, folder := range []string{"bin", "dev", "proc", "sys", "etc", "tmp"} {
		layer.header(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755})
	}
	layer.file("bin/busybox", 0o755, program)
	for _, applet := range strings.Fields(string(applets)) {
		if applet != "busybox" {
			layer.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox"})
		}
	}
	if err := layer.close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// tarFile keeps the first error, so that a layout reads as a list.
type tarFile struct {
	w   *tar.Writer
	err error
}

func newTar(buffer *bytes.Buffer) *tarFile { return &tarFile{w: tar.NewWriter(buffer)} }

func (t *tarFile) header(h *tar.Header) {
	if t.err == nil {
		t.err = t.w.WriteHeader(h)
	}
}

func (t *tarFile) file(name string, mode int64, data []byte) {
	t.header(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))})
	if t.err == nil {
		_, t.err = t.w.Write(data)
	}
}

// blob adds data by its digest and returns its descriptor.
func (t *tarFile) blob(mediaType string, data []byte) object {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	t.file("blobs/sha256/"+digest, 0o644, data)
	return object{"mediaType": mediaType, "digest": "sha256:" + digest, "size": len(data)}
}

func (t *tarFile) json(mediaType string, value object) object {
	data, err := json.Marshal(value)
	if t.err == nil {
		t.err = err
	}
	return t.blob(mediaType, data)
}

func (t *tarFile) close() error {
	if t.err != nil {
		return t.err
	}
	return t.w.Close()
}
