package rdma

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Config returns the content of /sys/kernel/config/rdma_cm: for each device, a directory that mkdir creates, with the defaults
// for connections of rdma_cm (Linux, drivers/infiniband/core/cma_configfs.c). rdma_cm cannot be unloaded while a directory
// exists; use counts the directories.
func (d *Devices) Config(use func() (release func())) vfs.Tree {
	dirs := vfs.Entry{
		Dir: true, Mode: 0o755,
		Sub: func() vfs.Tree {
			t := vfs.Tree{}
			for _, dev := range d.List() {
				if _, made := d.made(dev.Name); made {
					t[dev.Name] = vfs.Entry{Dir: true, Mode: 0o755, Sub: func() vfs.Tree { return d.configFiles(dev.Name) }}
				}
			}
			return t
		},
		Mkdir: func(name string) error {
			if _, there := d.Device(name); !there {
				return syscall.ENODEV
			}
			release := use()
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.configs == nil {
				d.configs = map[string]func(){}
			}
			d.configs[name] = release
			return nil
		},
		Rmdir: func(name string) error {
			d.mu.Lock()
			release := d.configs[name]
			delete(d.configs, name)
			d.mu.Unlock()
			if release != nil {
				release()
			}
			return nil
		},
	}
	return vfs.Tree{"rdma_cm": dirs}
}

func (d *Devices) made(name string) (func(), bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	release, made := d.configs[name]
	return release, made
}

func (d *Devices) configFiles(name string) vfs.Tree {
	return vfs.Tree{
		"ports/1/default_roce_mode": {Data: "RoCE v2\n", Mode: 0o644, Set: func(string) error { return nil }},
		"ports/1/default_roce_tos": {Data: strconv.Itoa(d.class(name)) + "\n", Mode: 0o644,
			Set: func(s string) error { return d.setClass(name, s) }},
	}
}

// class returns the default type of service of a device's connections. The kernel keeps it as long as the device exists.
func (d *Devices) class(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.attached, func(a attached) bool { return a.name == name }); i >= 0 {
		return d.attached[i].tos
	}
	return 0
}

func (d *Devices) setClass(name, text string) error {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 0, 8)
	if err != nil {
		return fmt.Errorf("default_roce_tos: %w", syscall.EINVAL)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.attached {
		if d.attached[i].name == name {
			d.attached[i].tos = int(n)
		}
	}
	return nil
}

// forget removes the directories at shutdown.
func (d *Devices) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.configs = nil
}
