package answers

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An OFEDArchive is MLNX_OFED as NVIDIA offers it for download, or the package doca-host that contains the repository of DOCA.
type OFEDArchive struct {
	Version string // as ofed_info -s prints it: MLNX_OFED_LINUX-24.10-1.1.4.0; DOCA-OFED-2.9.1-018000 by the package's version
	Distro  string // rhel9.4, ubuntu22.04, debian12.1
	Arch    string // x86_64, aarch64
	DOCA    bool
}

// LastOFED is the last separate release; later ones are part of DOCA (NVIDIA, MLNX_OFED to DOCA-OFED).
const LastOFED = "24.10"

var (
	ofedName = regexp.MustCompile(
		`^MLNX_OFED_LINUX-(\d+\.\d+)-(\d+(?:\.\d+){2,3})-([a-z]+\d[a-z0-9.]*)-([a-z0-9_]+)(-ext)?\.(tgz|tar\.gz)$`)
	docaDeb     = regexp.MustCompile(`^doca-host_(\d+(?:\.\d+)+-\d+)-\d+\.\d+-([a-z]+)(\d+)_(amd64|arm64)\.deb$`)
	docaRPM     = regexp.MustCompile(`^doca-host-(\d+(?:\.\d+)+-\d+)_\d+\.\d+_([a-z]+)(\d+)\.(x86_64|aarch64)\.rpm$`)
	ofedVersion = regexp.MustCompile(`^MLNX_OFED_LINUX-(\d+(?:\.\d+)*)-(\d+(?:\.\d+)*)$`)
)

// ParseOFED parses the path of an archive. The error says briefly what is wrong with it.
func ParseOFED(file string) (OFEDArchive, error) {
	base := path.Base(file)
	switch lower := strings.ToLower(base); {
	case !path.IsAbs(file) || path.Clean(file) != file:
		return OFEDArchive{}, errors.New("is not an absolute path")
	case strings.HasPrefix(lower, "doca"):
		return parseDOCA(base)
	case strings.HasSuffix(lower, ".iso"):
		return OFEDArchive{}, errors.New("is an image to be mounted; the archive with the same name ends in .tgz")
	}
	m := ofedName.FindStringSubmatch(base)
	if m == nil {
		return OFEDArchive{}, errors.New("is not the name of an MLNX_OFED archive")
	}
	if compareRelease(m[1], LastOFED) > 0 {
		return OFEDArchive{}, fmt.Errorf("is release %s; MLNX_OFED ended with %s, what came after is DOCA-OFED", m[1], LastOFED)
	}
	return OFEDArchive{Version: "MLNX_OFED_LINUX-" + m[1] + "-" + m[2], Distro: m[3], Arch: m[4]}, nil
}

// parseDOCA parses doca-host_2.9.1-018000-24.10-ubuntu2204_amd64.deb and doca-host-2.9.1-018000_24.10_rhel94.x86_64.rpm.
func parseDOCA(base string) (OFEDArchive, error) {
	m := docaDeb.FindStringSubmatch(base)
	if m == nil {
		m = docaRPM.FindStringSubmatch(base)
	}
	if m == nil {
		return OFEDArchive{}, errors.New("is not the name of DOCA's package doca-host (its local repository)")
	}
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[m[4]]
	return OFEDArchive{Version: "DOCA-OFED-" + m[1], Distro: m[2] + dottedRelease(m[2], m[3]), Arch: cmp.Or(arch, m[4]), DOCA: true}, nil
}

// dottedRelease inserts the dot into a release: 22.04 for Ubuntu's 2204, 8.10 for 810, 10.0 for 100, 12.5 for Debian's 125.
func dottedRelease(family, digits string) string {
	major := 1
	if family == "ubuntu" || strings.HasPrefix(digits, "1") {
		major = 2
	}
	if len(digits) <= major {
		return digits
	}
	return digits[:major] + "." + digits[major:]
}

// rebuilds are distributions that use the archives for RHEL: they have the same kernels under other names.
var rebuilds = []string{"rhel", "centos", "rocky", "almalinux"}

// Fits returns why an archive cannot be installed in a guest with this os-release ID and VERSION_ID and this uname -m; nil if it
// can. A guest without a minor release (CentOS 8, Debian 12) can use those of its major release.
func (a OFEDArchive) Fits(id, release, arch string) error {
	at := strings.IndexAny(a.Distro, "0123456789")
	family, built := a.Distro[:at], a.Distro[at:]
	same := family == id || family == "rhel" && slices.Contains(rebuilds, id)
	if same && !strings.Contains(release, ".") {
		built, _, _ = strings.Cut(built, ".")
	}
	switch {
	case !same || built != release:
		return fmt.Errorf("it is for %s, the guest is %s%s", a.Distro, id, release)
	case a.Arch != arch:
		return fmt.Errorf("it is for %s machines, the guest is %s", a.Arch, arch)
	}
	return nil
}

// NewerOFED reports whether one version of MLNX_OFED, as ofed_info -s prints it, is later than another; false if either is
// invalid.
func NewerOFED(a, b string) bool {
	x, y := ofedVersion.FindStringSubmatch(a), ofedVersion.FindStringSubmatch(b)
	if x == nil || y == nil {
		return false
	}
	if c := compareRelease(x[1], y[1]); c != 0 {
		return c > 0
	}
	return compareRelease(x[2], y[2]) > 0
}

func compareRelease(a, b string) int {
	return slices.Compare(releaseNumbers(a), releaseNumbers(b))
}

func releaseNumbers(s string) []int {
	var list []int
	for p := range strings.SplitSeq(s, ".") {
		n, _ := strconv.Atoi(p) // the callers' patterns allow only digits
		list = append(list, n)
	}
	return list
}
