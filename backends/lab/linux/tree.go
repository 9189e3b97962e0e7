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

// mounts mounts the computed parts of the file system.
func (m *Machine) mounts() error {
	f := m.sys.FS
	for dir, e := range map[string]vfs.Entry{
		"/proc":                       vfs.Listed(procFiles, m.procFile),
		"/sys/class/infiniband":       {Sub: m.rdma.Infiniband, Version: m.rdma.Version},
		"/sys/class/infiniband_verbs": {Sub: m.rdma.Verbs, Version: m.rdma.Version},
		"/sys/class/net":              {Sub: m.rdma.Net, Version: m.rdma.Version},
		"/sys/devices":                {Sub: m.sysDevices, Version: m.rdma.Version},
		"/sys/bus/pci":                {Sub: m.sysPCI, Version: m.rdma.Version},
		"/sys/firmware":               {Sub: m.sysFirmware},
		"/sys/module":                 {Sub: m.sysModules},
		"/sys/class/dmi/id":           {Sub: m.dmi},
		"/sys/kernel/config":          {Sub: m.configfs},
		"/dev/infiniband":             {Sub: func() vfs.Tree { return m.rdma.Nodes(m.kernel.Loaded) }},
	} {
		if err := f.Mount(dir, e); err != nil {
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

// procFiles are the entries of /proc.
var procFiles = []string{"modules", "meminfo", "cpuinfo", "uptime", "loadavg", "version", "cmdline", "sys", "self", "mounts", "kallsyms",
	"driver"}

// procFile returns a file or directory of /proc.
func (m *Machine) procFile(name string) (vfs.Entry, bool) {
	switch name {
	case "modules":
		return vfs.Entry{Data: m.kernel.Proc()}, true
	case "meminfo":
		total := m.cfg.MemoryMB * 1024
		return vfs.Entry{Data: fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\n"+
			"SwapTotal:             0 kB\nSwapFree:              0 kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n", total, total*3/5,
			total*4/5)}, true
	case "cpuinfo":
		return vfs.Entry{Data: strings.Repeat("processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz\n\n", m.cfg.CPUs)}, true
	case "uptime":
		up := m.sys.Now().Sub(m.kernel.Booted()).Seconds()
		return vfs.Entry{Data: fmt.Sprintf("%.2f %.2f\n", up, up*3)}, true
	case "loadavg":
		return vfs.Entry{Data: "0.00 0.01 0.00 1/142 1234\n"}, true
	case "version":
		return vfs.Entry{Data: "Linux version " + m.distro.kernel + "\n"}, true
	case "cmdline":
		return vfs.Entry{Data: "BOOT_IMAGE=/boot/vmlinuz-" + m.distro.kernel + " root=/dev/sda2 ro\n"}, true
	case "sys":
		return vfs.Entry{Sub: m.procSys}, true
	case "self":
		return vfs.Entry{Sub: func() vfs.Tree {
			return vfs.Tree{"limits": {Data: "Limit                     Soft Limit           Hard Limit           Units     \n"}}
		}}, true
	case "mounts":
		return vfs.Entry{Data: "/dev/sda2 / ext4 rw,relatime 0 0\n"}, true
	case "kallsyms":
		return vfs.Entry{Data: m.kallsyms()}, true
	case "driver":
		text := m.nvidia.Proc()
		return vfs.Entry{Sub: func() vfs.Tree { return vfs.Tree{"nvidia/version": {Data: text}} }}, text != ""
	}
	return vfs.Entry{}, false
}

// procSys returns the content of /proc/sys.
func (m *Machine) procSys() vfs.Tree {
	return vfs.Tree{
		"kernel/random/boot_id": {Data: m.boot().id + "\n"},
		"kernel/osrelease":      {Data: m.distro.kernel + "\n"},
		"kernel/hostname":       {Data: m.cfg.Hostname + "\n"},
		"net/ipv4/ip_forward":   {Data: "0\n", Mode: 0o644},
		"net/ipv4/conf":         {Sub: m.net.Stack.Conf},
	}
}

// configfs returns a directory with one entry for each module that uses configfs.
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
