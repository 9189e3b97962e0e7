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
