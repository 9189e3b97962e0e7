package form

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/wizard/answers"

	tea "charm.land/bubbletea/v2"
)

func (k *keyboard) lacks(text string) *keyboard {
	k.t.Helper()
	if strings.Contains(k.screen(), text) {
		k.t.Errorf("%q is shown:\n%s", text, k.screen())
	}
	return k
}

// site returns a world of n hosts with two VMs each; one guest already has an address of the proposed network.
func site(n int) *world {
	inv := inventory()
	host := inv.Hosts[0]
	inv.Hosts, inv.VMs = nil, nil
	for i := range n {
		h := host
		h.Name = fmt.Sprintf("esx-%03d", i+1)
		inv.Hosts = append(inv.Hosts, h)
		for j := range 2 {
			inv.VMs = append(inv.VMs, backends.VM{Name: fmt.Sprintf("vm-%04d", 2*i+j+1), Host: h.Name, Power: "poweredOn", Hardware: 19,
				MemoryMB: 4096})
		}
	}
	inv.VMs[0].IPs = []string{"10.0.0.7", "192.168.60.12", "fe80::1"}
	return &world{inv: inv, shared: true}
}

// onVMs goes to the VM page with the first two hosts selected.
func onVMs(t *testing.T, f *world) *keyboard {
	t.Helper()
	return fromHosts(t, sit(t, f, 120, 40))
}

func fromHosts(t *testing.T, k *keyboard) *keyboard {
	t.Helper()
	k.press("enter").write("right").press("enter").on("Hosts")
	k.press("space", "down", "space", "enter", "enter").on("pNICs")
	for range 8 {
		if k.w.Page().Title() == "VMs and guests" {
			break
		}
		k.press("enter")
	}
	return k.on("VMs and guests")
}

func TestAddressesOfAllChosenVMs(t *testing.T) {
	still(t, func(t *testing.T) {
		k := onVMs(t, site(500))
		k.press("E").shows("nothing is chosen")
		k.press("a", "E").shows("First address of 4")
		for range len("192.168.50.11/24") + 4 {
			k.press("backspace")
		}
		k.write("192.168.60.11/24").press("enter")
		k.shows("192.168.60.11/24").shows("192.168.60.13/24").shows("192.168.60.15/24").lacks("192.168.60.12/24") // a guest has .12
		k.press("L").write("ops").press("enter", "enter")
		if n := len(k.w.Answers.VMs); n != 4 || k.w.Answers.VMs[3].Guest.User != "ops" {
			t.Errorf("%d VMs: %+v", n, k.w.Answers.VMs)
		}
	})
}

func TestAListIsPasted(t *testing.T) {
	still(t, func(t *testing.T) {
		k := onVMs(t, site(500))
		k.send(tea.PasteMsg{Content: "vm-0001,192.168.70.1/24\nvm-9999,192.168.70.2/24\n"})
		k.shows(`line 2: no VM "vm-9999" is on the chosen hosts`).lacks("192.168.70.1")
		k.send(tea.PasteMsg{Content: "vm-0001,192.168.70.1/24\r\nvm-0001,192.168.70.2/24"})
		k.shows("line 2: vm-0001 is in the list twice").lacks("192.168.70.1")
		k.send(tea.PasteMsg{Content: "vm-0001, 192.168.70.1/24\r\nvm-0003;192.168.70.3/24;root@10.0.0.3\r\n\r\n"})
		k.shows("192.168.70.1/24").shows("root@10.0.0.3").shows("2 chosen")
		k.send(tea.PasteMsg{Content: "vm-0003,192.168.70.1/24\nvm-0001,192.168.70.3/24"}) // addresses exchanged
		k.press("enter")
		if vms := k.w.Answers.VMs; len(vms) != 2 || vms[0].IP.String() != "192.168.70.3/24" || vms[1].IP.String() != "192.168.70.1/24" {
			t.Errorf("%+v", vms)
		}
	})
}

// An address that the mode does not allow is refused in its field.
func TestNoDHCPForWholeCards(t *testing.T) {
	for mode, want := range map[answers.Mode]bool{answers.PVRDMA: true, answers.GPUDirect: false} {
		g := entry.Guests{Mode: mode, VM: map[string]answers.VM{"vm-1": answers.DefaultVM("vm-1")}}
		if err := g.SetAddress("vm-1", "dhcp"); (err == nil) != want {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// TestTheProposalIsNeverRefused: for any number of VMs the proposal passes the validation of the answers.
func TestTheProposalIsNeverRefused(t *testing.T) {
	testclass.Plain(t)
	for _, n := range []int{1, 2, 200, 244, 1000, 10000} {
		a := answers.Default(answers.PVRDMA)
		var seen []backends.VM
		for i := range 40 {
			seen = append(seen, backends.VM{IPs: []string{fmt.Sprintf("192.168.50.%d", 20+i), fmt.Sprintf("10.50.0.%d", 11+3*i)}})
		}
		free := entry.FreeAddresses(nil, seen, n)
		for i := range n {
			id := fmt.Sprintf("vm-%05d", i)
			vm := entry.Completed(id, answers.VM{}, false, free)
			if !vm.IP.IsValid() {
				t.Fatalf("%d VMs: none is left for the one after %d", n, i)
			}
			a.VMs = append(a.VMs, vm)
		}
		if err := entry.Problem(a, "vms"); err != nil {
			t.Errorf("%d VMs: %v", n, err)
		}
	}
}

func TestAddressesThatFollow(t *testing.T) {
	for name, tt := range map[string]struct {
		first string
		n     int
		want  string // the last address, or the error
	}{
		"in order":                  {"192.168.1.11/24", 3, "192.168.1.13/24"},
		"from the beginning again":  {"192.168.1.253/24", 4, "192.168.1.2/24"},
		"two machines, two numbers": {"192.168.1.0/31", 2, "192.168.1.1/31"},
		"all of a small network":    {"192.168.1.1/29", 6, "192.168.1.6/29"},
		"one too many":              {"192.168.1.1/29", 7, "free addresses for only 6 of 7 VMs"},
		"of the network itself":     {"192.168.1.0/24", 1, "the address of the subnet itself"},
		"from DHCP":                 {"dhcp", 3, "dhcp"},
		"no address":                {"192.168.1", 2, "expected the first address"},
		"IPv6":                      {"fd00::1/64", 2, "not an IPv4 address"},
	} {
		t.Run(name, func(t *testing.T) {
			g := entry.Guests{Mode: answers.PVRDMA, VM: map[string]answers.VM{}, Member: func(string) bool { return true }}
			var ids []string
			for i := range tt.n {
				ids = append(ids, fmt.Sprintf("vm-%d", i))
				g.VM[ids[i]] = answers.DefaultVM(ids[i])
			}
			err := g.SetAddresses(ids, tt.first, nil)
			got := g.VM[ids[len(ids)-1]].IP.String()
			if err != nil {
				if g.VM[ids[0]].IP.Prefix != (netip.Prefix{}) {
					t.Errorf("%v, but the first has %s", err, g.VM[ids[0]].IP)
				}
				got = err.Error()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestAPairOfFiveHundredHosts: selecting two of 500 hosts and all their VMs, from the first page to the plan, takes at most 40
// keys, including those of the password and of a filter.
func TestAPairOfFiveHundredHosts(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, site(500), 80, 24)
		k.press("enter")
		k.write("right")
		k.press("enter", "/")
		k.write("esx-49")
		k.press("enter", "space", "down", "space", "enter", "enter", "enter", "enter")
		k.on("VMs and guests")
		k.press("a", "L")
		k.write("ops")
		k.press("enter", "enter")
		k.on("Preflight")
		k.press("enter")
		k.on("Plan")
		if k.pressed > 40 {
			t.Errorf("%d keys", k.pressed)
		}
		t.Logf("%d keys, each Enter in a field counted", k.pressed)
	})
}

// The first VM of the answers may be the canary, so the page keeps their order, and adds new VMs at the end.
func TestVMsKeepTheOrderOfTheAnswers(t *testing.T) {
	still(t, func(t *testing.T) {
		f := site(4)
		k := sit(t, f, 120, 40)
		for _, name := range []string{"vm-0003", "vm-0001"} {
			k.w.Answers.VMs = append(k.w.Answers.VMs, answers.DefaultVM(name))
		}
		fromHosts(t, k)
		k.press("home", "down", "space", "enter")
		var order []string
		for _, v := range k.w.Answers.VMs {
			order = append(order, v.Name)
		}
		if want := []string{"vm-0003", "vm-0001", "vm-0002"}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v\n%s", order, want, k.screen())
		}
	})
}
