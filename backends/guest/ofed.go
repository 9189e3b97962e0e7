package guest

import (
	"cmp"
	"context"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// mofed sets whether MLNX_OFED replaces the distribution's RDMA packages and drivers: KindOFED.
type mofed struct{ g *Guests }

// stateDir belongs to root, in a directory that only root can write to, and survives a reboot. It is removed when it is empty.
const stateDir = "/var/lib/rdma-setup"

// ofedWork is where an archive is unpacked. It is created before the first package is removed; as long as it exists, an
// installation is incomplete.
const ofedWork = stateDir + "/ofed"

// ofedLimit is the limit of an installation: it builds drivers for the running kernel, which took 90 minutes in slow guests.
const ofedLimit = 2 * time.Hour

// A distributed is the record of a package of the distribution.
type distributed struct {
	Version string `json:"version,omitempty"`

	Auto bool `json:"auto,omitempty"` // it was installed automatically
	Hold bool `json:"hold,omitempty"` // apt must not change it; dpkg forgets that when the package is removed
}

// inbox matches the distribution's packages that mlnxofedinstall removes, together with packages that depend on them.
var inbox = regexp.MustCompile(
	`^(rdma-core|rdma-core-devel|libibverbs.*|ibverbs-.*|librdmacm.*|rdmacm-utils|libibumad.*|libibmad.*|libibnetdisc.*|infiniband-diags.*|` +
		`perftest|ibutils.*|libmlx[45].*|srp_daemon|srptools|ibacm|iwpmd|mstflint|opensm.*|libopensm.*|libosm.*|ucx.*|libucx.*|openmpi.*|libopenmpi.*|mpitests.*|` +
		`python3-pyverbs|dapl.*|libdapl.*|qperf)$`)

// docaVersion matches the release of DOCA in the version of doca-host.
var docaVersion = regexp.MustCompile(`^\d+(\.\d+)+-\d+`)

// rdmaModule matches the modules that MLNX_OFED replaces.
var rdmaModule = regexp.MustCompile(`^(ib_|rdma_|iw_|mlx5_|mlx4_|mlxfw|rpcrdma)`)

// marks returns a script that prints the marks of apt-mark(8).
func marks() string {
	return section("auto", "command -v apt-mark >/dev/null && apt-mark showauto") +
		section("hold", "command -v apt-mark >/dev/null && apt-mark showhold")
}

func ofedScript() string {
	return section("doca",
		"dpkg-query -W -f '${db:Status-Abbrev}|${Version}\\n' doca-host 2>/dev/null | sed -n 's/^.i.*|//p'; command -v rpm >/dev/null "+
			"&& rpm -q --qf '%{VERSION}-%{RELEASE}\\n' doca-host | grep -v ' '") +
		section("ofed", "command -v ofed_info >/dev/null && ofed_info -s") + section("ofed-work", "[ -d "+ofedWork+" ] && echo unfinished")
}

func (f facts) ofed() (version string, unfinished bool) {
	if line := f.line("ofed"); transcript.OFED(line).Version != nil {
		version = strings.TrimSuffix(line, ":")
	}
	// 2.9.1-018000-24.10-ubuntu2204 and 2.9.1-018000_24.10_rhel94 are the same software for two systems.
	if m := docaVersion.FindString(f.line("doca")); m != "" && version != "" {
		version = "DOCA-OFED-" + m
	}
	return version, f.line("ofed-work") != ""
}

func (m mofed) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	f, err := m.g.facts(ctx, s.Target.Name, ssh.Command{Script: ofedScript()})
	if err != nil {
		return backends.Absent, err
	}
	spec := backends.OFEDSpec{}
	var unfinished bool
	switch spec.Version, unfinished = f.ofed(); {
	case unfinished:
		return backends.Partial(spec), nil
	case spec.Version == "":
		return backends.Absent, nil
	}
	return backends.ValueOf(spec), nil
}

// Keep records which packages will be removed, and refuses if any of them does not belong to RDMA: mlnxofedinstall --force does
// not ask.
func (m mofed) Keep(ctx context.Context, s backends.Setting, _ backends.Value) (backends.Kept, error) {
	vm, p := s.Target.Name, packages(m)
	f, err := m.g.facts(ctx, vm, ssh.Command{MaxOutput: 8 << 20, Script: ofedScript() + section("modules", "cat /proc/modules") +
		marks() +
		section("dpkg", script("dpkg-versions.sh")) +
		section("rpm", "! command -v rpm >/dev/null || rpm -qa --qf '%{NAME}|%{VERSION}-%{RELEASE}\\n' || printf '\\n!\\n'")})
	if err == nil && !f.knowsPackages() {
		err = unreadPackages(vm)
	}
	if err != nil {
		return backends.Kept{}, err
	}
	k, err := m.g.record(ctx, vm, manifest{files: []string{"/etc/security/limits.conf"}})
	if err != nil {
		return backends.Kept{}, err
	}
	loaded := f.loaded()
	slices.Reverse(loaded) // in the order of loading
	for _, n := range loaded {
		if rdmaModule.MatchString(n) {
			k.Items = append(k.Items, backends.Item{Kind: backends.ItemModule, Name: n, State: backends.ValueOf("loaded"), Runtime: true})
		}
	}
	k.Items = append(k.Items, f.ofedItem())
	if version, _ := f.ofed(); version != "" {
		return k, nil // the packages are not the distribution's
	}
	versions := f.installed(inbox)
	names := slices.Sorted(maps.Keys(versions))
	auto, hold := strings.Fields(f["auto"]), strings.Fields(f["hold"])
	k.Items = append(k.Items, packageItems(names, func(n string) backends.Value {
		return backends.ValueOf(distributed{Auto: slices.Contains(auto, n), Hold: slices.Contains(hold, n), Version: versions[n]})
	})...)
	others, err := p.alongside(ctx, vm, names)
	if err == nil && len(others) > 0 {
		err = backends.Conflictf(label(vm),
			"Remove it by hand if nothing needs it, or keep the distribution's drivers (remove guest.ofed from the answers).",
			"install MLNX_OFED: it removes the distribution's RDMA packages, and with them %s", strings.Join(others, ", "))
	}
	return k, err
}

// itemOFED is MLNX_OFED itself; state: its version, or that it is unfinished.
const itemOFED backends.ItemKind = "ofed"

func (f facts) ofedItem() backends.Item {
	i := backends.Item{Kind: itemOFED, Name: "MLNX_OFED"}
	switch version, unfinished := f.ofed(); {
	case unfinished:
		i.State = backends.Partial(version)
	case version != "":
		i.State = backends.ValueOf(version)
	}
	return i
}

// Observe returns the current state of MLNX_OFED, the packages, modules and files.
func (m mofed) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	vm := s.Target.Name
	items, err := m.g.readItems(ctx, vm, manifestOf(kept))
	if err != nil {
		return backends.Kept{}, err
	}
	f, err := m.g.facts(ctx, vm, ssh.Command{MaxOutput: 8 << 20, Script: ofedScript() + section("modules", "cat /proc/modules") +
		marks()})
	if err != nil {
		return backends.Kept{}, err
	}
	loaded, auto, hold := f.loaded(), strings.Fields(f["auto"]), strings.Fields(f["hold"])
	there, _ := packagesOf(kept)
	known, err := packages(m).ask(ctx, vm, there)
	have := known.packages(there)
	for _, i := range kept.Items {
		i.Content = nil
		switch {
		case i.Kind == backends.ItemModule && !slices.Contains(loaded, i.Name), i.Kind == backends.ItemPackage && have[i.Name] == "":
			i.State = backends.Absent
		case i.Kind == backends.ItemPackage:
			d := distributed{Auto: slices.Contains(auto, i.Name), Hold: slices.Contains(hold, i.Name)}
			var was distributed
			if i.State.Decode(&was) != nil || was.Version != "" { // records of earlier releases have no version there
				d.Version = have[i.Name]
			}
			i.State = backends.ValueOf(d)
		case i.Kind == backends.ItemFile:
			continue
		case i.Kind == itemOFED:
			i = f.ofedItem()
		}
		items = append(items, i)
	}
	return backends.Kept{Items: items}, err
}

// Set unpacks the archive, runs its installer and loads the new drivers. The firmware of cards is not changed: a VF has none, and
// that of a card is managed on the host.
func (m mofed) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	vm := s.Target.Name
	if to.IsAbsent() {
		return m.Restore(ctx, s, backends.Kept{}, progress)
	}
	var want backends.OFEDSpec
	if err := to.Decode(&want); err != nil {
		return err
	}
	if !path.IsAbs(want.Archive) {
		return backends.Usagef(label(vm), "Set it under guest.ofed in the answers.",
			"install %s: the location of its archive is not known", want.Version)
	}
	now, err := m.Read(ctx, s)
	if err != nil || now == backends.ValueOf(backends.OFEDSpec{Version: want.Version}) {
		return err
	}
	if err := m.elsewhere(ctx, vm); err != nil {
		return err
	}
	p := packages(m)
	manager, err := p.manager(ctx, vm)
	if err == nil {
		_, err = p.repair(ctx, vm, manager)
	}
	if err != nil {
		return err
	}
	progress.Report(5)
	r, err := p.locked(ctx, vm, "install "+want.Version, ssh.Command{Script: installScript(want.Archive, want.Version), Limit: ofedLimit,
		MaxOutput: 8 << 20})
	if err != nil {
		return err
	}
	if r.ExitCode != 0 {
		return installError(vm, want, r)
	}
	progress.Report(90)
	if err := m.load(ctx, vm, "force-restart"); err != nil {
		return err
	}
	return m.finish(ctx, vm)
}

// elsewhere refuses to reload drivers of the interface through which the guest is reached.
func (m mofed) elsewhere(ctx context.Context, vm string) error {
	f, err := m.g.facts(ctx, vm, ssh.Command{MaxOutput: 8 << 20, Script: networkScript() +
		section("drivers", `for d in /sys/class/net/*; do x=$(readlink -f "$d/device/driver") && echo "${d##*/} ${x##*/}"; done`)})
	if err != nil {
		return err
	}
	n := f.network()
	for line := range strings.Lines(f["drivers"]) {
		if w := strings.Fields(line); len(w) == 2 && strings.HasPrefix(w[1], "mlx") && n.management[w[0]] != "" {
			return backends.Conflictf(label(vm),
				"Connect to the guest through another interface, or install MLNX_OFED by hand on its console.",
				"install MLNX_OFED: it replaces the driver of %s, and %s", w[0], n.management[w[0]])
		}
	}
	return nil
}

// finish removes ofedWork, and makes the next command log in again, because limits.conf has changed.
func (m mofed) finish(ctx context.Context, vm string) error {
	_, err := m.g.root(ctx, vm, "remove "+ofedWork,
		ssh.Command{Script: "rm -rf -- " + ofedWork + " || exit 1\nrmdir " + stateDir + " 2>/dev/null || :"})
	if c, cerr := m.g.conn(ctx, vm); cerr == nil {
		c.Drop()
	}
	return err
}

// load makes the driver's own script load or unload it.
func (m mofed) load(ctx context.Context, vm, verb string) error {
	r, err := m.g.step(ctx, vm, step{what: "openibd " + verb, keep: true,
		Command: ssh.Command{Script: "[ ! -x /etc/init.d/openibd ] || /etc/init.d/openibd " + verb + " </dev/null", Limit: 10 * time.Minute}})
	if err == nil && r.ExitCode != 0 {
		err = backends.Transientf(label(vm), "Stop what uses RDMA in the guest, or reboot it, then run rdma-setup resume.",
			"openibd %s: %s", verb, lastLines(r.Stdout+"\n"+r.Stderr, 3))
	}
	return err
}

// Restore uninstalls MLNX_OFED, reinstalls the distribution's packages, and loads the modules that were loaded.
func (m mofed) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, progress backends.Progress) error {
	vm, p := s.Target.Name, packages(m)
	names, _ := packagesOf(kept)
	if err := m.elsewhere(ctx, vm); err != nil {
		return err
	}
	manager, err := p.manager(ctx, vm)
	if err == nil {
		_, err = p.repair(ctx, vm, manager)
	}
	if err == nil {
		// From here on the restore is incomplete too.
		_, err = m.g.root(ctx, vm, "make "+ofedWork, ssh.Command{Argv: []string{"mkdir", "-p", "-m", "700", "--", ofedWork}})
	}
	if err == nil {
		err = m.load(ctx, vm, "force-stop")
	}
	if err != nil {
		return err
	}
	r, err := p.locked(ctx, vm, "uninstall MLNX_OFED", ssh.Command{Script: script("ofed-uninstall.sh"), Limit: 30 * time.Minute,
		MaxOutput: 8 << 20})
	if err == nil && r.ExitCode != 0 {
		err = failed(vm, "uninstall MLNX_OFED", r)
	}
	if err != nil {
		return err
	}
	progress.Report(50)
	missing, err := p.missing(ctx, vm, names)
	if err != nil {
		return err
	}
	p.g.updated.Delete(vm) // the lists may be those of a repository that was removed
	if len(missing) > 0 {
		if err := p.install(ctx, vm, missing); err != nil {
			return err
		}
	}
	was := map[string]string{}
	for _, i := range kept.Items {
		var d distributed
		if i.Kind == backends.ItemPackage && i.State.Decode(&d) == nil && cmp.Or(d.Version, string(i.Content)) != "" {
			was[i.Name] = cmp.Or(d.Version, string(i.Content)) // records of earlier releases have it as content
		}
	}
	// A repository may no longer have an old version: everything else is restored, and then the error names it.
	other := p.exact(ctx, vm, manager, was, nil)
	if other != nil && backends.KindOf(other) != backends.KindPermanent {
		return other
	}
	var load, auto, hold []string
	for _, i := range kept.Items {
		var d distributed
		switch {
		case i.Kind == backends.ItemModule:
			load = append(load, i.Name)
		case i.Kind == backends.ItemPackage && i.State.Decode(&d) == nil:
			if d.Auto {
				auto = append(auto, i.Name)
			}
			if d.Hold {
				hold = append(hold, i.Name)
			}
		}
	}
	back := script("modules-back.sh", load...)
	if len(auto) > 0 {
		back += "apt-mark auto -- " + ssh.QuoteAll(auto...) + " >/dev/null\n"
	}
	if len(hold) > 0 {
		back += "apt-mark hold -- " + ssh.QuoteAll(hold...) + " >/dev/null\n"
	}
	if _, err := m.g.root(ctx, vm, "load the distribution's RDMA modules", ssh.Command{Script: back, Limit: 5 * time.Minute}); err != nil {
		return err
	}
	if err := m.g.putBack(ctx, vm, kept); err != nil {
		return err
	}
	if err := m.finish(ctx, vm); err != nil {
		return err
	}
	return other
}
