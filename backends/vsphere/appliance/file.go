// Package appliance deploys virtual appliances (OVA, or OVF with separate files) through vCenter.
package appliance

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/ovf"
	"github.com/vmware/govmomi/ovf/importer"
	"github.com/vmware/govmomi/vapi/library"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A File is an appliance on this machine. It stays open, so that the content that was verified is the content that is uploaded.
type File struct {
	Path string
	backends.Appliance

	files      archive
	references []string // names of its files, from the descriptor
}

// Open reads the descriptor of an appliance for one of its configurations, "" for the default. It fails with kind usage if the
// file is not an appliance.
func Open(path, configuration string) (*File, error) {
	f := &File{Path: path}
	var err error
	switch strings.ToLower(filepath.Ext(path)) {
	case ".ova":
		f.files, err = asArchive(openTape(path))
	case ".ovf":
		f.files, err = asArchive(openFolder(path))
	default:
		return nil, backends.Usagef("", "name a file that ends in .ova or .ovf", "%s is not an appliance", path)
	}
	if err == nil {
		if err = f.read(configuration); err != nil {
			_ = f.files.Close() // nothing was written
		}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func asArchive[T archive](a T, err error) (archive, error) {
	if err != nil {
		return nil, unreadable(err)
	}
	return a, nil
}

func unreadable(err error) error {
	return backends.Usagef("", "Name an OVA or OVF file that can be read.", "read the appliance: %w", err)
}

// Close closes the package.
func (f *File) Close() error { return f.files.Close() }

func (f *File) read(configuration string) error {
	text, err := readLimited(f.files, f.files.Descriptor(), descriptorLimit)
	if err == nil {
		err = wire.CheckXML(text, descriptorItems, descriptorDepth)
	}
	if err != nil {
		return unreadable(err)
	}
	env, err := importer.ReadEnvelope(text)
	if err != nil {
		return backends.Usagef("", downloadAgain, "the descriptor of %s is not valid: %w", f.Path, err)
	}
	if env.VirtualSystem == nil || len(env.VirtualSystem.VirtualHardware) == 0 {
		return backends.Usagef("", "deploy it in the vSphere Client", "%s does not describe one virtual machine", f.Path)
	}
	for _, file := range env.References {
		if err := inside(file.Href); err != nil {
			return backends.Usagef("", "Do not use this appliance until its vendor has explained the difference.", "%s: %w",
				f.Path, err)
		}
		f.references = append(f.references, file.Href)
	}
	f.Appliance = described(env, configuration)
	return nil
}

// The resource types of an OVF descriptor (CIM_ResourceAllocationSettingData) that matter here.
const (
	typeCPU, typeMemory, typeEthernet = 3, 4, 10
)

func described(env *ovf.Envelope, configuration string) backends.Appliance {
	vs := env.VirtualSystem
	a := backends.Appliance{Name: vs.ID}
	if vs.Name != nil && *vs.Name != "" {
		a.Name = *vs.Name
	}
	if env.Network != nil {
		for _, n := range env.Network.Networks {
			a.Networks = append(a.Networks, n.Name)
		}
	}
	if env.DeploymentOption != nil {
		for _, c := range env.DeploymentOption.Configuration {
			a.Configurations = append(a.Configurations, c.ID)
			if configuration == "" && value(c.Default) {
				configuration = c.ID
			}
		}
	}
	if sys := vs.VirtualHardware[0].System; sys != nil {
		for _, word := range strings.Fields(value(sys.VirtualSystemType)) { // several are possible: the newest counts
			if n, err := strconv.Atoi(strings.TrimPrefix(word, "vmx-")); err == nil {
				a.Hardware = max(a.Hardware, n)
			}
		}
	}
	for _, item := range vs.VirtualHardware[0].Item {
		if item.ResourceType == nil || item.Configuration != nil && !slices.Contains(strings.Fields(*item.Configuration), configuration) {
			continue
		}
		switch int(*item.ResourceType) {
		case typeCPU:
			a.CPUs = int(value(item.VirtualQuantity))
		case typeMemory:
			a.MemoryMB = int64(value(item.VirtualQuantity)) * unit(item.AllocationUnits, 1<<20) >> 20
		case typeEthernet:
			network := ""
			if len(item.Connection) > 0 {
				network = item.Connection[0]
			}
			a.Adapters = append(a.Adapters, network)
		}
	}
	for _, p := range vs.Product {
		if a.Product == "" {
			a.Product, a.Version = p.Product, p.Version
		}
		for _, prop := range p.Property {
			a.Properties = append(a.Properties, backends.Property{
				Key: p.Key(prop), Label: value(prop.Label), Type: prop.Type, Default: value(prop.Default),
				Asked: value(prop.UserConfigurable), Secret: value(prop.Password), Needed: needed(prop),
			})
		}
	}
	for _, e := range vs.Eula {
		a.Licences = append(a.Licences, e.License)
	}
	if env.Disk != nil {
		for _, d := range env.Disk.Disks {
			if n, err := strconv.ParseInt(d.Capacity, 10, 64); err == nil {
				a.DiskBytes += n * unit(d.CapacityAllocationUnits, 1)
			}
		}
	}
	for _, file := range env.References {
		a.Bytes += int64(file.Size)
	}
	return a
}

// unit returns the number of bytes of a programmatic unit (DSP0004, annex C: "byte * 2^30"), or the default if no unit is named.
func unit(of *string, otherwise int64) int64 {
	if n := ovf.ParseCapacityAllocationUnits(value(of)); value(of) != "" && n > 0 {
		return n
	}
	return otherwise
}

// needed reports whether a property must not be empty: it is user-configurable, has no default and a minimum length.
func needed(p ovf.Property) bool {
	return value(p.UserConfigurable) && value(p.Default) == "" && strings.Contains(value(p.Qualifiers), "MinLen(") &&
		!strings.Contains(value(p.Qualifiers), "MinLen(0)")
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// A Proof says what proves that a package is complete and who created it.
type Proof struct {
	Manifest bool // every file, including the descriptor, has the digest in the manifest
	Signed   bool // the package contains a certificate and a signature of the manifest; the signature is not verified here
}

const downloadAgain = "Download the appliance again."

// Verify compares the descriptor and every referenced file with the manifest. A truncated or modified package is detected before
// anything is uploaded.
func (f *File) Verify() (Proof, error) {
	base := strings.TrimSuffix(f.files.Descriptor(), filepath.Ext(f.files.Descriptor()))
	text, err := readLimited(f.files, base+".mf", manifestLimit)
	if errors.Is(err, os.ErrNotExist) {
		return Proof{}, f.complete()
	}
	if err != nil {
		return Proof{}, f.unusable(err, "read the manifest")
	}
	sums, err := library.ReadManifest(bytes.NewReader(text))
	if err != nil {
		return Proof{}, f.unusable(err, "read the manifest")
	}
	for _, name := range append([]string{f.files.Descriptor()}, f.references...) {
		sum := sums[name]
		if sum == nil {
			return Proof{}, backends.Refusedf("", downloadAgain, "the manifest of %s does not list %s", f.Path, name)
		}
		if err := f.compare(name, sum); err != nil {
			return Proof{}, err
		}
	}
	p := Proof{Manifest: true}
	if r, _, err := f.files.Open(base + ".cert"); err == nil {
		p.Signed = true
		_ = r.Close() // only its existence matters
	}
	return p, nil
}

func (f *File) unusable(err error, what string) error {
	return backends.Usagef("", downloadAgain, "%s of %s: %w", what, f.Path, err)
}

func (f *File) complete() error {
	for _, name := range f.references {
		r, _, err := f.files.Open(name)
		if err != nil {
			return f.unusable(err, "open "+name)
		}
		_ = r.Close() // only its existence matters
	}
	return nil
}

func (f *File) compare(name string, sum *library.Checksum) error {
	var h hash.Hash
	switch strings.ToUpper(sum.Algorithm) {
	case "SHA1":
		h = sha1.New()
	case "SHA256":
		h = sha256.New()
	case "SHA512":
		h = sha512.New()
	default:
		return backends.Usagef("", "Ask the vendor for a manifest with SHA-256.",
			"the manifest of %s uses %q, which is not supported", f.Path, sum.Algorithm)
	}
	r, _, err := f.files.Open(name)
	if err != nil {
		return f.unusable(err, "open "+name)
	}
	defer r.Close()
	if _, err := io.Copy(h, r); err != nil {
		return fmt.Errorf("read %s of %s: %w", name, f.Path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, sum.Checksum) {
		return backends.Refusedf("", downloadAgain, "%s of %s is damaged: its %s is %s, the manifest says %s", name, f.Path,
			sum.Algorithm, got, sum.Checksum)
	}
	return nil
}
