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
	"path/filepath"
	"runtime"
	"strings"
)

// Images that the node itself brings. Nothing is pulled: there is no network.
const (
	BusyboxImage = "rondo.test/busybox:1"
	TenantImage  = "rondo.test/tenant:1" // busybox and TenantProgram
	pauseImage   = "rondo.test/pause:1"
)

// TenantProgram uses a GPU in a known way: docs/sim-driver.md. It wants the
// node's DriverLibraries, in LD_LIBRARY_PATH.
const TenantProgram = "rondo-sim-tenant"

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// object is a piece of JSON of the OCI image layout.
type object map[string]any

// writeImages writes an OCI image layout with the images to path. All have
// Debian's static busybox, even a pod's sandbox, which needs no more than a
// process that waits. tenant: the TenantProgram of this machine.
func writeImages(path, tenant string) error {
	layer, err := busyboxLayer()
	if err != nil {
		return err
	}
	program, err := programLayer(tenant)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	image := newTar(&archive)
	image.file("oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`))
	busybox, withTenant := image.blob(layerType, layer), image.blob(layerType, program)
	var manifests []object
	for _, each := range []struct {
		name    string
		command []string
		layers  []object
	}{
		{BusyboxImage, []string{"/bin/sh"}, []object{busybox}},
		{TenantImage, []string{"/bin/" + TenantProgram}, []object{busybox, withTenant}},
		{pauseImage, []string{"/bin/tail", "-f", "/dev/null"}, []object{busybox}},
	} {
		var diffIDs []any
		for _, blob := range each.layers {
			diffIDs = append(diffIDs, blob["digest"])
		}
		config := image.json(configType, object{
			"os": "linux", "architecture": runtime.GOARCH,
			"config": object{"Cmd": each.command, "Env": []string{"PATH=/bin"}},
			"rootfs": object{"type": "layers", "diff_ids": diffIDs},
		})
		manifest := image.json(manifestType, object{
			"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": each.layers,
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

// programLayer holds a dynamic program in /bin, its loader, and those of its
// libraries that are this machine's own; the others come with the driver.
func programLayer(path string) ([]byte, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: run `make cluster-tenant`", err)
	}
	// Asks the loader for the list: "NAME => PATH (ADDRESS)", or "PATH (ADDRESS)"
	// for the loader itself.
	list := exec.Command("ldd", path)
	list.Env = append(os.Environ(), "LC_ALL=C")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", path, err)
	}
	var buffer bytes.Buffer
	layer := newTar(&buffer)
	layer.file("bin/"+filepath.Base(path), 0o755, program)
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(strings.TrimSpace(line))
		name, file := "", ""
		switch {
		case len(fields) == 4 && strings.HasPrefix(fields[2], "/"):
			name, file = "usr/lib/"+fields[0], fields[2]
		case len(fields) == 2 && strings.HasPrefix(fields[0], "/"):
			name, file = strings.TrimPrefix(fields[0], "/"), fields[0]
		default:
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		layer.file(name, 0o755, data)
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
