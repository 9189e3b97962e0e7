package guest

import (
	"io/fs"
	"maps"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
)

// A WrittenFile is a file or a symbolic link that this program writes in a guest.
type WrittenFile struct {
	Path string
	Mode fs.FileMode
	Text string
	Link string // target of a symbolic link; "": a file
}

// Written returns the files with which this program sets up a guest to have the facts of g, for a guest whose network is configured by
// system. The files of a setting that is only partly there leave it partly there. Settings that are not persistent, packages and the files
// of packages and of what was built are not included. name returns the name of the settings of an interface: its port group, or that of a
// card (backends.HCAName);
// "" for an interface that this program has not configured.
func Written(g *backends.Guest, system netconf.System, name func(*backends.Interface) string) []WrittenFile {
	var w written
	if len(g.Persist.Modules) > 0 {
		w.file(modulesLoadFile, ModulesLoadText(g.Persist.Modules))
	}
	if len(g.Persist.Options) > 0 {
		w.file(optionsFile, OptionsText(g.Persist.Options))
	}
	if m := g.Persist.Reload; m != "" {
		w.unit(UnitName(m), UnitText(m), true)
	}
	if g.MemlockKB < 0 {
		w.file(limitsFile, LimitsText(limit(g.MemlockKB)))
	}
	switch {
	case g.AppClassPartly:
		w.file(environmentFile, ours)
	case g.AppClass != nil:
		w.file(environmentFile, EnvironmentText(*g.AppClass, commonGID(g.RDMA)))
	}
	if n := g.Nouveau; n != nil && n.Kept {
		w.file(nouveauFile, NouveauText())
		if n.Dracut {
			w.file(nouveauOmit, NouveauOmitText())
		}
	}
	if g.GPUUnit != "" {
		w.unit(gpuUnitName, GPUUnitText(), g.GPUUnit == backends.GPUUnitEnabled)
	}
	for _, name := range slices.Sorted(maps.Keys(g.Built)) {
		var file string
		switch v := g.Built[name]; {
		case v.IsAbsent():
		case v.IsPartial():
			w.file(buildDir+"/"+name, "begun\n")
		case v.Decode(&file) == nil:
			w.file(buildDir+"/"+name, "done "+file+"\n")
		}
	}
	for i := range g.Interfaces {
		w.network(g, &g.Interfaces[i], system, name)
	}
	for i := range g.RDMA {
		w.device(&g.RDMA[i])
	}
	return w
}

type written []WrittenFile

func (w *written) file(path, text string) {
	*w = append(*w, WrittenFile{Path: path, Mode: 0o644, Text: text})
}

func (w *written) unit(name, text string, enabled bool) {
	if w.has(unitDir + name) { // two devices of one interface
		return
	}
	w.file(unitDir+name, text)
	if enabled {
		*w = append(*w, WrittenFile{Path: wantsLink(name), Link: unitDir + name})
	}
}

func (w *written) has(path string) bool {
	return slices.ContainsFunc(*w, func(f WrittenFile) bool { return f.Path == path })
}

// script adds the script of units, once.
func (w *written) script(path, text string) {
	if w.has(path) {
		return
	}
	*w = append(*w, WrittenFile{Path: path, Mode: 0o755, Text: text})
}

// network adds the address and the ARP settings of an interface.
func (w *written) network(g *backends.Guest, i *backends.Interface, system netconf.System, name func(*backends.Interface) string) {
	if i.Virtual {
		return
	}
	if a := AddressOf(i, name(i)); a.CIDR != "" && a.PortGroup != "" {
		if f, ok := netconf.FileFor(system, a); ok {
			*w = append(*w, WrittenFile{Path: f.Path, Mode: system.Mode(), Text: f.Content})
		}
	}
	if i.ARPKept != nil {
		group := name(i)
		if group == "" {
			group = i.Name
		}
		w.file(arpFile(group), ARPText(i.Name, *i.ARPKept))
	}
}

// AddressOf returns the persistent address of an interface in the form of its configuration; without CIDR if it has none.
func AddressOf(i *backends.Interface, portGroup string) netconf.Static {
	a := netconf.Static{NIC: netconf.NIC{Name: i.Name, MAC: i.MAC}, PortGroup: portGroup, MTU: i.MTU, Table: i.Table}
	switch {
	case !i.Persistent:
	case i.DHCP:
		a.CIDR = backends.DHCP
	case len(i.Addresses) > 0:
		a.CIDR = i.Addresses[0]
	}
	return a
}

// device adds the traffic class and the QoS of the port of a device. What is only partly there has a unit that is not enabled.
func (w *written) device(d *backends.VerbsDevice) {
	if d.MAC == "" {
		return
	}
	if class := d.Class; d.ClassPartly || d.ClassKept && class != nil {
		if class == nil {
			class = new(int)
		}
		unit, text := ClassUnit(d.MAC, *class)
		w.unit(unit, text, d.ClassKept)
		w.script(classUnit.script, ClassScript())
	}
	if q := d.QoS; q != nil && (q.Kept != nil || q.Partly) {
		var kept backends.QoSSpec
		if q.Kept != nil {
			kept = *q.Kept
		}
		unit, text := QoSUnit(d.MAC, kept)
		w.unit(unit, text, !q.Partly)
		w.script(qosUnit.script, QoSScript())
	}
}
