package kernel

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Programs returns kmod's programs and dmesg.
func (k *Kernel) Programs() map[string]sh.Program {
	return map[string]sh.Program{
		"lsmod": k.lsmod, "modprobe": k.modprobe, "rmmod": k.rmmod, "modinfo": k.modinfo, "dmesg": k.dmesg,
		"depmod": func(context.Context, *sh.Proc) int { return 0 }, "uname": k.uname,
	}
}

func (k *Kernel) lsmod(_ context.Context, p *sh.Proc) int {
	p.Printf("Module                  Size  Used by\n")
	for _, l := range k.List() {
		line := fmt.Sprintf("%-19s %8d  %d", l.Name, l.Size, l.Used)
		if len(l.By) > 0 {
			line += " " + strings.Join(l.By, ",")
		}
		p.Printf("%s\n", line)
	}
	return 0
}

func (k *Kernel) modprobe(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("a r v q n D f i remove verbose quiet dry-run all first-time show-depends use-blacklist b")
	if err != nil {
		return p.Usage(1, err)
	}
	if len(o.Args) == 0 {
		return p.Errorf("ERROR: missing parameters. See -h.")
	}
	names := o.Args[:1] // the other arguments are module parameters
	if o.Has("a", "r", "all", "remove") {
		names = o.Args
	}
	for _, name := range names {
		status := 0
		switch {
		case o.Has("r", "remove"):
			status = k.remove(p, o, name)
		case o.Has("D", "show-depends"):
			status = k.depends(p, name)
		default:
			status = k.insert(ctx, p, o, name)
		}
		if status != 0 {
			return status
		}
	}
	return 0
}

func (k *Kernel) insert(ctx context.Context, p *sh.Proc, o sh.Options, name string) int {
	quiet := o.Has("q", "quiet")
	if _, ok := k.Find(name); !ok {
		if !quiet {
			p.Errorf("FATAL: Module %s not found in directory /lib/modules/%s", name, k.Release)
		}
		return 1
	}
	if k.Loaded(name) {
		if o.Has("first-time") {
			return p.Errorf("ERROR: could not insert '%s': Module already in kernel", name)
		}
		return 0
	}
	if line := configured(p, "install", name); line != "" && !o.Has("i") {
		child := p.With("/bin/sh", "-c", line)
		if status, err := p.Sys.Exec(ctx, child); err != nil || status != 0 {
			return p.Errorf("ERROR: could not insert '%s': Invalid argument", name)
		}
		return 0
	}
	if !p.Root() {
		return p.Errorf("ERROR: could not insert '%s': Operation not permitted", name)
	}
	if o.Has("n", "dry-run") {
		return 0
	}
	switch err := k.Load(name); {
	case err != nil && !errors.Is(err, ErrNotFound):
		reason := err.Error()
		return p.Errorf("ERROR: could not insert '%s': %s", normal(name), strings.ToUpper(reason[:1])+reason[1:])
	case err != nil:
		return p.Errorf("ERROR: could not insert '%s': Unknown symbol in module, or unknown parameter (see dmesg)", name)
	}
	return 0
}

func (k *Kernel) remove(p *sh.Proc, o sh.Options, name string) int {
	if k.BuiltIn(name) {
		if o.Has("q", "quiet") {
			return 1
		}
		return p.Errorf("FATAL: Module %s is builtin.", normal(name))
	}
	if !p.Root() && k.Loaded(name) {
		return p.Errorf("ERROR: could not remove '%s': Operation not permitted", name)
	}
	if o.Has("n", "dry-run") {
		return 0
	}
	switch err := k.Unload(name, true); {
	case errors.Is(err, ErrNotFound):
		if o.Has("q", "quiet") {
			return 1
		}
		return p.Errorf("FATAL: Module %s not found.", name)
	case errors.Is(err, ErrInUse):
		return p.Errorf("FATAL: Module %s is in use.", name)
	}
	return 0 // removing a module that is not loaded is not an error
}

func (k *Kernel) depends(p *sh.Proc, name string) int {
	m, ok := k.Find(name)
	if !ok {
		return p.Errorf("FATAL: Module %s not found in directory /lib/modules/%s", name, k.Release)
	}
	if m.BuiltIn {
		p.Printf("builtin %s\n", m.Name)
		return 0
	}
	for _, need := range append(k.needs(m), m.Name) {
		n, _ := k.Find(need)
		p.Printf("insmod %s \n", k.file(n))
	}
	return 0
}

// needs returns the modules that modules.dep and the file of a module name: those that are built in are not among them.
func (k *Kernel) needs(m Module) []string {
	return slices.DeleteFunc(slices.Clone(m.Needs), k.BuiltIn)
}

// configured returns the text after VERB NAME in the files of modprobe.d.
func configured(p *sh.Proc, verb, name string) string {
	for _, dir := range []string{"/lib/modprobe.d", "/etc/modprobe.d"} {
		list, err := p.Sys.FS.ReadDir(vfs.Root(), dir)
		if err != nil {
			continue
		}
		for _, i := range list {
			data, err := p.Sys.FS.ReadFile(vfs.Root(), dir+"/"+i.Name())
			if err != nil || !strings.HasSuffix(i.Name(), ".conf") {
				continue
			}
			for line := range strings.Lines(string(data)) {
				f := strings.Fields(line)
				if len(f) >= 2 && f[0] == verb && normal(f[1]) == normal(name) {
					return strings.Join(append(f[2:], ""), " ")
				}
			}
		}
	}
	return ""
}

func (k *Kernel) rmmod(_ context.Context, p *sh.Proc) int {
	for _, name := range p.Args[1:] {
		var by []string
		for _, l := range k.List() {
			if l.Name == normal(name) {
				by = l.By
			}
		}
		if !p.Root() && k.Loaded(name) && !k.BuiltIn(name) {
			return p.Errorf("ERROR: could not remove module %s: Operation not permitted", name)
		}
		switch err := k.Unload(name, false); {
		case errors.Is(err, ErrInUse) && len(by) > 0:
			return p.Errorf("ERROR: Module %s is in use by: %s", name, strings.Join(by, " "))
		case errors.Is(err, ErrInUse):
			return p.Errorf("ERROR: Module %s is in use", name)
		case err != nil:
			return p.Errorf("ERROR: Module %s is not currently loaded", name)
		}
	}
	return 0
}

func (k *Kernel) file(m Module) string {
	return path.Join("/lib/modules", k.Release, m.file())
}

func (k *Kernel) modinfo(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("F: n k: b: field: filename")
	if err != nil {
		return p.Usage(1, err)
	}
	status := 0
	for _, name := range o.Args {
		m, ok := k.Find(name)
		if !ok {
			status = p.Errorf("ERROR: Module %s not found.", name)
			continue
		}
		field := o.Value("F", "field")
		if o.Has("n", "filename") {
			field = "filename"
		}
		license, intree := "Dual BSD/GPL", "Y"
		if m.License != "" {
			license, intree = m.License, ""
		}
		values := [][2]string{
			{"filename", k.file(m)}, {"version", m.Version}, {"license", license}, {"description", m.Text}, {"alias", m.Alias},
			{"depends", strings.Join(k.needs(m), ",")}, {"retpoline", "Y"}, {"intree", intree}, {"name", m.Name},
			{"vermagic", k.Release + " SMP mod_unload modversions "},
		}
		if m.BuiltIn { // from modules.builtin.modinfo
			values = [][2]string{{"name", m.Name}, {"filename", "(builtin)"}, {"license", license}, {"description", m.Text}, {"alias", m.Alias},
				{"file", strings.TrimSuffix(strings.TrimPrefix(m.file(), "kernel/"), ".ko")}}
		}
		for _, kv := range values {
			switch {
			case kv[1] == "" && kv[0] != "depends":
			case field == "":
				p.Printf("%-15s %s\n", kv[0]+":", kv[1])
			case field == kv[0]:
				p.Printf("%s\n", kv[1])
			}
		}
	}
	return status
}

func (k *Kernel) dmesg(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("T H k x c C l: w level: ctime notime t color:")
	if err != nil {
		return p.Usage(1, err)
	}
	if k.Private && !p.Root() {
		return p.Errorf("read kernel buffer failed: Operation not permitted")
	}
	for _, line := range k.Log() {
		if o.Has("t", "notime") {
			_, line, _ = strings.Cut(line, "] ")
		}
		p.Printf("%s\n", line)
	}
	return 0
}

func (k *Kernel) uname(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("a s n r v m o p i")
	if err != nil {
		return p.Usage(1, err)
	}
	host, _ := p.Sys.FS.ReadFile(vfs.Root(), "/etc/hostname")
	var out []string
	for _, f := range []struct{ flag, value string }{
		{"s", "Linux"}, {"n", strings.TrimSpace(string(host))}, {"r", k.Release}, {"v", "#1 SMP PREEMPT_DYNAMIC"}, {"m", "x86_64"},
		{"o", "GNU/Linux"},
	} {
		if o.Has("a", f.flag) || f.flag == "m" && o.Has("p", "i") {
			out = append(out, f.value)
		}
	}
	if len(out) == 0 {
		out = []string{"Linux"}
	}
	p.Printf("%s\n", strings.Join(out, " "))
	return 0
}

// Modules returns the modules that RDMA requires from the kernel packages of distributions.
func Modules() []Module {
	return []Module{
		{Name: "vmxnet3", Size: 73728, Text: "VMware vmxnet3 virtual NIC driver", Alias: "pci:v000015ADd000007B0sv*sd*bc*sc*i*",
			Path: "drivers/net/vmxnet3"},
		{Name: "vmw_balloon", Size: 28672, Text: "VMware Memory Control (Balloon) Driver", Path: "drivers/misc"},
		{Name: "vmw_vmci", Size: 94208, Text: "VMware Virtual Machine Communication Interface.", Path: "drivers/misc/vmw_vmci"},
		{Name: "vsock", Size: 49152, Text: "VMware Virtual Socket Family", Path: "net/vmw_vsock"},
		{Name: "vmw_vsock_vmci_transport", Size: 36864, Needs: []string{"vsock", "vmw_vmci"}, Text: "VMCI transport for Virtual Sockets",
			Path: "net/vmw_vsock"},
		{Name: "configfs", Size: 57344, Text: "Simple RAM filesystem for user driven kernel subsystem configuration.", Path: "fs/configfs"},
		{Name: "sunrpc", Size: 692224, Text: "RPC client and server support", Path: "net/sunrpc"},
		{Name: "ib_core", Size: 442368, Text: "core kernel InfiniBand API", Path: "drivers/infiniband/core"},
		{Name: "ib_uverbs", Size: 172032, Needs: []string{"ib_core"}, Text: "InfiniBand userspace verbs access", Path: "drivers/infiniband/core"},
		{Name: "ib_umad", Size: 45056, Needs: []string{"ib_core"}, Text: "InfiniBand userspace MAD packet access",
			Path: "drivers/infiniband/core"},
		{Name: "ib_cm", Size: 139264, Needs: []string{"ib_core"}, Text: "InfiniBand CM", Path: "drivers/infiniband/core"},
		{Name: "iw_cm", Size: 61440, Needs: []string{"ib_core"}, Text: "iWARP CM", Path: "drivers/infiniband/core"},
		{Name: "rdma_cm", Size: 139264, Needs: []string{"iw_cm", "ib_cm", "ib_core", "configfs"}, Text: "Generic RDMA CM Agent",
			Path: "drivers/infiniband/core"},
		{Name: "rdma_ucm", Size: 32768, Needs: []string{"rdma_cm", "ib_uverbs", "ib_core"}, Text: "RDMA Userspace Connection Manager Access",
			Path: "drivers/infiniband/core"},
		{Name: "rpcrdma", Size: 364544, Needs: []string{"rdma_cm", "sunrpc", "ib_core"}, Text: "RPC/RDMA Transport", Path: "net/sunrpc/xprtrdma"},
		{Name: "ib_ipoib", Size: 151552, Needs: []string{"ib_cm", "ib_core"}, Text: "IP-over-InfiniBand net driver",
			Path: "drivers/infiniband/ulp/ipoib"},
		{Name: "vmw_pvrdma", Size: 69632, Needs: []string{"ib_uverbs", "ib_core"}, Text: "VMware Paravirtual RDMA driver",
			Alias: "pci:v000015ADd00000820sv*sd*bc*sc*i*", Path: "drivers/infiniband/hw/vmw_pvrdma"},
		{Name: "mlx5_core", Size: 1953792, Text: "Mellanox 5th generation network adapters (ConnectX series) core driver",
			Alias: "pci:v000015B3d00001017sv*sd*bc*sc*i*", Path: "drivers/net/ethernet/mellanox/mlx5/core"},
		{Name: "mlx5_ib", Size: 458752, Needs: []string{"mlx5_core", "ib_uverbs", "ib_core"},
			Text: "Mellanox 5th generation network adapters (ConnectX " +
				"series) IB driver", Path: "drivers/infiniband/hw/mlx5"},
		{Name: "crc16", Size: 16384, Text: "CRC16 calculations", Path: "lib"},
		{Name: "ext4", Size: 983040, Needs: []string{"crc16"}, Text: "Fourth Extended Filesystem", Path: "fs/ext4"},
		{Name: "mlx4_core", Size: 385024, Text: "Mellanox ConnectX HCA low-level driver", Path: "drivers/net/ethernet/mellanox/mlx4"},
		{Name: "mlx4_ib", Size: 225280, Needs: []string{"mlx4_core", "ib_uverbs", "ib_core"}, Text: "Mellanox ConnectX HCA InfiniBand driver",
			Path: "drivers/infiniband/hw/mlx4"},
	}
}

// Nouveau returns the kernel's own driver for NVIDIA's GPUs (drivers/gpu/drm/nouveau), without its dependencies.
func Nouveau() Module {
	return Module{Name: "nouveau", Size: 2510848, Text: "nVidia Riva/TNT/GeForce/Quadro/Tesla/Tegra K1+",
		Alias: "pci:v000010DEd*sv*sd*bc03sc*i*", Path: "drivers/gpu/drm/nouveau"}
}

// Without returns the modules except those that a distribution does not build.
func Without(list []Module, names ...string) []Module {
	return slices.DeleteFunc(slices.Clone(list), func(m Module) bool { return slices.Contains(names, m.Name) })
}

// WithBuiltIn returns the modules with those named built into the kernel, and all that these need: what is built in cannot need a
// module that is loaded.
func WithBuiltIn(list []Module, names ...string) []Module {
	if len(names) > 0 {
		list = slices.Clone(list)
	}
	for len(names) > 0 {
		var needs []string
		for i, m := range list {
			if slices.Contains(names, m.Name) && !m.BuiltIn {
				list[i].BuiltIn = true
				needs = append(needs, m.Needs...)
			}
		}
		names = needs
	}
	return list
}
