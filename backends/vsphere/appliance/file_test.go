package appliance_test

import (
	"archive/tar"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/appliance"
)

func descriptor(href string) string {
	return `<?xml version="1.0"?><Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" ` +
		`xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData">` +
		`<References><File ovf:href="` + href + `" ovf:id="f" ovf:size="4"/></References>` +
		`<VirtualSystem ovf:id="vm"><Info/><VirtualHardwareSection><Info/>` +
		`<Item><rasd:AllocationUnits>byte * 2^30</rasd:AllocationUnits><rasd:ElementName>m</rasd:ElementName><rasd:InstanceID>1</rasd:InstanceID><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>32</rasd:VirtualQuantity></Item>` +
		`</VirtualHardwareSection></VirtualSystem></Envelope>`
}

func sum256(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }

func write(t *testing.T, path, text string) {
	t.Helper()
	testclass.Write(t, path, text)
}

// verify opens and verifies an appliance.
func verify(path string) (appliance.Proof, error) {
	f, err := appliance.Open(path, "")
	if err != nil {
		return appliance.Proof{}, err
	}
	defer f.Close()
	return f.Verify()
}

// TestReferencesStayInside reads descriptors that refer to files outside the package and to entries that are not files.
func TestReferencesStayInside(t *testing.T) {
	dir := t.TempDir()
	pack := filepath.Join(dir, "pack")
	testclass.OK(t, os.MkdirAll(filepath.Join(pack, "sub"), 0o700))
	write(t, filepath.Join(dir, "secret"), "root")
	write(t, filepath.Join(pack, "disk"), "disk")
	write(t, filepath.Join(pack, "sub", "disk"), "disk")
	for name, to := range map[string]string{"link": "../secret", "near": "disk", "absolute": filepath.Join(dir, "secret"), "zero": "/dev/zero",
		"up": ".."} {
		testclass.OK(t, os.Symlink(to, filepath.Join(pack, name)))
	}
	testclass.OK(t, syscall.Mkfifo(filepath.Join(pack, "fifo"), 0o600))
	for href, says := range map[string]string{
		"disk": "", "sub/disk": "", "../secret": "points outside the package", filepath.Join(dir, "secret"): "points outside the package",
		"sub/../../secret": "points outside the package", "file:///etc/passwd": "points outside the package",
		"http://127.0.0.1/disk": "points outside the package",
		"link":                  "is a link", "near": "is a link", "absolute": "is a link", "zero": "is a link",
		"up/secret": "escapes from parent", "fifo": "is not a regular file",
		"sub": "is not a regular file", "none": "no such file",
	} {
		write(t, filepath.Join(pack, "x.ovf"), descriptor(href))
		_, err := verify(filepath.Join(pack, "x.ovf"))
		if says == "" && err != nil ||
			says != "" && (err == nil || !strings.Contains(err.Error(), says) || backends.KindOf(err) != backends.KindUsage) {
			t.Errorf("%s: %v; want %q", href, err, says)
		}
	}
	if _, err := verify("/dev/zero.ova"); err == nil {
		t.Error("a file that is not there")
	}
	for _, name := range []string{"fifo.ova", "fifo.ovf"} {
		testclass.OK(t, syscall.Mkfifo(filepath.Join(pack, name), 0o600))
		if _, err := verify(filepath.Join(pack, name)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManifest checks the descriptor and the disk against manifests.
func TestManifest(t *testing.T) {
	ovf := descriptor("disk")
	h512 := sha512.Sum512([]byte("disk"))
	for _, tt := range []struct {
		name, manifest, cert string
		want                 appliance.Proof
		says                 string
	}{
		{"none", "", "", appliance.Proof{}, ""},
		{"whole", "SHA256(x.ovf)= " + sum256(ovf) + "\nSHA512(disk)= " + hex.EncodeToString(h512[:]) + "\n", "", appliance.Proof{Manifest: true},
			""},
		{"signed", "SHA256(x.ovf)= " + sum256(ovf) + "\nSHA256(disk)= " + sum256("disk") + "\n", "cert",
			appliance.Proof{Manifest: true, Signed: true}, ""},
		{"another descriptor", "SHA256(x.ovf)= " + sum256("x") + "\nSHA256(disk)= " + sum256("disk") + "\n", "", appliance.Proof{}, "x.ovf of"},
		{"another disk", "SHA256(x.ovf)= " + sum256(ovf) + "\nSHA256(disk)= " + sum256("x") + "\n", "", appliance.Proof{}, "disk of"},
		{"the descriptor left out", "SHA256(disk)= " + sum256("disk") + "\n", "", appliance.Proof{}, "does not list x.ovf"},
		{"the disk left out", "SHA256(x.ovf)= " + sum256(ovf) + "\n", "", appliance.Proof{}, "does not list disk"},
		{"a weak digest", "MD5(x.ovf)= 00\n", "", appliance.Proof{}, "is not supported"},
		{"a long manifest", strings.Repeat("SHA256(x.ovf)= 00\n", 100_000), "", appliance.Proof{}, "larger than 1 MiB"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "x.ovf"), ovf)
		write(t, filepath.Join(dir, "disk"), "disk")
		if tt.manifest != "" {
			write(t, filepath.Join(dir, "x.mf"), tt.manifest)
		}
		if tt.cert != "" {
			write(t, filepath.Join(dir, "x.cert"), tt.cert)
		}
		got, err := verify(filepath.Join(dir, "x.ovf"))
		if got != tt.want || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

// member is an entry of an OVA.
type member struct {
	tar.Header
	text string
}

func ova(t *testing.T, members ...member) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ova")
	f, err := os.Create(path)
	testclass.OK(t, err)
	w := tar.NewWriter(f)
	for _, m := range members {
		m.Mode, m.Size = 0o600, int64(len(m.text))
		testclass.OK(t, w.WriteHeader(&m.Header))
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	testclass.OK(t, errors.Join(w.Close(), f.Close()))
	return path
}

func regular(name, text string) member {
	return member{tar.Header{Name: name, Typeflag: tar.TypeReg}, text}
}

// sparse returns a 2 kB OVA whose descriptor claims 9.8 GB: an entry of GNU tar's sparse type without any data.
func sparse(t *testing.T) string {
	t.Helper()
	b := make([]byte, 2048)
	copy(b, "x.ovf")
	copy(b[100:], "0000600\x00")
	copy(b[124:], "00000000000\x00") // bytes in the archive
	copy(b[136:], "00000000000\x00")
	copy(b[148:], "        ")
	b[156] = 'S'
	copy(b[257:], "ustar  \x00")
	copy(b[483:], fmt.Sprintf("%011o\x00", int64(98)<<27)) // real size: more than tar's field of 8 GiB would be refused
	total := 0
	for _, c := range b[:512] {
		total += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", total))
	path := filepath.Join(t.TempDir(), "x.ova")
	write(t, path, string(b))
	return path
}

func TestArchives(t *testing.T) {
	good := regular("x.ovf", descriptor("disk"))
	disk := regular("disk", "disk")
	for _, tt := range []struct {
		name, path, says string
	}{
		{"sound", ova(t, good, disk), ""},
		{"a link for a disk", ova(t, good, member{tar.Header{Name: "disk", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""}),
			"not a regular file"},
		{"a hard link for a disk", ova(t, good, member{tar.Header{Name: "disk", Typeflag: tar.TypeLink, Linkname: "x.ovf"}, ""}),
			"not a regular file"},
		{"a device for a disk", ova(t, good, member{tar.Header{Name: "disk", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 5}, ""}),
			"not a regular file"},
		{"a pipe for a disk", ova(t, good, member{tar.Header{Name: "disk", Typeflag: tar.TypeFifo}, ""}), "not a regular file"},
		{"a path that leads out", ova(t, good, regular("../disk", "disk")), "points outside the package"},
		{"an absolute path", ova(t, good, regular("/etc/passwd", "disk")), "points outside the package"},
		{"a disk twice", ova(t, good, disk, disk), "twice"},
		{"two descriptors", ova(t, good, regular("y.ovf", descriptor("disk")), disk), "two descriptors"},
		{"no descriptor", ova(t, disk), "no OVF descriptor"},
		{"a sparse descriptor", sparse(t), "not a regular file"},
		{"a large descriptor", ova(t, regular("x.ovf", strings.Repeat(" ", 5<<20)), disk), "larger than 4 MiB"},
		{"a rich descriptor", ova(t, regular("x.ovf", "<Envelope>"+strings.Repeat("<Item/>", 60_000)), disk), "more than 50000 elements"},
		{"a deep descriptor", ova(t, regular("x.ovf", strings.Repeat("<Item>", 60_000)), disk), "64 elements in one another"},
		{"a disk that is missing", ova(t, good), "does not exist"},
	} {
		_, err := verify(tt.path)
		if tt.says == "" && err != nil ||
			tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || backends.KindOf(err) != backends.KindUsage) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.says)
		}
	}
}

// TestMemoryUnits reads 32 GB as such (DSP0004, programmatic units).
func TestMemoryUnits(t *testing.T) {
	f, err := appliance.Open(ova(t, regular("x.ovf", descriptor("disk")), regular("disk", "disk")), "")
	testclass.OK(t, err)
	defer f.Close()
	if f.MemoryMB != 32<<10 {
		t.Errorf("%d MB", f.MemoryMB)
	}
}
