package containers

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// A Dockerfile converts an image with MLNX_OFED, such as those of NVIDIA's NGC, into one that supports PVRDMA: the libraries of
// MLNX_OFED have no vmw_pvrdma provider and cannot be mixed with those of the distribution (PVRDMA and vSphere Bitfusion, VMware,
// 2021, Using PVRDMA in an NGC container).
type Dockerfile struct {
	Base      string   // with a tag or digest
	EL        bool     // an image with dnf; otherwise apt
	Codename  string   // release to install from, focal; "": the image's own. apt only
	Remove    []string // packages to remove in addition to those found in the image; nil: the guide's. apt only
	Packages  []string // nil: according to the table of the distribution
	Name      string   // of the image to build
	Bitfusion string   // URL of the Bitfusion client's package; "": none. apt only
	SHA256    string   // of that package; "": not checked
	Timezone  string   // which that package requires; "": Etc/UTC
	Sample    bool     // build the guide's TensorRT sample. apt only
	Class     int      // traffic class for UCX and NCCL in its containers; 0: none
	GID       int      // GID index of the RoCE v2 address, used if Class is set; negative: not set
}

// BitfusionClient is the package in the guide. Bitfusion is no longer sold, so the URL may not work any more.
const BitfusionClient = "https://packages.vmware.com/bitfusion/ubuntu/20.04/bitfusion-client-ubuntu2004_3.0.1-4_amd64.deb"

// mofed are the packages of MLNX_OFED that the guide purges.
var mofed = []string{"ibverbs-providers", "ibverbs-utils", "libibverbs-dev", "libibverbs1"}

var (
	reference = regexp.MustCompile(
		`^[a-z0-9]+([._:-][a-z0-9]+)*(/[a-z0-9]+([._-]{1,2}[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
	packageName = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9+.-]{0,99}$`)
	word        = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_+./-]{0,63}$`)
	sha256sum   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Check returns an error for settings that cannot be built.
func (d Dockerfile) Check() error {
	last := path.Base(d.Base)
	switch {
	case !reference.MatchString(d.Base):
		return fmt.Errorf("%q is not a container image", d.Base)
	case !strings.Contains(last, ":") && !strings.Contains(d.Base, "@"), strings.HasSuffix(d.Base, ":latest"):
		return fmt.Errorf("%s may be another image tomorrow: name a tag or a digest", d.Base)
	case d.Name != "" && !reference.MatchString(d.Name):
		return fmt.Errorf("%q is not a valid image name", d.Name)
	case d.Codename != "" && !word.MatchString(d.Codename):
		return fmt.Errorf("%q is not a codename of a release", d.Codename)
	case d.Timezone != "" && !word.MatchString(d.Timezone):
		return fmt.Errorf("%q is not a time zone", d.Timezone)
	case d.SHA256 != "" && (!sha256sum.MatchString(d.SHA256) || d.Bitfusion == ""):
		return fmt.Errorf("%q is not a SHA-256 of the Bitfusion package", d.SHA256)
	case d.Class < 0 || d.Class > 255:
		return fmt.Errorf("traffic class %d is not between 0 and 255", d.Class)
	case d.EL && (d.Bitfusion != "" || d.Sample || d.Codename != "" || d.Remove != nil):
		return fmt.Errorf("the Bitfusion client, the sample, a codename and packages to remove are for images with apt")
	}
	for _, p := range append(slices.Clone(d.Packages), d.Remove...) {
		if !packageName.MatchString(p) {
			return fmt.Errorf("%q is not a valid package name", p)
		}
	}
	if d.Bitfusion != "" {
		u, err := url.Parse(d.Bitfusion)
		if err != nil || u.Scheme != "https" || u.User != nil || strings.ContainsAny(d.Bitfusion, " \t\r\n'\"\\$`<>") ||
			!strings.HasSuffix(u.Path, ".deb") {
			return fmt.Errorf("%q is not an https address of a .deb package", backends.ShownURL(d.Bitfusion))
		}
	}
	return nil
}

// Text writes the Dockerfile.
func (d Dockerfile) Text(o generate.Origin) (string, error) {
	if err := d.Check(); err != nil {
		return "", err
	}
	packages := d.Packages
	if packages == nil {
		row, ok := assets.DistroFor(map[bool]string{false: "ubuntu", true: "rhel"}[d.EL], "99", nil)
		if !ok {
			return "", fmt.Errorf("the table of packages has no row for this image")
		}
		packages = row.Packages
	}
	name := d.Name
	if name == "" {
		name, _, _ = strings.Cut(path.Base(d.Base), ":")
		name, _, _ = strings.Cut(name, "@")
		name += "-pvrdma"
	}
	var b strings.Builder
	b.WriteString(o.Comment("#"))
	fmt.Fprintf(&b, `# Build: docker build -t %[1]s .
# Run:   docker run --rm -it --net=host --ipc=host --pid=host --privileged --cap-add=IPC_LOCK --ulimit memlock=-1 %[1]s
# Prove: docker run --rm --net=host --privileged --ulimit memlock=-1 %[1]s ibv_devinfo   must list the guest's device
FROM %[2]s
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

`, name, d.Base)
	if d.EL {
		d.dnf(&b, packages)
	} else {
		d.apt(&b, packages)
	}
	if d.Class > 0 {
		b.WriteString("\nENV " + strings.Join(backends.ClassVariables(d.Class, d.GID), " ") + "\n")
	}
	return b.String(), nil
}

// proof makes the build fail if the provider is missing.
const proof = `
# The provider of PVRDMA is there, or the build ends here.
RUN test -e /etc/libibverbs.d/vmw_pvrdma.driver
`

func (d Dockerfile) apt(b *strings.Builder, packages []string) {
	remove, release := d.Remove, cmp.Or(d.Codename, `"${UBUNTU_CODENAME:-$VERSION_CODENAME}"`)
	if remove == nil {
		remove = mofed
	}
	fmt.Fprintf(b, `# MLNX_OFED goes before the distribution's libraries come: what the image keeps in /opt/mellanox/DEBS, what bears
# MLNX_OFED's version, and what the guide names.
RUN for p in $(find /opt/mellanox/DEBS -name '*.deb' -printf '%%f\n' 2>/dev/null | sed 's/_.*//' | sort -u; \
      dpkg-query -W -f '${Package} ${Version}\n' | sed -n 's/ .*mlnx.*//p') %s; do \
      if dpkg -s "$p" >/dev/null 2>&1; then DEBIAN_FRONTEND=noninteractive apt-get purge -y "$p"; fi; \
    done

RUN . /etc/os-release && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends --reinstall --allow-downgrades \
      -t %s %s \
 && rm -rf /var/lib/apt/lists/*
`, strings.Join(remove, " "), release, strings.Join(packages, " "))
	b.WriteString(proof)
	if d.Sample {
		b.WriteString(`
# The guide's sample.
WORKDIR /workspace/tensorrt/samples
RUN make -j4
RUN /opt/tensorrt/python/python_setup.sh
WORKDIR /workspace/tensorrt/data/mnist
RUN python download_pgms.py
WORKDIR /workspace
`)
	}
	if d.Bitfusion != "" {
		zone, check := cmp.Or(d.Timezone, "Etc/UTC"), ""
		if d.SHA256 != "" {
			check = "--checksum=sha256:" + d.SHA256 + " "
		}
		fmt.Fprintf(b, `
# The Bitfusion client. The VM must be authorised as a client; no token belongs into an image.
ADD %s%s /tmp/bitfusion-client.deb
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive TZ=%s apt-get install -y --no-install-recommends /tmp/bitfusion-client.deb \
 && rm -rf /tmp/bitfusion-client.deb /var/lib/apt/lists/*
# Try it: bitfusion run -n 1 -l SERVER-ADDRESS -- ./sample_mnist
`, check, d.Bitfusion, zone)
	}
}

func (d Dockerfile) dnf(b *strings.Builder, packages []string) {
	fmt.Fprintf(b, `# MLNX_OFED goes before the distribution's libraries come: its packages bear mlnx in their version.
RUN for p in $(rpm -qa | sed -n '/mlnx/Ip'); do dnf remove -y "$p"; done

RUN dnf install -y --setopt=install_weak_deps=False %s \
 && dnf clean all \
 && rm -rf /var/cache/dnf
`, strings.Join(packages, " "))
	b.WriteString(proof)
}
