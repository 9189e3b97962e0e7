package linux

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func number(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// mounts adds the computed parts to the file system.
func (m *Machine) mounts() error {
	f := m.sys.FS
	for dir, tree := range map[string]func() vfs.Tree{
		"/proc":                       m.proc,
		"/sys/class/infiniband":       m.rdma.Infiniband,
		"/sys/class/infiniband_verbs": m.rdma.Verbs,
		"/sys/class/net":              m.rdma.Net,
		"/sys/devices":                m.sysDevices,
		"/sys/bus/pci":                m.sysPCI,
		"/sys/firmware":               m.sysFirmware,
		"/sys/module":                 m.sysModules,
		"/sys/class/dmi/id":           m.dmi,
		"/sys/kernel/config":          m.configfs,
		"/dev/infiniband":             func() vfs.Tree { return m.rdma.Nodes(m.kernel.Loaded) },
	} {
		if err := f.Mount(dir, tree); err != nil {
			return err
		}
	}
	for name, mode := range map[string]fs.FileMode{"null": 0o666, "zero": 0o666, "random": 0o666, "urandom": 0o666, "tty": 0o666} {
		if err := f.Mknod(vfs.Root(), "/dev/"+name, fs.ModeDevice|fs.ModeCharDevice|mode); err != nil {
			return err
		}
	}
	return nil
}

func (m *Machine) proc() vfs.Tree {
	t := vfs.Tree{
		"modules": {Read: m.kernel.Proc},
		"meminfo": {Read: func() string {
			total := m.cfg.MemoryMB * 1024
			return fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\n"+
				"SwapTotal:             0 kB\nSwapFree:              0 kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n", total, total*3/5, total*4/5)
		}},
		"cpuinfo": {Read: func() string {
			return strings.Repeat("processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz\n\n", m.cfg.CPUs)
		}},
		"uptime": {Read: func() string {
			up := m.sys.Now().Sub(m.kernel.Booted()).Seconds()
			return fmt.Sprintf("%.2f %.2f\n", up, up*3)
		}},
		"loadavg":                   {Data: "0.00 0.01 0.00 1/142 1234\n"},
		"version":                   {Data: "Linux version " + m.distro.kernel + "\n"},
		"cmdline":                   {Data: "BOOT_IMAGE=/boot/vmlinuz-" + m.distro.kernel + " root=/dev/sda2 ro\n"},
		"sys/kernel/random/boot_id": {Data: m.boot().id + "\n"},
		"sys/kernel/osrelease":      {Data: m.distro.kernel + "\n"},
		"sys/kernel/hostname":       {Data: m.cfg.Hostname + "\n"},
		"sys/net/ipv4/ip_forward":   {Data: "0\n", Mode: 0o644},
		"sys/net/ipv4/conf":         {Sub: m.net.Stack.Conf},
		"self/limits":               {Data: "Limit                     Soft Limit           Hard Limit           Units     \n"},
		"mounts":                    {Data: "/dev/sda2 / ext4 rw,relatime 0 0\n"},
		"kallsyms":                  {Read: m.kallsyms},
	}
	if text := m.nvidia.Proc(); text != "" {
		t["driver/nvidia/version"] = vfs.Entry{Data: text}
	}
	return t
}

// configfs contains a directory for each module that uses it.
func (m *Machine) configfs() vfs.Tree {
	if !m.kernel.Loaded("rdma_cm") {
		return vfs.Tree{}
	}
	return m.rdma.Config(func() func() { return m.kernel.Use("rdma_cm") })
}

func (m *Machine) sysModules() vfs.Tree {
	t := vfs.Tree{}
	for _, l := range m.kernel.List() {
		t[l.Name+"/refcnt"] = vfs.Entry{Data: fmt.Sprintf("%d\n", l.Used)}
		t[l.Name+"/initstate"] = vfs.Entry{Data: "live\n"}
		if l.Version != "" {
			t[l.Name+"/version"] = vfs.Entry{Data: l.Version + "\n"}
		}
	}
	return t
}

func (m *Machine) dmi() vfs.Tree {
	return vfs.Tree{
		"sys_vendor":   {Data: "VMware, Inc.\n"},
		"product_name": {Data: "VMware7,1\n"},
		"product_uuid": {Data: m.cfg.UUID + "\n", Mode: 0o400},
	}
}
