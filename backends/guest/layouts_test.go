package guest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
)

// A layout is the whole network configuration of a guest as people have it, with its interfaces: testdata/layouts/SYSTEM-NAME.txtar.
type layout struct {
	name    string
	source  string // where people have it
	system  netconf.System
	links   []netconf.Link
	refused string // FILE or FILE:LINE that must stand in the way of our address; "": none
	files   []netconf.File
}

// planned is the address that is added to a layout.
var planned = netconf.Static{NIC: netconf.NIC{Name: "ens224f0", MAC: "00:50:56:9a:0b:0c"}, PortGroup: "RDMA-PG", CIDR: "192.168.60.21/24",
	MTU: 9000}

// systems are those of the layouts by the first part of their names.
var systems = map[string]netconf.System{"netplan": netconf.Netplan, "nm": netconf.NetworkManager, "networkd": netconf.Networkd,
	"ifupdown": netconf.Ifupdown, "ifcfg": netconf.Ifcfg}

func layouts(t *testing.T) (all []layout) {
	t.Helper()
	files, err := filepath.Glob("testdata/layouts/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		l := parseLayout(strings.TrimSuffix(filepath.Base(file), ".txtar"), a)
		if l.system == "" || l.source == "" {
			t.Errorf("%s has no system or source", file)
		}
		all = append(all, l)
	}
	return all
}

func parseLayout(name string, a *txtar.Archive) layout {
	system, _, _ := strings.Cut(name, "-")
	l := layout{name: name, system: systems[system]}
	links := "ens192 ens224f0"
	for line := range strings.SplitSeq(string(a.Comment), "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "source":
			l.source = value
		case "links":
			links = value
		case "refused":
			l.refused = value
		}
	}
	macs := map[string]string{"ens192": "00:50:56:9a:0b:0a", planned.Name: planned.MAC, "ens256": "00:50:56:9a:0b:0d"}
	for link := range strings.FieldsSeq(links) {
		n, kind, virtual := strings.Cut(link, "/")
		l.links = append(l.links, netconf.Link{Name: n, MAC: macs[n], Driver: "vmxnet3", Type: kind, Device: !virtual})
	}
	for _, f := range a.Files {
		l.files = append(l.files, netconf.File{Path: "/" + f.Name, Content: string(f.Data)})
	}
	return l
}

// Whatever a guest has: the other interfaces stay as they are and ours gets exactly its address, or a file stands in the way and is named.
func TestLayouts(t *testing.T) {
	count := map[netconf.System]int{}
	for _, l := range layouts(t) {
		count[l.system]++
		t.Run(l.name, func(t *testing.T) { judge(t, l) })
	}
	if count[netconf.Netplan] < 30 || count[netconf.NetworkManager] < 10 || count[netconf.Networkd] < 10 || count[netconf.Ifupdown] < 10 {
		t.Error(count)
	}
}

func judge(t *testing.T, l layout) {
	p, _ := netconf.For(l.system)
	start := slices.Clone(l.files)
	f, err := p.Add(l.files, l.links, planned)
	if !slices.Equal(start, l.files) {
		t.Error("the files have changed")
	}
	var r *netconf.Refusal
	if errors.As(err, &r) {
		got := r.File
		if r.Line > 0 {
			got += fmt.Sprint(":", r.Line)
		}
		if got != l.refused || r.Hint == "" {
			t.Errorf("refused because of %s, %q: %v", got, l.refused, err)
		}
		return
	}
	if err != nil || l.refused != "" {
		t.Fatalf("%v; %s must stand in the way of\n%s", err, l.refused, f.Content)
	}
	if slices.ContainsFunc(l.files, func(o netconf.File) bool { return o.Path == f.Path && l.name != "netplan-harmed" }) {
		t.Errorf("%s is not ours", f.Path)
	}
	others := slices.DeleteFunc(slices.Clone(l.files), func(o netconf.File) bool { return o.Path == f.Path })
	before, err := p.Effective(others, l.links)
	if err != nil {
		t.Fatal(err)
	}
	after, err := p.Effective(append(others, f), l.links)
	if err != nil {
		t.Fatal(err)
	}
	if d := netconf.Difference(before, after, planned.Name); d != nil {
		t.Error(d)
	}
	if is, ok := netconf.Of(after, planned.Name); !ok || is.File != f.Path || is.DHCP4 || is.DHCP6 || is.MTU != 9000 ||
		!slices.Equal(is.Addresses, []string{planned.CIDR}) {
		t.Errorf("%+v", is)
	}
	if again, err := p.Add(append(others, f), l.links, planned); err != nil || again != f {
		t.Errorf("writing again: %v\n%s", err, again.Content)
	}
	if is, ok := netconf.Of(after, "ens192"); !ok || is.File == f.Path {
		if was, _ := netconf.Of(before, "ens192"); was.File != "" {
			t.Errorf("%+v", is)
		}
	}
}
