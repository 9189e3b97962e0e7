package guest

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// persist sets the configuration that loads the modules after a reboot: KindPersist.
type persist struct{ recorded }

const (
	modulesLoadFile = "/etc/modules-load.d/rdma-setup.conf"
	optionsFile     = "/etc/modprobe.d/rdma-setup.conf"
	unitDir         = "/etc/systemd/system/"
	unitPrefix      = "rdma-setup-"
)

const ours = "# Written by rdma-setup. Its rollback takes it away again.\n"

// UnitName returns the name of the unit that reloads a module.
func UnitName(module string) string { return unitPrefix + module + ".service" }

// UnitText returns a systemd unit that loads a module again once the network is up: on Ubuntu the port of vmw_pvrdma stays down
// after every boot until that is done (PVRDMA and vSphere Bitfusion, VMware, 2021, "known issue"). The services that start containers
// wait for it: a container that has opened the device holds the module (rmmod(8)).
func UnitText(module string) string {
	return ours + fmt.Sprintf(`[Unit]
Description=Load %[1]s again, so that its RDMA port becomes active
Wants=network-online.target
After=network-online.target systemd-modules-load.service
Before=containerd.service docker.service kubelet.service crio.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=-/sbin/modprobe -r %[1]s
ExecStart=/sbin/modprobe %[1]s

[Install]
WantedBy=multi-user.target
`, module)
}

// ModulesLoadText returns a file for /etc/modules-load.d.
func ModulesLoadText(modules []string) string {
	return ours + strings.Join(modules, "\n") + "\n"
}

// OptionsText returns a file for /etc/modprobe.d: options by module.
func OptionsText(options map[string]string) string {
	var b strings.Builder
	b.WriteString(ours)
	for _, m := range slices.Sorted(maps.Keys(options)) {
		fmt.Fprintf(&b, "options %s %s\n", m, options[m])
	}
	return b.String()
}

// persistScript also reads other units, because the guest may have been set up manually according to the guides.
func persistScript() string {
	return section("persist", patterned("dump.sh", modulesLoadFile+" "+optionsFile+" $(grep -ls modprobe "+unitDir+"*.service)")) +
		section("units", script("modprobe-units.sh", unitDir)) +
		section("persist-left", "for f in "+temporaryFiles(modulesLoadFile)+" "+temporaryFiles(optionsFile)+" "+unitDir+"."+unitPrefix+`*.service.??????; do [ ! -e "$f" ] || echo "$f"; done
for l in `+wantsLink(unitPrefix)+`*.service; do [ ! -L "$l" ] || [ -e "$l" ] || echo "$l"; done`)
}

// temporaryFiles returns a pattern for what an interrupted write leaves beside a file; see ssh.Conn.Put.
func temporaryFiles(file string) string { return path.Dir(file) + "/." + path.Base(file) + ".??????" }

// persistLeft returns files of this program that have no effect: units that are not enabled, links to missing units, incompletely
// written files.
func (f facts) persistLeft() []string {
	left := strings.Fields(f["persist-left"])
	left = slices.DeleteFunc(left, func(l string) bool {
		return strings.Contains(l, "/"+classUnit.prefix) || strings.Contains(l, "/"+qosUnit.prefix)
	})
	for _, file := range dumped(f["persist"]) {
		unit, is := strings.CutPrefix(file.Path, unitDir)
		if is && isOurs(file.Path) && !slices.Contains(strings.Fields(f["units"]), unit) {
			left = append(left, file.Path)
		}
	}
	return left
}

// persist returns the configuration of this program that is installed and effective.
func (f facts) persist() backends.Persist {
	var p backends.Persist
	enabled := strings.Fields(f["units"])
	for _, file := range dumped(f["persist"]) {
		switch text := string(file.Content); {
		case file.Path == modulesLoadFile:
			for line := range strings.SplitSeq(text, "\n") {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != ';' {
					p.Modules = append(p.Modules, line)
				}
			}
		case file.Path == optionsFile:
			for line := range strings.SplitSeq(text, "\n") {
				if w := strings.SplitN(strings.TrimSpace(line), " ", 3); len(w) == 3 && w[0] == "options" {
					if p.Options == nil {
						p.Options = map[string]string{}
					}
					p.Options[w[1]] = strings.TrimSpace(w[2])
				}
			}
		default:
			if m := reloads(text); m != "" && slices.Contains(enabled, strings.TrimPrefix(file.Path, unitDir)) {
				p.Reload = m
			}
		}
	}
	return p
}

var modprobes = regexp.MustCompile(`modprobe((?:\s+-\S+)*)\s+([A-Za-z0-9_]+)`)

// reloads returns the module that a unit unloads and loads again at boot, "" if it does not.
func reloads(unit string) string {
	var out, in string
	for line := range strings.SplitSeq(unit, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "ExecStart") {
			continue
		}
		for _, m := range modprobes.FindAllStringSubmatch(line, -1) {
			if strings.Contains(m[1], "-r") {
				out = m[2]
			} else {
				in = m[2]
			}
		}
	}
	if in != out {
		return ""
	}
	return in
}

func (p persist) read(ctx context.Context, vm string) (backends.Persist, facts, error) {
	f, err := p.g.lookFacts(ctx, vm, ssh.Command{Script: persistScript()})
	if err != nil {
		return backends.Persist{}, nil, err
	}
	return f.persist(), f, nil
}

// Read returns Absent if nothing of this program exists, and Partial if an attempt has left something.
func (p persist) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	now, f, err := p.read(ctx, s.Target.Name)
	if left := f.persistLeft(); err == nil && len(left) > 0 {
		return backends.Partial(struct {
			backends.Persist
			Left []string `json:"left"`
		}{now, left}), nil
	}
	if err != nil || len(now.Modules) == 0 && now.Reload == "" && len(now.Options) == 0 {
		return backends.Absent, err
	}
	return persistValue(now), nil
}

// persistValue returns equal values for equal configurations.
func persistValue(p backends.Persist) backends.Value {
	p.Modules = append([]string{}, p.Modules...)
	if len(p.Options) == 0 {
		p.Options = nil
	}
	return backends.ValueOf(p)
}

// Set writes the files, enables the unit and renews the initial RAM disk if the distribution's contains modules (Ubuntu and
// Debian: update-initramfs).
func (p persist) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	vm := s.Target.Name
	want, err := wanted[backends.Persist](to)
	if err != nil {
		return err
	}
	now, f, err := p.read(ctx, vm)
	if err != nil {
		return err
	}
	left := f.persistLeft()
	if persistValue(now) == persistValue(want) && len(left) == 0 {
		return nil
	}
	files := map[string]string{}
	if len(want.Modules) > 0 {
		files[modulesLoadFile] = ModulesLoadText(want.Modules)
	}
	if len(want.Options) > 0 {
		files[optionsFile] = OptionsText(want.Options)
	}
	unit := ""
	if want.Reload != "" {
		unit = UnitName(want.Reload)
		files[unitDir+unit] = UnitText(want.Reload)
	}
	drop := slices.DeleteFunc(left, func(l string) bool { _, keep := files[l]; return keep }) // written by this program, and no longer wanted
	for _, file := range dumped(f["persist"]) {
		if _, keep := files[file.Path]; !keep && isOurs(file.Path) && !slices.Contains(drop, file.Path) {
			drop = append(drop, file.Path)
		}
	}
	if err := p.disable(ctx, vm, drop); err != nil {
		return err
	}
	put := func(last bool) error {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if last != (name == modulesLoadFile) {
				continue
			}
			if err := p.g.put(ctx, vm, name, []byte(files[name]), 0o644, ""); err != nil {
				return err
			}
		}
		return nil
	}
	// The list of modules and the enabling of the unit come last: Read returns a complete value only after the RAM disk was
	// renewed, so a failed or interrupted renewal is not taken for success.
	if err := put(false); err != nil {
		return err
	}
	progress.Report(20)
	if err := p.g.renewRAMDisk(ctx, vm); err != nil {
		return err
	}
	progress.Report(80)
	if err := put(true); err != nil {
		return err
	}
	return p.reload(ctx, vm, unit)
}

func isOurs(path string) bool {
	return path == modulesLoadFile || path == optionsFile || strings.HasPrefix(path, unitDir+unitPrefix)
}

// disable removes files of this program, and disables and removes its units. The list of modules is removed last: Read returns it
// as long as anything is left, so an interrupted removal is not taken for success. Units that are still loaded in systemd are
// stopped at the end.
func (p persist) disable(ctx context.Context, vm string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	var remove, stop strings.Builder
	for _, path := range slices.Backward(paths) {
		remove.WriteString("rm -f -- " + ssh.Quote(path))
		if unit, ok := strings.CutPrefix(path, unitDir); ok && !strings.ContainsAny(unit, "/") {
			remove.WriteString(" " + ssh.Quote(unitDir+"multi-user.target.wants/"+unit))
			stop.WriteString("systemctl stop " + ssh.Quote(unit) + " >/dev/null 2>&1\n" + resetFailed(unit))
		}
		remove.WriteString(" || exit 1\n")
	}
	_, err := p.g.root(ctx, vm, "stop loading modules at boot", ssh.Command{Script: remove.String() + stop.String() + ":"})
	return err
}

func (p persist) reload(ctx context.Context, vm, enable string) error {
	script := "systemctl daemon-reload\n"
	if enable != "" {
		script = "systemctl enable " + ssh.Quote(enable) + "\n" // also reloads systemd
	}
	_, err := p.g.root(ctx, vm, "enable "+enable, ssh.Command{Script: script, Limit: time.Minute})
	return err
}

const initramfsLimit = 15 * time.Minute

// renewRAMDisk renews the guest's initial RAM disks if update-initramfs makes them.
func (g *Guests) renewRAMDisk(ctx context.Context, vm string) error {
	return g.renewBy(ctx, vm, "if command -v update-initramfs >/dev/null 2>&1; then update-initramfs -k all -u; fi")
}

// renewEveryRAMDisk renews them also if dracut makes them.
func (g *Guests) renewEveryRAMDisk(ctx context.Context, vm string) error {
	return g.renewBy(ctx, vm, "if command -v update-initramfs >/dev/null 2>&1; then update-initramfs -k all -u; exit; fi\n"+
		script("dracut.sh"))
}

func (g *Guests) renewBy(ctx context.Context, vm, script string) error {
	_, err := g.change(ctx, vm, step{what: "rebuild the initial RAM disk", keep: true,
		Command: ssh.Command{Script: script, Limit: initramfsLimit}})
	return err
}

// manifest names what a change touches: the files of this program, existing or not, with their units and links, and the initial
// RAM disks.
func (p persist) manifest(f facts, want backends.Persist) manifest {
	m := manifest{files: []string{modulesLoadFile, optionsFile}, ramfs: true}
	if want.Reload != "" {
		m.files = append(m.files, unitDir+UnitName(want.Reload))
	}
	for _, file := range dumped(f["persist"]) {
		if !slices.Contains(m.files, file.Path) && isOurs(file.Path) {
			m.files = append(m.files, file.Path)
		}
	}
	for _, file := range m.files {
		if unit, is := strings.CutPrefix(file, unitDir); is {
			m.units = append(m.units, unit)
			m.links = append(m.links, wantsLink(unit))
		}
	}
	return m
}

// wantsLink returns the link that enables a unit of this program.
func wantsLink(unit string) string { return unitDir + "multi-user.target.wants/" + unit }

// Keep records the files, units and links of this program, and which of them the initial RAM disks contain.
func (p persist) Keep(ctx context.Context, s backends.Setting, to backends.Value) (backends.Kept, error) {
	want, err := wanted[backends.Persist](to)
	if err != nil {
		return backends.Kept{}, err
	}
	_, f, err := p.read(ctx, s.Target.Name)
	if err != nil {
		return backends.Kept{}, err
	}
	return p.g.record(ctx, s.Target.Name, p.manifest(f, want))
}
