package answers

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A DriverFile is NVIDIA's driver installer, described by its file name.
type DriverFile struct {
	Path    string // in the guests
	Version string // 570.133.20
	Arch    string // x86_64, aarch64
}

var driverName = regexp.MustCompile(`^NVIDIA-Linux-(x86_64|aarch64)-(\d+\.\d+(?:\.\d+)?)(?:-[a-z0-9]+)*\.run$`)

// packageName also admits a version, an architecture and a group or module: what apt-get and dnf install by one word, never an option.
var packageName = regexp.MustCompile(`^[A-Za-z0-9@][A-Za-z0-9+.:~=_@-]*$`)

// DriverFile returns the installer in gpudirect.driver; ok is false if it names packages, or nothing.
func (g GPUOpt) DriverFile() (f DriverFile, ok bool) {
	if len(g.Driver) != 1 || !strings.HasPrefix(g.Driver[0], "/") {
		return f, false
	}
	m := driverName.FindStringSubmatch(path.Base(g.Driver[0]))
	if m == nil {
		return f, false
	}
	return DriverFile{Path: g.Driver[0], Arch: m[1], Version: m[2]}, true
}

// archiveInGuest returns what is wrong with the path of a file in the guests.
func archiveInGuest(file string, endings ...string) error {
	switch {
	case !path.IsAbs(file) || path.Clean(file) != file:
		return errors.New("is not an absolute path")
	case !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(file, e) }):
		return errors.New("ends in none of " + strings.Join(endings, ", "))
	}
	return nil
}

func (c *checker) software(g GPUOpt) {
	for i, d := range g.Driver {
		at := "gpudirect.driver[" + string(rune('0'+min(i, 9))) + "]"
		if !strings.Contains(d, "/") && !strings.HasSuffix(d, ".run") {
			if !packageName.MatchString(d) {
				c.bad(at, "", "%q is not a valid package name", clip(d))
			}
			continue
		}
		if _, ok := (GPUOpt{Driver: []string{d}}).DriverFile(); !ok || path.Clean(d) != d {
			c.bad(at, "write the path in the guests, with NVIDIA's file name: /mnt/share/NVIDIA-Linux-x86_64-570.133.20.run",
				"%q is not a path of NVIDIA's installer", clip(d))
		} else if len(g.Driver) > 1 {
			c.bad(at, "name the installer alone, or packages alone", "%q cannot be combined with others", clip(d))
		}
	}
	if g.Perftest != "" {
		if err := archiveInGuest(g.Perftest, sourceEndings...); err != nil {
			c.bad("gpudirect.perftest", "", "%q %v", clip(g.Perftest), err)
		}
	}
}

// OwnPerftest is the value of measure.perftest if each guest measures with the release of its distribution.
const OwnPerftest = "distribution"

var sourceEndings = []string{".tar.gz", ".tgz", ".tar.xz", ".tar"}

// Source returns what perftest is built from in all guests: a path in the guests, or a URL; "" if each uses its own.
func (m Measure) Source() string {
	if m.Perftest == OwnPerftest {
		return ""
	}
	return m.Perftest
}

var sumSuffix = regexp.MustCompile(`^sha256=[0-9a-f]{64}$`)

// source checks what perftest is built from. The build runs as root, so a file from an unprotected source must be identified by
// its content.
func (c *checker) source(m Measure) {
	src := m.Source()
	if src == "" {
		return
	}
	if err := sourceError(src); err != nil {
		c.bad("measure.perftest", "", "%q %v", clip(backends.ShownURL(src)), err)
	}
}

func sourceError(src string) error {
	if !strings.Contains(src, "://") {
		return archiveInGuest(src, sourceEndings...)
	}
	u, err := url.Parse(src)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(src, " '\"`\\"):
		return errors.New("is not a URL of a web server")
	case u.User != nil:
		return errors.New("holds a user")
	case u.Fragment != "" && !sumSuffix.MatchString(u.Fragment):
		return errors.New("has no SHA-256 after #sha256=")
	case u.Scheme == "http" && u.Fragment == "":
		return errors.New("is not protected: name its SHA-256, or use https")
	}
	return nil
}

// A GPUModel is the operator's data about a GPU model, in GB; 0: not stated.
type GPUModel struct {
	Framebuffer int `yaml:"framebuffer" json:"framebuffer,omitempty"`
	BAR         int `yaml:"bar" json:"bar,omitempty"`
}

// VMGPUs are the GPUs of a VM: whole ones, written as a list of PCI addresses, vGPUs, written as {profile, count}, or the vGPUs of a
// vendor device group, written as {group}.
type VMGPUs struct {
	Whole   []PCI  `yaml:"-" json:"whole,omitempty"`
	Profile string `yaml:"profile" json:"profile,omitempty"` // vGPU profile as the host offers it: grid_a100d-80c
	Count   int    `yaml:"count" json:"count,omitempty"`     // number of vGPUs; 0 is 1
	Group   string `yaml:"group" json:"group,omitempty"`     // vendor device group as the host lists it: Nvidia:2@grid_h100xm-80c%NVLink
}

// list returns the list form; alone unless vGPUs are named.
func (g *VMGPUs) list() (items any, alone bool) { return &g.Whole, !g.Shared() && g.Count == 0 }

// Shared reports whether vGPUs are requested, by their profile or as a vendor device group.
func (g VMGPUs) Shared() bool { return g.Profile != "" || g.Group != "" }

// VGPUs returns how many vGPUs are requested by their profile.
func (g VMGPUs) VGPUs() int {
	if g.Profile == "" {
		return 0
	}
	return max(1, g.Count)
}

// VGPUs reports whether VMs get vGPUs.
func (a *Answers) VGPUs() bool {
	for _, g := range a.GPUDirect.GPUs {
		if g.Shared() {
			return a.GPUs()
		}
	}
	return false
}

// HostPackages returns the locations of all files with packages for hosts.
func (a *Answers) HostPackages() []string {
	out := slices.Clone(a.SRIOV.Components)
	if a.GPUDirect.Manager != "" && a.VGPUs() {
		out = append(out, a.GPUDirect.Manager)
	}
	return out
}
