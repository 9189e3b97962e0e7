package answers_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

var comparePrefix = cmp.Options{
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
}

// words are values that are difficult for YAML, shells and people.
var words = []string{"esx-01.example.com", "a b", "true", "no", "null", "~", "123", "1e3", "0x1f", "- x", "a: b", "#c", "x #y", `q"u'o`,
	"$(reboot)",
	"`id`", "ünï ☃", "tab\there", "new\nline", "\u2028", "\u0085", "\x1b[31m", "'", `"`, "|", ">", "%2f", "@x", "*a", "&a", "!t", "{x", "[x",
	"2026-01-02", "0c:42", "=", "<<", "\u202eabc", "\ufeff", " lead", "trail "}

func pick(r *rand.Rand) string { return words[r.IntN(len(words))] + fmt.Sprint(r.IntN(1000)) }

// random returns valid answers of all kinds.
func random(r *rand.Rand) *answers.Answers {
	a := answers.Default([]answers.Mode{answers.PVRDMA, answers.SRIOV, answers.GPUDirect}[r.IntN(3)])
	a.VCenter.Username, a.Hosts.Datacenter, a.Hosts.Cluster, a.NIC.Driver = pick(r), pick(r), pick(r), pick(r)
	for range r.IntN(4) {
		a.Hosts.Names = append(a.Hosts.Names, pick(r))
	}
	a.NIC.Speed = []answers.Speed{0, 25000, 100000, 2500}[r.IntN(4)]
	a.NIC.Device = []string{"", "vmnic2", "0000:3b:00.0"}[r.IntN(3)]
	if r.IntN(2) == 0 {
		a.NIC.MACs = map[string]answers.MAC{pick(r): "0c:42:a1:00:00:01", "x": "0c:42:a1:00:00:02"}
		a.ESXi.Addresses = map[string]string{pick(r): "10.0.0.1:22", "y": "fd00::1"}
	}
	a.Switch.Version = []string{"", "8.0.3"}[r.IntN(2)]
	a.Switch.MTU, a.Switch.VLAN, a.Switch.Uplinks = 1280+r.IntN(7000), r.IntN(4095), 1+r.IntN(4)
	a.Switch.Name, a.Switch.PortGroup = "S"+fmt.Sprint(r.IntN(9))+"$(x)", "P: 'q'"
	a.QoS.ECN, a.Guest.Install, a.Measure.Latency = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	if a.Mode == answers.PVRDMA && r.IntN(2) == 0 {
		a.PVRDMA.VMKNic = answers.VMKNic{Name: "vmk2", Names: map[string]string{"esx-01.example": "vmk3"}}
	}
	if a.Mode == answers.PVRDMA && r.IntN(3) == 0 {
		a.PVRDMA.VMKNic = answers.VMKNic{Create: &answers.VMKCreate{
			PortGroup: "K'", VLAN: r.IntN(9), Network: netip.MustParsePrefix("10.1.0.0/24"), Start: netip.MustParseAddr("10.1.0.9"),
		}}
	}
	a.GPUDirect.MMIO = []answers.MMIO{"kb", "minimal", "guide", "256"}[r.IntN(4)]
	if r.IntN(2) == 0 {
		a.SRIOV.Components = []string{"/vmfs/volumes/" + pick(r)}
	}
	if a.Mode != answers.PVRDMA && a.Guest.Install && r.IntN(2) == 0 {
		a.Guest.OFED = []string{"/mnt/" + strings.ReplaceAll(pick(r), "/", "") + "/MLNX_OFED_LINUX-24.10-1.1.4.0-rhel9.4-x86_64.tgz"}
	}
	a.Run.Reboot.Timeout = answers.Duration([]int64{60e9, 5400e9, 7200e9, 61e9, 1830e9}[r.IntN(5)])
	for i := range r.IntN(5) {
		v := answers.DefaultVM(fmt.Sprint(i) + pick(r))
		ip := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}), 24)
		if r.IntN(3) == 0 {
			v.Adapters = []answers.Adapter{{IP: answers.Address{Prefix: ip}},
				{IP: answers.Address{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, byte(i), 1}), 24)}, PortGroup: "other #" + fmt.Sprint(i)}}
		} else {
			v.IP.Prefix = ip
		}
		v.Guest.Address, v.Guest.Port, v.Guest.User = []string{"", "guest.example", "fd00::2"}[r.IntN(3)], 1+r.IntN(65535),
			[]string{"", "ubuntu"}[r.IntN(2)]
		if yes := true; r.IntN(3) == 0 {
			v.Guest.Install, v.Guest.Persist, v.Guest.Manage = new(bool), &yes, &yes
		} else if r.IntN(3) == 0 && a.Mode != answers.GPUDirect {
			v.Guest.Manage = new(bool)
		}
		if r.IntN(3) == 0 && a.Mode == answers.GPUDirect {
			a.GPUDirect.GPUs = map[string]answers.VMGPUs{v.Name: {Whole: []answers.PCI{"0000:3d:00.0", "0000:3e:00.0"}}}
		}
		a.VMs = append(a.VMs, v)
	}
	return a
}

// Property: saved answers load as the same answers.
func TestLoadOfSaveIsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 80 {
		a := random(r)
		if err := a.Validate(); err != nil {
			t.Fatalf("the generator made invalid answers: %v", err)
		}
		roundTrip(t, a)
	}
}

func roundTrip(t *testing.T, a *answers.Answers) {
	t.Helper()
	var out bytes.Buffer
	if err := answers.Save(&out, a); err != nil {
		t.Fatal(err)
	}
	got, err := answers.Load(bytes.NewReader(out.Bytes()), "saved")
	if err != nil {
		t.Fatalf("saved answers do not load:\n%v\n%s", err, &out)
	}
	got.Unused = nil // it describes the file
	if diff := cmp.Diff(a, got, comparePrefix); diff != "" {
		t.Fatalf("(-saved +loaded)\n%s\n%s", diff, &out)
	}
	var again bytes.Buffer
	if err := answers.Save(&again, got); err != nil || again.String() != out.String() {
		t.Fatalf("saving twice differs: %v", err)
	}
}

func TestSavedFileExplainsItself(t *testing.T) {
	a := answers.Default(answers.PVRDMA)
	a.VMs = []answers.VM{answers.DefaultVM("a"), answers.DefaultVM("b")}
	a.VMs[0].IP.Prefix, a.VMs[1].IP.Prefix = netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.0.2/24")
	var out bytes.Buffer
	if err := answers.Save(&out, a); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"\n# yaml-language-server: $schema=", "mtu: 9000 # bytes", "# What rdma-setup may change inside guests.",
		"vmknic: vmk0 #", "name: a #"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, not := range []string{"sriov:", "gpudirect:", "name: b #"} {
		if strings.Contains(text, not) {
			t.Errorf("%q stands in a file for pvrdma:\n%s", not, text)
		}
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	known := map[string]bool{}
	for _, k := range answers.Keys() {
		if k.Doc == "" || known[k.Path] {
			t.Errorf("%s: without words, or twice", k.Path)
		}
		known[k.Path] = true
	}
	schema, err := answers.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(schema), `"type": "object"`); strings.Count(string(schema), `"additionalProperties"`) < n {
		t.Error("an object of the schema lets unknown keys in")
	}
}

func FuzzLoad(f *testing.F) {
	for _, m := range []string{"pvrdma", "sriov", "gpudirect"} {
		b, err := assets.Example(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{"", "a: &a [*a]", "mode: pvrdma\nvms: [{name: a, ip: 10.0.0.1/24}]",
		"mode: sriov\nnic: {macs: {'a}b': '0c:42:a1:00:00:01'}}", "? {a: b}\n: c", "\xff\xfea", "mode: pvrdma\nswitch: {? x}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := answers.Load(bytes.NewReader(b), "fuzz")
		if err != nil {
			if ps, ok := err.(answers.Problems); !ok || len(ps) == 0 {
				t.Fatalf("not Problems, or none: %v", err)
			}
			return
		}
		roundTrip(t, a)
	})
}
