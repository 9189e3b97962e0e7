// Package linux implements the Linux guests of the lab. It combines the kernel, the network, the packages, systemd and the RDMA
// tools on a file system in memory. A guest follows the power state of its VM.
package linux

import (
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/kernel"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/pkgs"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
)

// distro contains the properties of a distribution.
type distro struct {
	id, version string // ubuntu 22.04, rhel 9.2
	kernel      string // uname -r
	deb         bool
	release     string // /etc/os-release
	path        string // PATH of users; root's also has the sbin directories
	memlock     int64  // KiB, of a session without a file in limits.d
	relaxed     bool   // perftest is 4.4+0.37 or later
	perftest    string
	banner      string
	private     bool // only root can read the kernel log
	quirks      rdma.Quirks
	packages    *pkgs.Offer
	modules     []kernel.Module
}

// ofed returns the name of the system in MLNX_OFED, which treats rebuilds of RHEL as RHEL.
func (d distro) ofed() string {
	if d.deb {
		return d.id + d.version
	}
	return "rhel" + d.version
}

const (
	rootPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	userPath = "/usr/local/bin:/usr/bin:/bin:/usr/games"
)

// Systems returns the supported operating systems.
func Systems() []string {
	return []string{"ubuntu-20.04", "ubuntu-22.04", "ubuntu-24.04", "debian-12", "rhel-8", "rhel-9", "rhel-10", "centos-8", "centos-9",
		"rocky-8", "rocky-9", "almalinux-8", "almalinux-9"}
}

// newDistro returns the distribution for a name: ubuntu-20.04, ubuntu-22.04, ubuntu-24.04, debian-12, and rhel, centos, rocky and almalinux
// 8, 9 and 10. Other names select ubuntu-22.04.
func newDistro(os string) distro {
	id, version, _ := strings.Cut(os, "-")
	switch id {
	case "rhel", "centos", "rocky", "almalinux":
		return enterprise(id, version)
	case "debian":
		return debian()
	case "ubuntu":
		switch version {
		case "20.04":
			return ubuntu(version, "Focal Fossa", "focal", "5.4.0-182-generic", "5.80", "SSH-2.0-OpenSSH_8.2p1 Ubuntu-4ubuntu0.11")
		case "24.04":
			return ubuntu(version, "Noble Numbat", "noble", "6.8.0-31-generic", "6.20", "SSH-2.0-OpenSSH_9.6p1 Ubuntu-3ubuntu13")
		}
	}
	return ubuntu("22.04", "Jammy Jellyfish", "jammy", "5.15.0-112-generic", "5.96", "SSH-2.0-OpenSSH_8.9p1 Ubuntu-3ubuntu0.7")
}

func ubuntu(version, name, code, release, perftest, banner string) distro {
	return distro{
		id: "ubuntu", version: version, kernel: release, deb: true, path: userPath, memlock: 65536, perftest: perftest,
		relaxed: version != "20.04", private: version != "20.04", banner: banner, quirks: rdma.Quirks{BootDown: true},
		packages: pkgs.NewOffer(pkgs.Ubuntu(version, release)), modules: kernel.Modules(),
		release: fmt.Sprintf(
			"PRETTY_NAME=\"Ubuntu %s LTS\"\nNAME=\"Ubuntu\"\nVERSION_ID=\"%s\"\nVERSION=\"%s LTS "+
				"(%s)\"\nVERSION_CODENAME=%s\nID=ubuntu\nID_LIKE=debian\n"+
				"HOME_URL=\"https://www.ubuntu.com/\"\nSUPPORT_URL=\"https://help.ubuntu.com/\"\nBUG_REPORT_URL=\"https://bugs.launchpad.net/ubuntu/\"\nUBUNTU_CODENAME=%s\n",
			version, version, version, name, code, code),
	}
}

// debian returns Debian 12, whose kernel is built without vmw_pvrdma.
func debian() distro {
	const release = "6.1.0-26-amd64"
	d := ubuntu("22.04", "", "", release, "6.06", "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3")
	d.id, d.version, d.private = "debian", "12", true
	d.modules = kernel.Without(d.modules, "vmw_pvrdma")
	d.release = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nVERSION=\"12 " +
		"(bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n" +
		"HOME_URL=\"https://www.debian.org/\"\nSUPPORT_URL=\"https://www.debian.org/support\"\nBUG_REPORT_URL=\"https://bugs.debian.org/\"\n"
	return d
}

func enterprise(id, version string) distro {
	major, _, _ := strings.Cut(version, ".")
	name := map[string]string{"rhel": "Red Hat Enterprise Linux", "centos": "CentOS Stream", "rocky": "Rocky Linux",
		"almalinux": "AlmaLinux"}[id]
	like := "fedora"
	if id != "rhel" {
		like = "rhel fedora"
	}
	full, release, memlock := "8.8", "4.18.0-477.27.1.el8_8.x86_64", int64(64)
	modules := kernel.Modules()
	switch major {
	case "9":
		full, release, memlock = "9.2", "5.14.0-284.30.1.el9_2.x86_64", 8192
	case "10":
		// Red Hat has disabled both drivers since kernel 6.9.
		full, release, memlock = "10.0", "6.12.0-55.9.1.el10_0.x86_64", 8192
		modules = kernel.Without(modules, "vmw_pvrdma", "mlx4_core", "mlx4_ib")
	}
	if id == "centos" {
		full = major
	}
	return distro{
		id: id, version: full, kernel: release, path: "/usr/local/bin:/usr/bin", memlock: memlock, perftest: "6.06", relaxed: true,
		banner:   map[string]string{"8": "SSH-2.0-OpenSSH_8.0", "9": "SSH-2.0-OpenSSH_8.7", "10": "SSH-2.0-OpenSSH_9.9"}[major],
		quirks:   rdma.Quirks{NeedsUmad: true},
		packages: pkgs.NewOffer(pkgs.Enterprise(major, release)), modules: modules,
		release: fmt.Sprintf(
			"NAME=\"%s\"\nVERSION=\"%s\"\nID=\"%s\"\nID_LIKE=\"%s\"\nVERSION_ID=\"%s\"\nPLATFORM_ID=\"platform:el%s\"\nPRETTY_NAME=\"%s %s\"\n",
			name, full, id, like, full, major, name, full),
	}
}
