package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// unpacked returns the text of all files of a bundle.
func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for r := tar.NewReader(z); ; {
		if _, err := r.Next(); err == io.EOF {
			return all.String()
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&all, r); err != nil {
			t.Fatal(err)
		}
	}
}

// A masked bundle contains no names or addresses of a site; the same name has the same pseudonym everywhere, networks remain
// networks, and text that only resembles a name or an address is unchanged.
func TestMaskedBundle(t *testing.T) {
	a, err := answers.Load(strings.NewReader(`
mode: pvrdma
vcenter: {url: "https://vc.acme.example:8443/sdk"}
hosts: {datacenter: Ulm 2, names: [esx-10.acme.example, esx-9.acme.example]}
switch: {name: RDMA-Ulm, portgroup: RDMA-Ulm-A}
vms: [{name: /Ulm 2/vm/Kunden%2fBank/db-1, ip: 10.7.4.11/23}, {name: sriov, ip: 10.7.5.12/23}]
`), "answers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	inv := &backends.Inventory{
		VCenter: backends.VCenter{URL: "https://vc.acme.example:8443/sdk", Version: "8.0.3"},
		Hosts: []backends.Host{{Name: "esx-9.acme.example", Datacenter: "Ulm 2", Version: "8.0.3",
			RecentTasks: []string{"vMotion of db-1 to esx-10 (10.7.4.2)"},
			NICs:        []backends.NIC{{Device: "vmnic2", DriverVersion: "4.23.6.2-1OEM", MAC: "b8:59:9f:00:00:02"}}},
			{Name: "esx-10.acme.example", Datacenter: "Ulm 2"}},
		VMs: []backends.VM{
			{Name: "db-1", Path: "/Ulm 2/vm/Kunden%2fBank/db-1", Host: "esx-9.acme.example", IPs: []string{"10.7.4.11", "8.8.8.8"}},
			{Name: "sriov", Path: "/Ulm 2/vm/sriov", Adapters: []backends.Adapter{{Type: "sriov", PortGroup: "RDMA-Ulm-A"}}},
		},
		Guests: []backends.Guest{{VM: "db-1", NVIDIA: &backends.NVIDIA{LicenseServers: []backends.LicenseServer{{Host: "dls-ulm7", Port: "443"}}},
			RDMA: []backends.VerbsDevice{{GIDs: []backends.GID{{GID: "0000:0000:0000:0000:0000:ffff:0a07:040b"}}}}}},
	}
	write := func(masked bool) []byte {
		var b bytes.Buffer
		if err := bundle.Write(&b, &bundle.Bundle{Tool: "t", Made: made, Answers: a, Facts: &checks.Facts{Now: made, Inventory: inv},
			Masked: masked}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	packed := write(true)
	text, open := unpacked(t, packed), unpacked(t, write(false))
	for _, name := range []string{"acme", "Ulm", "esx-9", "esx-10", "db-1", "dls-ulm7", "Kunden", "Bank", "10.7.4.", "10.7.5.", "8.8.8.8",
		"0a07:04"} {
		if !strings.Contains(open, name) {
			t.Errorf("the bundle has no %s to hide", name)
		}
		if strings.Contains(text, name) {
			t.Errorf("the masked bundle holds %s:\n%s", name, text)
		}
	}
	b, err := bundle.Read(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	got := b.Facts.Inventory
	h, v, nic := got.Hosts[0], got.VMs[0], got.Hosts[0].NICs[0]
	switch {
	case h.Name != "host-001" || got.Hosts[1].Name != "host-002" || b.Answers.Hosts.Names[0] != "host-002" || v.Host != h.Name:
		t.Errorf("hosts %q, %q, answers %q, host of the VM %q", h.Name, got.Hosts[1].Name, b.Answers.Hosts.Names, v.Host)
	case v.Name != "vm-00001" || v.Path != "/datacenter-1/vm/folder-1/vm-00001" || b.Answers.VMs[0].Name != v.Path ||
		got.Guests[0].VM != v.Name:
		t.Errorf("VM %q at %q, answers %q, guest %q", v.Name, v.Path, b.Answers.VMs[0].Name, got.Guests[0].VM)
	case got.VMs[1].Name != "vm-00002" || got.VMs[1].Adapters[0].Type != "sriov" || b.Answers.VMs[1].Name != "vm-00002":
		t.Errorf("a VM of the name of a word: %+v", got.VMs[1])
	case got.VMs[1].Adapters[0].PortGroup != b.Answers.Switch.PortGroup:
		t.Errorf("port group %q, answers %q", got.VMs[1].Adapters[0].PortGroup, b.Answers.Switch.PortGroup)
	case nic.DriverVersion != "4.23.6.2-1OEM" || nic.MAC != "b8:59:9f:00:00:02" || h.Version != "8.0.3":
		t.Errorf("versions or MAC: %+v", nic)
	}
	ip := netip.MustParseAddr(v.IPs[0])
	task, gid := h.RecentTasks[0], got.Guests[0].RDMA[0].GIDs[0].GID
	other, _ := netip.ParseAddr(strings.Trim(task[strings.LastIndex(task, "("):], "()"))
	as4 := ip.As4()
	for _, one := range []struct {
		what string
		ok   bool
	}{
		{"a /24 stays one, and the last byte stays: " + task, netip.PrefixFrom(ip, 24).Contains(other) && other.As4()[3] == 2 && as4[3] == 11},
		{"the GID is that of the address: " + gid, strings.HasSuffix(gid, strings.ToLower(hexPair(as4)))},
		{"a private address stays private: " + ip.String(), as4[0] == 10},
		{"a /23 stays one", sameNetwork(b.Answers.VMs[0].IP.String(), b.Answers.VMs[1].IP.String())},
		{"the address of the answers is that of the guest", strings.HasPrefix(b.Answers.VMs[0].IP.String(), v.IPs[0]+"/")},
	} {
		if !one.ok {
			t.Error(one.what)
		}
	}
}

// What a masked bundle hides beside the names of the inventory, and what it must keep: numbers that are also names, versions that
// resemble addresses, networks of firewall rules.
func TestMaskedTexts(t *testing.T) {
	a, err := answers.Load(strings.NewReader(`
mode: pvrdma
vcenter: {url: "https://vc.acme.example/sdk"}
hosts: {names: [10.7.4.2]}
nic: {macs: {10.7.4.2: "b8:59:9f:00:a1:02"}}
switch: {name: A1, portgroup: "100", vlan: 100}
pvrdma: {vmknic: {create: {portgroup: VMK, network: 10.7.0.0/16, start: 10.7.200.11}}}
esxi: {addresses: {10.7.4.2: "esx-mgmt.bigco.example:22"}}
vms: [{name: vm, ip: 147.8.5.11/16, guest: {address: gpu.bigco.example}}, {name: "11", ip: 147.8.200.12/16}]
container: {image: "registry.bigco.example:5000/rdma:1"}
measure: {perftest: "https://files.other-co.example/perftest.tgz"}
`), "answers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	log := []string{"cannot open /vmfs/volumes/Secret Store/fw.bin", "[Hidden Disk] vm/vm.vmx is locked",
		"2001:db8:7::11: no route to 2001:db8:7::12/64",
		"range 10.7.4.2-10.7.4.9", "at 11:00 on VLAN 100 by b8:59:9f:00:a1:02",
		"GID 0000:0000:0000:0000:0000:ffff:0a07:0402, ::ffff:10.7.4.2 and ::ffff:a07:402",
		"wwn 20:00:00:25:b5:00:00:0f",
		"/vmfs/volumes/Goldmine is full, see /var/log/vmkernel.log"}
	inv := &backends.Inventory{
		Hosts: []backends.Host{{Name: "10.7.4.2", Version: "8.0.3", RecentTasks: log,
			Firewall: map[string]backends.Ruleset{"pvrdma": {Networks: []string{"10.7.0.0/16", "10.7.4.2"}}}}},
		PortGroups: []backends.PortGroup{{Name: "100", Switch: "A1", VLAN: "100"}},
		VMs:        []backends.VM{{Name: "11"}},
		Guests: []backends.Guest{{VM: "11", Address: "gpu.bigco.example:22", MOFED: "MLNX_OFED_LINUX-5.8-3.0.7.0:",
			Packages: map[string]string{"mlnx-fw-updater": "24.10-1.1.4.0"}}},
	}
	var packed bytes.Buffer
	var texts []string // with keys of their own: one network in 256 keeps its number by chance
	for range 3 {
		packed.Reset()
		if err := bundle.Write(&packed, &bundle.Bundle{Tool: "t", Made: made, Answers: a, Facts: &checks.Facts{Now: made, Inventory: inv},
			Masked: true}); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, unpacked(t, packed.Bytes()))
	}
	holds := func(name string) func(string) bool {
		return func(text string) bool { return strings.Contains(text, name) }
	}
	for _, name := range []string{"acme", "bigco", "other-co", "Secret", "Store", "Hidden", "Goldmine"} {
		if i := slices.IndexFunc(texts, holds(name)); i >= 0 {
			t.Errorf("a masked bundle holds %s:\n%s", name, texts[i])
		}
	}
	for _, number := range []string{"10.7.", "147.8.", "2001:db8", "0a07:", "a07:402"} {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(text, number) }) {
			t.Errorf("each masked bundle holds %s:\n%s", number, texts[0])
		}
	}
	b, err := bundle.Read(bytes.NewReader(packed.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	h, g, create := b.Facts.Inventory.Hosts[0], b.Facts.Inventory.Guests[0], b.Answers.PVRDMA.VMKNic.Create
	network, err := netip.ParsePrefix(h.Firewall["pvrdma"].Networks[0])
	switch {
	case err != nil || network != network.Masked() || !network.Contains(netip.MustParseAddr(h.Name)) ||
		h.Firewall["pvrdma"].Networks[1] != h.Name:
		t.Errorf("host %s, firewall %+v: %v", h.Name, h.Firewall, err)
	case b.Answers.Hosts.Names[0] != h.Name || b.Answers.NIC.MACs[h.Name] != "b8:59:9f:00:a1:02":
		t.Errorf("answers %+v, %+v; host %s", b.Answers.Hosts, b.Answers.NIC, h.Name)
	case create.Network.String() != network.String():
		t.Errorf("vmknics in %v, firewall %v", create.Network, network)
	case !sameNetwork(b.Answers.VMs[0].IP.String(), b.Answers.VMs[1].IP.String()):
		t.Errorf("two networks of one: %v, %v", b.Answers.VMs[0].IP, b.Answers.VMs[1].IP)
	case b.Facts.Inventory.PortGroups[0].VLAN != "100" || b.Facts.Inventory.PortGroups[0].Name != b.Answers.Switch.PortGroup:
		t.Errorf("port group %+v", b.Facts.Inventory.PortGroups[0])
	case g.MOFED != "MLNX_OFED_LINUX-5.8-3.0.7.0:" || g.Packages["mlnx-fw-updater"] != "24.10-1.1.4.0":
		t.Errorf("versions became addresses: %q %q", g.MOFED, g.Packages)
	case h.RecentTasks[4] != log[4] || h.RecentTasks[6] != log[6]:
		t.Errorf("numbers became names: %q", h.RecentTasks)
	}
}

func hexPair(a [4]byte) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i, x := range a {
		if i == 2 {
			b.WriteByte(':')
		}
		b.WriteByte(digits[x>>4])
		b.WriteByte(digits[x&15])
	}
	return b.String()
}

func sameNetwork(a, b string) bool {
	p, err := netip.ParsePrefix(a)
	q, err2 := netip.ParsePrefix(b)
	return err == nil && err2 == nil && p.Masked() == q.Masked()
}
