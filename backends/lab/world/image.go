package world

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The values of VIB.Pending.
const (
	PendingInstall = "install"
	PendingRemove  = "remove"
)

// A Package is a file on the datastore that contains one VIB (.vib) or an offline bundle (.zip).
type Package struct {
	Path string // /vmfs/volumes/shared-01/rdma/mft.vib
	VIBs []VIB
}

// An ImageError is an error of the installer, in the format of esxcli.
type ImageError struct{ Code, Text string }

// Error implements error.
func (e *ImageError) Error() string {
	return fmt.Sprintf(" [%s]\n %s\n Please refer to the log file for more details.", e.Code, strings.ReplaceAll(e.Text, "\n", "\n "))
}

// ID returns the full ID of a VIB.
func (v VIB) ID() string { return v.Vendor + "_bootbank_" + v.Name + "_" + v.Version }

// An ImageChange is the result of an installation or a removal. It takes effect at the next boot.
type ImageChange struct{ Installed, Removed, Skipped []string }

var levels = []string{"CommunitySupported", "PartnerSupported", "VMwareAccepted", "VMwareCertified"}

func level(name string) int { return slices.Index(levels, name) }

// Active returns a VIB of the booted image, or nil if there is none.
func (h *Host) Active(vib string) *VIB {
	for i, v := range h.VIBs {
		if v.Name == vib && v.Pending != PendingInstall {
			return &h.VIBs[i]
		}
	}
	return nil
}

// Package returns a file on the datastore, or nil if there is none.
func (s *State) Package(name string) *Package {
	return find(s.Depot, func(p *Package) bool { return p.Path == name })
}

// OpenPackage opens a file on the datastore by its path on a host. If bundle is true it must be a bundle (.zip), otherwise a
// VIB. Errors are of type ImageError.
func (w *World) OpenPackage(host, file string, bundle bool) (pkg Package, err error) {
	w.View(func(s *State) {
		if s.Host(host) == nil {
			err = noHost(host)
			return
		}
		var p *Package
		if p, err = s.open(file, bundle); err == nil {
			pkg = *p
		}
	})
	return pkg, err
}

// Staged reports whether an image is pending until the next boot.
func (h *Host) Staged() bool {
	return slices.ContainsFunc(h.VIBs, func(v VIB) bool { return v.Pending != "" })
}

// An Install describes the VIBs to install and the checks to skip.
type Install struct {
	Paths   []string
	Bundle  bool // install a .zip (-d) instead of .vib files (-v)
	Force   bool // -f: acceptance level and dependencies are not checked
	NoCheck bool // --no-sig-check: signatures are not checked
}

// InstallVIBs installs files of the datastore into the image of the next boot. Errors are of type ImageError.
func (w *World) InstallVIBs(host string, in Install) (ImageChange, error) {
	var change ImageChange
	err := w.setHost(host, func(s *State, h *Host) (Event, error) {
		var vibs []VIB
		for _, file := range in.Paths {
			pkg, err := s.open(file, in.Bundle)
			if err != nil {
				return Event{}, err
			}
			vibs = append(vibs, pkg.VIBs...)
		}
		for _, v := range vibs {
			if err := h.accepts(v, in); err != nil {
				return Event{}, err
			}
		}
		for _, v := range vibs {
			h.stage(v, in, &change)
		}
		return Event{What: HostImage, Detail: strings.Join(change.Installed, " ")}, nil
	})
	return change, err
}

func (s *State) open(file string, bundle bool) (*Package, error) {
	pkg := s.Package(file)
	switch {
	case !strings.HasPrefix(file, "/") && bundle:
		return nil, &ImageError{"MetadataDownloadError", fmt.Sprintf("Could not download from depot at zip:/var/log/vmware/%s, skipping "+
			"(('zip:/var/log/vmware/%[1]s', '', \"Error extracting index.xml from /var/log/vmware/%[1]s: [Errno 2] No such file or directory: "+
			"'/var/log/vmware/%[1]s'\"))\n       url = zip:/var/log/vmware/%[1]s", file)}
	case bundle && (pkg == nil || path.Ext(file) != ".zip"):
		return nil, &ImageError{"MetadataDownloadError", fmt.Sprintf("Could not download from depot at zip:%s, skipping "+
			"(('zip:%[1]s', '', \"Error extracting index.xml from %[1]s: [Errno 2] No such file or directory: '%[1]s'\"))\n       url = zip:%[1]s",
			file)}
	case !strings.HasPrefix(file, "/"):
		return nil, &ImageError{"VibDownloadError", fmt.Sprintf("('%s', '/var/log/vmware/%[1]s', '[Errno 2] No such file or directory')", file)}
	case pkg == nil:
		return nil, &ImageError{"VibDownloadError", fmt.Sprintf("('%s', '', \"[Errno 2] No such file or directory: '%[1]s'\")", file)}
	case !bundle && path.Ext(file) != ".vib":
		return nil, &ImageError{"VibFormatError", fmt.Sprintf("('%s', 'VIB file does not have the ar format')", file)}
	}
	return pkg, nil
}

// accepts rejects a VIB that was built for a later release of ESXi, and a VIB below the host's acceptance level unless the
// install is forced. With Secure Boot, it always rejects an unsigned VIB. The message about the release is from public logs:
// ESXi 6.7 and a package with DEL.700.0.0.15843807.
func (h *Host) accepts(v VIB, in Install) error {
	switch {
	case VersionLess(h.Version, v.madeFor()) && !in.Force:
		return &ImageError{"DependencyError",
			fmt.Sprintf("VIB %s requires esx-version >= %s but the requirement cannot be satisfied within the ImageProfile.",
				v.ID(), v.madeFor())}
	case v.Unsigned && h.SecureBoot:
		return &ImageError{"InstallationError",
			fmt.Sprintf("('%s', \"UEFI Secure Boot is enabled: the signature of VIB %[1]s cannot be verified. "+
				"Installing unsigned VIBs will prevent the system from booting.\")", v.ID())}
	case level(v.Acceptance) < level(h.Acceptance) && !in.Force:
		return &ImageError{"AcceptanceConfigError",
			fmt.Sprintf("VIB %s's acceptance level is %s, which is not compliant with the ImageProfile acceptance level %s\n"+
				"To change the host acceptance level, use the 'esxcli software acceptance set' command.", v.ID(), short(v.Acceptance),
				short(h.Acceptance))}
	case v.Unsigned && !in.Force && !in.NoCheck:
		return &ImageError{"InstallationError", fmt.Sprintf("('%s', 'Could not find a trusted signer.')", v.ID())}
	}
	return nil
}

var buildTag = regexp.MustCompile(`-[0-9]*[A-Za-z]+\.([0-9])([0-9])([0-9])\.`)

// madeFor returns the ESXi release in the version of a VIB (1OEM.703.0.0.18644231 is for 7.0.3), or "" if the version does not
// contain one.
func (v VIB) madeFor() string {
	if m := buildTag.FindStringSubmatch(v.Version); m != nil {
		return strings.Join(m[1:], ".")
	}
	return ""
}

func short(acceptance string) string {
	return map[string]string{"CommunitySupported": "community", "PartnerSupported": "partner", "VMwareAccepted": "accepted",
		"VMwareCertified": "certified"}[acceptance]
}

// stage adds a VIB to the image of the next boot and replaces any other version of it.
func (h *Host) stage(v VIB, in Install, change *ImageChange) {
	for i, old := range h.VIBs {
		if old.Name != v.Name || old.Pending == PendingRemove {
			continue
		}
		if old.Version == v.Version {
			change.Skipped = append(change.Skipped, v.ID())
			return
		}
		h.VIBs[i].Pending = PendingRemove
		change.Removed = append(change.Removed, old.ID())
	}
	v.Pending, v.Installed = PendingInstall, time.Now()
	h.VIBs = append(h.VIBs, v)
	change.Installed = append(change.Installed, v.ID())
}

// staged returns a VIB of the image of the next boot, or nil if there is none.
func (h *Host) staged(vib string) *VIB {
	for i, v := range h.VIBs {
		if v.Name == vib && v.Pending != PendingRemove {
			return &h.VIBs[i]
		}
	}
	return nil
}

// RemoveVIBs removes VIBs from the image of the next boot. On an ImageError none is removed.
func (w *World) RemoveVIBs(host string, names []string) (ImageChange, error) {
	var change ImageChange
	err := w.setHost(host, func(_ *State, h *Host) (Event, error) {
		for _, name := range names {
			switch v := h.staged(name); {
			case v == nil:
				return Event{}, &ImageError{"NoMatchError", "No VIB matching VIB search specification '" + name + "'."}
			case name == "esx-base" || name == "nmlx5-core" && h.staged("nmlx5-rdma") != nil && !slices.Contains(names, "nmlx5-rdma"):
				by := map[bool]string{true: "esx-ui", false: "nmlx5-rdma"}[name == "esx-base"]
				return Event{},
					&ImageError{"DependencyError", fmt.Sprintf("VIB %s requires %s, but the requirement cannot be satisfied within the ImageProfile.",
						h.staged(by).ID(), name)}
			}
		}
		for _, name := range names {
			v := h.staged(name)
			change.Removed = append(change.Removed, v.ID())
			if v.Pending == PendingInstall {
				h.VIBs = slices.DeleteFunc(h.VIBs, func(o VIB) bool { return o.Name == name && o.Pending == PendingInstall })
				continue
			}
			v.Pending = PendingRemove
		}
		return Event{What: HostImage, Detail: "remove " + strings.Join(names, " ")}, nil
	})
	return change, err
}

// SetAcceptance sets the acceptance level of the image. The level must not be above that of an installed VIB, and must not be
// CommunitySupported under Secure Boot (ErrInvalid, ErrBusy).
func (w *World) SetAcceptance(host, to string) error {
	return w.setHost(host, func(_ *State, h *Host) (Event, error) {
		if level(to) < 0 || h.SecureBoot && to == "CommunitySupported" {
			return Event{}, fmt.Errorf("acceptance level %s: %w", to, ErrInvalid)
		}
		for _, v := range h.VIBs {
			if v.Pending != PendingRemove && level(v.Acceptance) < level(to) {
				return Event{}, fmt.Errorf("VIB %s of level %s is %w", v.ID(), v.Acceptance, ErrBusy)
			}
		}
		h.Acceptance = to
		return Event{What: HostImage, Detail: "acceptance " + to}, nil
	})
}

// bootImage activates the staged image. Drivers that were installed with it claim their adapters.
func (h *Host) bootImage() {
	h.VIBs = slices.DeleteFunc(h.VIBs, func(v VIB) bool { return v.Pending == PendingRemove })
	for i := range h.VIBs {
		h.VIBs[i].Pending = ""
	}
	if h.Shares != nil {
		h.VGPUs = nil
		if slices.ContainsFunc(h.VIBs, func(v VIB) bool { return strings.HasPrefix(strings.ToUpper(v.Name), "NVD-") }) {
			h.VGPUs = h.Shares
		}
	}
	for vib, module := range map[string]string{"nmlx5-core": Nmlx5, "nmlx5-rdma": "nmlx5_rdma"} {
		v, m := h.Active(vib), h.Module(module)
		if m == nil || v == nil || m.Version == v.Version {
			continue
		}
		m.Version = v.Version
		for _, p := range h.Ports(module) {
			p.DriverVersion = v.Version
		}
	}
}
