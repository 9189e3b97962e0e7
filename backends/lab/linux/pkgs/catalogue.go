package pkgs

import "strings"

// bin returns the programs of a package by path: "name" is installed in dir, "/path=name" at path.
func bin(dir string, names ...string) map[string]string {
	m := map[string]string{}
	for _, n := range names {
		if path, program, ok := strings.Cut(n, "="); ok {
			m[path] = program
			continue
		}
		m[dir+"/"+n] = n
	}
	return m
}

// base parses the packages of a new installation that only have programs: lines of NAME VERSION[@ARCH] [DIRECTORY PROGRAM...].
func base(text string) (list []Package) {
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		p := Package{Name: w[0], Base: true}
		p.Version, p.Arch, _ = strings.Cut(w[1], "@")
		if len(w) > 2 {
			p.Bin = bin(w[2], w[3:]...)
		}
		list = append(list, p)
	}
	return list
}

func coreutils() []string {
	return []string{"cat", "cp", "mv", "rm", "mkdir", "rmdir", "ln", "touch", "chmod", "chown", "mktemp", "sync",
		"ls", "stat", "readlink", "basename", "dirname", "head", "tail", "wc", "sort",
		"cut", "tr", "env", "sleep", "timeout", "stdbuf", "nohup", "true", "false", "echo", "seq", "id", "groups", "date",
		"sha256sum", "base64", "uname", "nproc"}
}

func perftests() []string {
	return []string{"ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat"}
}

// headers returns header files below /usr/include.
func headers(names ...string) map[string]string {
	m := map[string]string{}
	for _, n := range names {
		m["/usr/include/"+n] = "/* " + n + " */\n"
	}
	return m
}

// buildTree returns the files required to build modules for a kernel.
func buildTree(kernel string) map[string]string {
	return map[string]string{"/lib/modules/" + kernel + "/build/Makefile": "# kernel " + kernel + "\n"}
}

// Ubuntu returns the available packages of Ubuntu 20.04, 22.04 or 24.04. kernel is the output of uname -r.
func Ubuntu(release, kernel string) []Package {
	rdma, perf, diag, plan := "39.0-1", "4.4+0.37-1", "39.0-1", "0.106.1-7ubuntu0.22.04.4"
	iproute, net := "5.15.0-1ubuntu2", []string{"ip", "ss", "/usr/sbin/ip=ip", "/usr/bin/rdma=rdma", "/usr/sbin/dcb=dcb"}
	if release == "20.04" {
		iproute, net = "5.5.0-1ubuntu1", net[:4] // dcb is part of iproute2 since 5.11
		rdma, perf, diag, plan = "28.0-1ubuntu1", "4.4+0.5-1", "28.0-1ubuntu1", "0.104-0ubuntu2~20.04.4"
	}
	// linux-modules-extra has vmw_pvrdma and ib_uverbs (dpkg-deb -c of the package of 24.04; packages.ubuntu.com).
	image := "5.15.0-112.122"
	if release == "24.04" {
		image, iproute = "6.8.0-31.31", "6.1.0-3"
		rdma, perf, diag, plan = "50.0-2build2", "24.01.0+0.38-1build2", "50.0-2build2", "1.0-2ubuntu1"
	}
	list := append(base(`
bash 5.1-6ubuntu1.1 /usr/bin bash
dash 0.5.11+git20210903+really0.5.11-3build1 /usr/bin dash /usr/bin/sh=dash
grep 3.7-1build1 /usr/bin grep
tar 1.34+dfsg-1ubuntu0.1.22.04.2 /usr/bin tar
sed 4.8-1ubuntu2 /usr/bin sed
mawk 1.3.4.20200120-3 /usr/bin awk
findutils 4.8.0-1ubuntu3 /usr/bin find xargs
diffutils 1:3.8-0ubuntu2
debianutils 5.5-1ubuntu2
procps 2:3.3.17-6ubuntu2.1 /usr/bin ps kill pgrep pkill
hostname 3.23ubuntu2 /usr/bin hostname
util-linux 2.37.2-4ubuntu3.4 /usr/bin dmesg setsid flock
kmod 29-1ubuntu1 /usr/sbin modprobe rmmod modinfo depmod /usr/bin/lsmod=lsmod
iputils-ping 3:20211215-1 /usr/bin ping
ethtool 1:5.16-1ubuntu0.2 /usr/sbin ethtool
pciutils 1:3.7.0-6 /usr/bin lspci
ufw 0.36.1-4ubuntu0.1 /usr/sbin ufw
iptables 1.8.7-1ubuntu5.2 /usr/sbin iptables
systemd 249.11-0ubuntu3.12 /usr/bin systemctl networkctl systemd-run udevadm
systemd-sysv 249.11-0ubuntu3.12 /usr/sbin reboot
sudo 1.9.9-1ubuntu2.4 /usr/bin sudo
passwd 1:4.8.1-2ubuntu2.2
apt 2.4.12 /usr/bin apt-get apt-cache apt-mark
dpkg 1.21.1ubuntu2.3 /usr/bin dpkg dpkg-query
initramfs-tools 0.140ubuntu13.4@all /usr/sbin update-initramfs /usr/bin/lsinitramfs=lsinitramfs
openssh-server 1:8.9p1-3ubuntu0.7
open-vm-tools 2:12.3.5-3~ubuntu0.22.04.1
udev 249.11-0ubuntu3.12`), []Package{
		{Name: "coreutils", Version: "8.32-4.1ubuntu1.2", Base: true, Bin: bin("/usr/bin", coreutils()...)},
		{Name: "iproute2", Version: iproute, Base: true, Bin: bin("/usr/bin", net...)},
		{Name: "iputils-arping", Version: "3:20211215-1", Bin: bin("/usr/bin", "arping"), KB: 60},
		{Name: "netplan.io", Version: plan, Base: true, Bin: bin("/usr/sbin", "netplan")},
		{Name: "network-manager", Version: "1.36.6-0ubuntu2", Bin: bin("/usr/bin", "nmcli")},
		{Name: "nftables", Version: "1.0.2-1ubuntu3", Bin: bin("/usr/sbin", "nft")},
		{Name: "linux-image-" + kernel, Version: image, Base: true},
		{Name: "linux-modules-" + kernel, Version: image, Base: true},
		{Name: "linux-modules-extra-" + kernel, Version: image, Base: true},

		{Name: "libnl-3-200", Version: "3.5.0-0.1", Base: true, KB: 140},
		{Name: "libnl-route-3-200", Version: "3.5.0-0.1", Base: true, KB: 540},
		{Name: "libibverbs1", Version: rdma, Needs: []string{"libnl-3-200", "libnl-route-3-200"}, KB: 186},
		{Name: "ibverbs-providers", Version: rdma, Needs: []string{"libibverbs1"}, KB: 1190,
			Provides: []string{"libbnxt-re1", "libcxgb4-1", "libefa1", "libhfi1verbs1", "libhns1", "libipathverbs1", "libmlx4-1", "libmlx5-1",
				"libmthca1", "librxe1", "libsiw1", "libvmw-pvrdma1"},
			Files: map[string]string{"/etc/libibverbs.d/vmw_pvrdma.driver": "driver vmw_pvrdma\n", "/etc/libibverbs.d/mlx5.driver": "driver mlx5\n",
				"/usr/lib/x86_64-linux-gnu/libibverbs/libvmw_pvrdma-rdmav34.so": "\x7fELF"}},
		{Name: "ibverbs-utils", Version: rdma, Needs: []string{"libibverbs1"}, Bin: bin("/usr/bin", "ibv_devinfo"), KB: 200},
		{Name: "librdmacm1", Version: rdma, Needs: []string{"libibverbs1"}, KB: 210},
		{Name: "rdmacm-utils", Version: rdma, Needs: []string{"libibverbs1", "librdmacm1"}, KB: 290},
		{Name: "libibumad3", Version: rdma, KB: 63},
		{Name: "libibmad5", Version: rdma, Needs: []string{"libibumad3"}, KB: 127},
		{Name: "libibnetdisc5", Version: rdma, Needs: []string{"libibmad5", "libibumad3"}, KB: 110},
		{Name: "infiniband-diags", Version: diag, Needs: []string{"libibmad5", "libibnetdisc5", "libibumad3", "libibverbs1"}, KB: 730},
		{Name: "rdma-core", Version: rdma, Needs: []string{"libibverbs1", "ibverbs-providers", "udev"}, KB: 180,
			Files: map[string]string{"/etc/rdma/modules/rdma.conf": "rdma_ucm\n",
				"/lib/udev/rules.d/60-rdma-persistent-naming.rules": "# NAME_FALLBACK\n"},
			Script: "#!/bin/sh\nset -e\ntest \"$1\" = configure\n"},
		{Name: "perftest", Version: perf, Needs: []string{"libibverbs1", "librdmacm1", "libibumad3", "pciutils"},
			Bin: bin("/usr/bin", perftests()...), KB: 1050},
		{Name: "libibverbs-dev", Version: rdma, Needs: []string{"libibverbs1", "ibverbs-providers"}, Files: headers("infiniband/verbs.h"),
			KB: 3000},
		{Name: "librdmacm-dev", Version: rdma, Needs: []string{"librdmacm1", "libibverbs-dev"}, Files: headers("rdma/rdma_cma.h"), KB: 600},
		{Name: "libibumad-dev", Version: rdma, Needs: []string{"libibumad3", "libibverbs-dev"}, Files: headers("infiniband/umad.h"), KB: 300},
		{Name: "libpci-dev", Version: "1:3.7.0-6", Files: headers("pci/pci.h"), KB: 200},
		{Name: "linux-headers-" + kernel, Version: image, Files: buildTree(kernel), KB: 24000},
		{Name: "git", Version: "1:2.34.1-1ubuntu1.11", KB: 19000},
		{Name: "make", Version: "4.3-4.1build1", Bin: bin("/usr/bin", "make"), KB: 400},
		{Name: "gcc", Version: "4:11.2.0-1ubuntu1", Bin: bin("/usr/bin", "gcc"), KB: 50},
		{Name: "docker.io", Version: "24.0.7-0ubuntu2~22.04.1", Needs: []string{"iptables"}, Bin: bin("/usr/bin", "docker"), KB: 155000},
		{Name: "nfs-rdma-tools", Version: "1.0-1", Needs: []string{"rdma-core"}, KB: 40},
	}...)
	list = append(list, builders()...)
	list = append(list, nvidiaDebs()...)
	if release == "20.04" {
		list = append(list, Package{Name: "ibutils", Version: "1.5.7+0.2.gbd7e502-3", KB: 1900})
	}
	for i := range list {
		if list[i].Arch == "" {
			list[i].Arch = "amd64"
		}
	}
	return list
}

// builders returns the packages required to build modules on Debian and Ubuntu, in addition to gcc, make and headers. NVIDIA's
// packages depend on dkms.
func builders() []Package {
	list := []Package{{Name: "tk", Version: "8.6.11+1build2", Needs: []string{"tcl"}, Arch: "all", KB: 20}}
	for _, name := range []string{"autoconf", "automake", "autotools-dev", "bison", "chrpath", "debhelper", "flex", "gfortran", "graphviz",
		"libltdl-dev", "m4", "pkg-config", "quilt", "swig", "tcl"} {
		list = append(list, Package{Name: name, Version: "1.0-1", KB: 900})
	}
	return list
}

// Enterprise returns the available packages of RHEL or CentOS 8, 9 or 10.
func Enterprise(major, kernel string) []Package {
	el, rdma, perf := ".el8", "44.0-2.el8.1", "4.5-12.el8"
	switch major {
	case "9":
		el, rdma, perf = ".el9", "46.0-1.el9", "4.5-8.el9"
	case "10":
		el, rdma, perf = ".el10", "54.0-1.el10", "24.07-3.el10"
	}
	list := append(base(strings.ReplaceAll(`
bash 4.4.20-5$el /usr/bin bash /usr/bin/sh=sh
grep 3.1-6$el /usr/bin grep
tar 2:1.30-9$el /usr/bin tar
sed 4.5-5$el /usr/bin sed
gawk 4.2.1-4$el /usr/bin awk
findutils 1:4.6.0-21$el /usr/bin find xargs
diffutils 3.6-6$el
which 2.21-20$el
procps-ng 3.3.15-14$el /usr/bin ps kill pgrep pkill
hostname 3.20-6$el /usr/bin hostname
util-linux 2.32.1-44$el /usr/bin dmesg setsid flock
kmod 25-20$el /usr/sbin modprobe rmmod modinfo depmod lsmod
iproute 6.2.0-5$el /usr/sbin ip ss rdma dcb
iputils 20180629-11$el /usr/bin ping /usr/sbin/arping=arping
ethtool 2:5.13-2$el /usr/sbin ethtool
pciutils 3.7.0-3$el /usr/sbin lspci
NetworkManager 1:1.40.16-15$el /usr/bin nmcli
firewalld 0.9.3-13$el@noarch /usr/bin firewall-cmd
nftables 1:0.9.3-26$el /usr/sbin nft
sudo 1.8.29-10$el /usr/bin sudo
dnf 4.7.0-19$el@noarch /usr/bin dnf yum dnf-3
rpm 4.14.3-28$el /usr/bin rpm
dracut 049-228.git20230802$el /usr/bin dracut lsinitrd
openssh-server 8.0p1-19$el
open-vm-tools 12.2.5-3$el
libnl3 3.7.0-1$el`, "$el", el)), []Package{
		{Name: "coreutils", Version: "8.30-15" + el, Base: true, Bin: bin("/usr/bin", coreutils()...)},
		{Name: "systemd", Version: "239-78" + el, Base: true, Bin: bin("/usr/bin", "systemctl", "systemd-run", "udevadm",
			"/usr/sbin/reboot=reboot")},
		{Name: "kernel-core", Version: strings.TrimSuffix(kernel, ".x86_64"), Base: true},
		{Name: "kernel-modules", Version: strings.TrimSuffix(kernel, ".x86_64"), Base: true},
		{Name: "kernel-modules-extra", Version: strings.TrimSuffix(kernel, ".x86_64")},

		{Name: "libibverbs", Version: rdma, Needs: []string{"libnl3"}, KB: 990,
			Files: map[string]string{"/etc/libibverbs.d/vmw_pvrdma.driver": "driver vmw_pvrdma\n", "/etc/libibverbs.d/mlx5.driver": "driver mlx5\n",
				"/usr/lib64/libibverbs/libvmw_pvrdma-rdmav34.so": "\x7fELF"}},
		{Name: "libibverbs-utils", Version: rdma, Needs: []string{"libibverbs"}, Bin: bin("/usr/bin", "ibv_devinfo"), KB: 300},
		{Name: "librdmacm", Version: rdma, Needs: []string{"libibverbs"}, KB: 200},
		{Name: "librdmacm-utils", Version: rdma, Needs: []string{"librdmacm"}, KB: 400},
		{Name: "libibumad", Version: rdma, KB: 60},
		{Name: "infiniband-diags", Version: rdma, Needs: []string{"libibumad", "libibverbs"}, KB: 950},
		{Name: "rdma-core", Version: rdma, Needs: []string{"libnl3"}, KB: 120,
			Files: map[string]string{"/etc/rdma/modules/rdma.conf": "rdma_ucm\n",
				"/usr/lib/udev/rules.d/60-rdma-persistent-naming.rules": "# NAME_FALLBACK\n"}},
		{Name: "rdma-core-devel", Version: rdma, Needs: []string{"rdma-core", "libibverbs"},
			Files: headers("infiniband/verbs.h", "rdma/rdma_cma.h", "infiniband/umad.h"), KB: 700},
		{Name: "kernel-devel-" + kernel, Version: strings.TrimSuffix(kernel, ".x86_64"), Files: buildTree(kernel), KB: 60000},
		{Name: "perftest", Version: perf, Needs: []string{"libibverbs", "librdmacm", "libibumad"}, Bin: bin("/usr/bin", perftests()...),
			KB: 2100},
		{Name: "automake", Version: "1.16.1-8" + el, Arch: "noarch", KB: 1700},
		{Name: "autoconf", Version: "2.69-29" + el, Arch: "noarch", KB: 2300},
		{Name: "pciutils-devel", Version: "3.7.0-3" + el, Files: headers("pci/pci.h"), KB: 80},
		{Name: "gcc", Version: "8.5.0-20" + el, Bin: bin("/usr/bin", "gcc"), KB: 60000},
		{Name: "make", Version: "1:4.2.1-11" + el, Bin: bin("/usr/bin", "make"), KB: 1400},
		{Name: "git", Version: "2.39.3-1" + el, KB: 400},
	}...)
	for _, name := range []string{"createrepo_c", "elfutils-libelf-devel", "gcc-gfortran", "kernel-rpm-macros", "libtool", "lsof", "patch",
		"perl", "rpm-build", "tcl", "tcsh"} {
		list = append(list, Package{Name: name, Version: "1.0-1" + el, KB: 900})
	}
	list = append(list, Package{Name: "tk", Version: "1:8.6.8-1" + el, Needs: []string{"tcl"}, KB: 1600})
	list = append(list, nvidiaRPMs(el)...)
	for i := range list {
		if list[i].Arch == "" {
			list[i].Arch = "x86_64"
		}
	}
	return list
}
