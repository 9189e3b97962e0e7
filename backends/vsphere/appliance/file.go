// Package appliance deploys virtual appliances (OVA, or OVF with its files beside it) through vCenter.
package appliance

import (
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
)

// A File is an appliance on this machine.
type File struct {
	Path string
	backends.Appliance

	archive importer.Archive
	inside  string // the descriptor, as the archive finds it
	files   []ovf.File
}

// Open reads the descriptor of an appliance as one of its configurations has it, "" for its default. It fails with kind
// usage on what is none.
func Open(path, configuration string) (*File, error) {
	f := &File{Path: path}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".ova":
		f.archive, f.inside = &importer.TapeArchive{Path: path}, "*.ovf"
	case ".ovf":
		f.archive, f.inside = &importer.FileArchive{Path: path}, path
	default:
		return nil, backends.Errorf(backends.KindUsage, "", "name a file that ends in .ova or .ovf", "%s is no appliance", path)
	}
	text, err := importer.ReadOvf(f.inside, f.archive)
	if errors.Is(err, os.ErrNotExist) {
		if _, statErr := os.Stat(path); statErr == nil {
			err = errors.New("there is no OVF descriptor in it")
		}
	}
	if err != nil {
		return nil, backends.Errorf(backends.KindUsage, "", "name an OVA or OVF file that is there and can be read", "read the appliance: %w", err)
	}
	env, err := importer.ReadEnvelope(text)
	if err != nil {
		return nil, backends.Errorf(backends.KindUsage, "", "download it again", "the descriptor of %s cannot be understood: %w", path, err)
	}
	if env.VirtualSystem == nil || len(env.VirtualSystem.VirtualHardware) == 0 {
		return nil, backends.Errorf(backends.KindUsage, "", "deploy it in the vSphere Client", "%s does not describe one virtual machine", path)
	}
	f.files = env.References
	f.Appliance = described(env, configuration)
	return f, nil
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
			a.MemoryMB = int64(value(item.VirtualQuantity))
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
	for _, file := range env.References {
		a.Bytes += int64(file.Size)
	}
	return a
}

// needed tells that a property must not be empty: it is asked for, has no default and a least length.
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

// Verify compares every file with the manifest that came with the appliance; signed is false where there is none. A file that
// was cut short or changed on its way is found before anything is sent.
func (f *File) Verify() (signed bool, err error) {
	name := strings.TrimSuffix(filepath.Base(f.inside), filepath.Ext(f.inside)) + ".mf"
	r, _, err := f.archive.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, f.complete()
	}
	if err != nil {
		return false, backends.Errorf(backends.KindUsage, "", "", "read the manifest of %s: %w", f.Path, err)
	}
	sums, err := library.ReadManifest(r)
	r.Close()
	if err != nil {
		return false, backends.Errorf(backends.KindUsage, "", "download the appliance again", "the manifest of %s cannot be understood: %w", f.Path, err)
	}
	for _, file := range f.files {
		sum := sums[file.Href]
		if sum == nil {
			return true, backends.Errorf(backends.KindRefused, "", "download the appliance again", "the manifest of %s does not list %s", f.Path, file.Href)
		}
		if err := f.compare(file.Href, sum); err != nil {
			return true, err
		}
	}
	return true, nil
}

// complete tells that every file is there.
func (f *File) complete() error {
	for _, file := range f.files {
		r, _, err := f.archive.Open(file.Href)
		if err != nil {
			return backends.Errorf(backends.KindUsage, "", "download the appliance again", "%s lacks its file %s: %w", f.Path, file.Href, err)
		}
		r.Close()
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
		return backends.Errorf(backends.KindUsage, "", "", "the manifest of %s uses %s, which is not known here", f.Path, sum.Algorithm)
	}
	r, _, err := f.archive.Open(name)
	if err != nil {
		return backends.Errorf(backends.KindUsage, "", "download the appliance again", "%s lacks its file %s: %w", f.Path, name, err)
	}
	defer r.Close()
	if _, err := io.Copy(h, r); err != nil {
		return fmt.Errorf("read %s of %s: %w", name, f.Path, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, sum.Checksum) {
		return backends.Errorf(backends.KindRefused, "", "download the appliance again", "%s of %s is damaged: its %s is %s, the manifest says %s", name, f.Path, sum.Algorithm, got, sum.Checksum)
	}
	return nil
}
