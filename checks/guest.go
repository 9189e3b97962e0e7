package checks

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func itoa(n int) string { return strconv.Itoa(n) }

// guestChecks look into the guests.
func guestChecks() []Check {
	return []Check{
		{
			ID: "GST-OS-001", Scope: Guest, Preflight: true, Fix: Manual, Source: "VM administration guide 6.5, p. 110",
			Criteria: "the driver is there / - / no driver", Remedy: "Install a kernel that has the driver: the driver decides, not the version.",
			Run: eachGuest(func(f *Facts, g *backends.Guest) Answer {
				module := map[answers.Mode]string{answers.PVRDMA: "vmw_pvrdma"}[f.Answers.Mode]
				if module == "" {
					module = "mlx5_core"
				}
				ok := slices.Contains(g.Available, module) || slices.Contains(g.Loaded, module)
				return passIf(ok, backends.GuestRef(g.VM), "%s, kernel %s: module %s %s", g.Pretty, g.Kernel, module, map[bool]string{true: "there", false: "not found"}[ok])
			}),
		},
		{
			ID: "GST-SUDO-002", Scope: Guest, Preflight: true, Fix: Manual, Source: "ours",
			Criteria: "root, or sudo / - / no", Remedy: "Provide sudo rights, or give the sudo password (RDMA_SETUP_SUDO_PASSWORD).",
			Run: eachGuest(func(_ *Facts, g *backends.Guest) Answer {
				return passIf(g.Sudo != "none" && g.Sudo != "", backends.GuestRef(g.VM), "sudo for %s: %s", g.User, orNone(g.Sudo))
			}),
		},
		{
			ID: "GST-MOFED-006", Scope: Guest, Modes: pvrdmaOnly, Preflight: true, Fix: Automatic, Source: "seed 000, NGC container",
			Criteria: "no MLNX_OFED / - / present", Remedy: "Remove MLNX_OFED and install the distribution's rdma-core: it has no PVRDMA provider.",
			Run: eachGuest(func(_ *Facts, g *backends.Guest) Answer {
				return passIf(g.MOFED == "", backends.GuestRef(g.VM), "MLNX_OFED %s", orNone(g.MOFED))
			}),
		},
		{
			ID: "GST-MOD-007", Scope: Guest, Modes: pvrdmaOnly, Fix: Automatic, Source: "seed 000",
			Criteria: "ib_umad rdma_cm rdma_ucm vmw_pvrdma loaded / an optional one missing / vmw_pvrdma missing", Remedy: "Load the modules in order, vmw_pvrdma last.",
			Run: eachGuest(func(_ *Facts, g *backends.Guest) Answer {
				t := backends.GuestRef(g.VM)
				var missing []string
				for _, m := range []string{"ib_umad", "rdma_cm", "rdma_ucm", "vmw_pvrdma"} {
					if !slices.Contains(g.Loaded, m) {
						missing = append(missing, m)
					}
				}
				if slices.Contains(missing, "vmw_pvrdma") {
					return fail(t, "not loaded: %s", strings.Join(missing, ", "))
				}
				return warnIf(len(missing) > 0, t, "not loaded: %s", orNone(strings.Join(missing, ", ")))
			}),
		},
		rdmaPort("GST-PORT-010", "PORT_ACTIVE / - / down or no device", "Bring the link up; for PVRDMA reload vmw_pvrdma last.", "seed 000; vmw_pvrdma driver", func(t backends.Ref, d *backends.VerbsDevice) Answer {
			return passIf(d.State == "PORT_ACTIVE", t, "%s is %s", d.Name, d.State)
		}),
		rdmaPort("GST-LINK-011", "Ethernet / - / InfiniBand", "Set LINK_TYPE to ETH in the NIC's firmware.", "seed 002", func(t backends.Ref, d *backends.VerbsDevice) Answer {
			return passIf(d.LinkLayer == "" || strings.EqualFold(d.LinkLayer, "Ethernet"), t, "link layer %s", orNone(d.LinkLayer))
		}),
		{
			ID: "GST-MTU-012", Scope: Guest, Fix: Automatic, Source: "seed 002",
			Criteria: "as planned / IB MTU still 4096 / lower (PVRDMA: warn)", Remedy: "Set the MTU persistently.",
			Run: rdmaInterface(func(f *Facts, t backends.Ref, i *backends.Interface) Answer {
				want := f.Answers.Switch.MTU
				switch {
				case i.MTU == want:
					return pass(t, "%s has MTU %d", i.Name, i.MTU)
				case i.MTU >= 4192 || f.Answers.Mode == answers.PVRDMA:
					return warn(t, "%s has MTU %d, wanted %d", i.Name, i.MTU, want)
				}
				return fail(t, "%s has MTU %d, wanted %d", i.Name, i.MTU, want)
			}),
		},
		rdmaPort("GST-IBMTU-013", "4096 / PVRDMA: lower / SR-IOV, GPUDirect: lower", "Raise the Ethernet MTU on every hop.", "Linux iboe_get_mtu; seed 002", func(t backends.Ref, d *backends.VerbsDevice) Answer {
			return warnIf(d.ActiveMTU < 4096, t, "active MTU %d", d.ActiveMTU)
		}),
		{
			ID: "GST-IP-014", Scope: Guest, Fix: Automatic, Source: "seed 000",
			Criteria: "the planned address / DHCP / none", Remedy: "Configure the address.",
			Run: rdmaInterface(func(f *Facts, t backends.Ref, i *backends.Interface) Answer {
				want := f.addressOf(t.Name)
				if !slices.Contains(i.Addresses, want) {
					return fail(t, "%s has %s, wanted %s", i.Name, orNone(strings.Join(i.Addresses, ", ")), want)
				}
				return warnIf(i.DHCP, t, "%s has %s, DHCP %t", i.Name, want, i.DHCP)
			}),
		},
		{
			ID: "GST-SUBNET-015", Scope: Guest, Preflight: true, Fix: Automatic, Source: "seed 002, reference 15",
			Criteria: "no two adapters in one subnet / - / two", Remedy: "Give RDMA a subnet of its own.",
			Run: eachGuest(guestSubnets),
		},
		{
			ID: "GST-IPPERSIST-018", Scope: Guest, Fix: Automatic, Source: "seed 000",
			Criteria: "address survives a reboot / - / no", Remedy: "Write a persistent configuration.",
			Run: rdmaInterface(func(_ *Facts, t backends.Ref, i *backends.Interface) Answer {
				return passIf(i.Persistent, t, "%s is configured by %s", i.Name, orNone(i.Config))
			}),
		},
		rdmaPort("GST-GID-019", "RoCE v2 with IPv4 / v2 link-local only / v1 only", "Assign an IPv4 address; tests use the index of its RoCE v2 entry.", "seed 002; nccl issue 426", func(t backends.Ref, d *backends.VerbsDevice) Answer {
			v2 := false
			for _, g := range d.GIDs {
				if strings.Contains(g.Type, "v2") {
					v2 = true
					if g.IPv4 != "" {
						return pass(t, "index %d is RoCE v2 for %s", g.Index, g.IPv4)
					}
				}
			}
			if v2 {
				return warn(t, "RoCE v2 entries hold no IPv4 address")
			}
			return fail(t, "no RoCE v2 entry among %d", len(d.GIDs))
		}),
		{
			ID: "GST-MEMLOCK-020", Scope: Guest, Fix: Automatic, Source: "openucx issues 8229, 7930",
			Criteria: "unlimited / >= 512 MB / less", Remedy: "Set memlock to unlimited in limits.d.",
			Run: eachGuest(func(_ *Facts, g *backends.Guest) Answer {
				t := backends.GuestRef(g.VM)
				switch {
				case g.MemlockKB == -1:
					return pass(t, "memlock of %s is unlimited", g.User)
				case g.MemlockKB == 0:
					return unknown(t, "memlock could not be read")
				case g.MemlockKB >= 512<<10:
					return warn(t, "memlock of %s is %d KB", g.User, g.MemlockKB)
				}
				return fail(t, "memlock of %s is %d KB", g.User, g.MemlockKB)
			}),
		},
		{
			ID: "GST-PERFTEST-023", Scope: Guest, Fix: Automatic, Source: "seed 000",
			Criteria: "the same perftest on all / differs / missing", Remedy: "Install the same perftest on every guest.",
			Run: eachGuest(func(f *Facts, g *backends.Guest) Answer {
				t := backends.GuestRef(g.VM)
				if g.Perftest == "" {
					return fail(t, "perftest is not installed")
				}
				for _, other := range f.Inventory.Guests {
					if other.Perftest != "" && other.Perftest != g.Perftest {
						return warn(t, "perftest %s here, %s in %s", g.Perftest, other.Perftest, other.VM)
					}
				}
				return pass(t, "perftest %s", g.Perftest)
			}),
		},
	}
}

// addressOf is the address that a VM shall have, "" when the answers give none.
func (f *Facts) addressOf(vm string) string {
	v := f.Inventory.VM(vm)
	for _, want := range f.Answers.VMs {
		if want.Name != vm && (v == nil || want.Name != v.Path) {
			continue
		}
		if n := f.Answers.Networks(want); len(n) > 0 {
			return n[0].IP.String()
		}
	}
	return ""
}

// rdmaMAC is the MAC of a VM's RDMA adapter, "" when it has none.
func (f *Facts) rdmaMAC(vm string) string {
	if v := f.Inventory.VM(vm); v != nil {
		if a := f.adapter(v, "pvrdma", "sriov"); a != nil {
			return strings.ToLower(a.MAC)
		}
	}
	return ""
}

// rdmaPort is a row about the RDMA device behind the VM's adapter.
func rdmaPort(id, criteria, remedy, source string, ask func(t backends.Ref, d *backends.VerbsDevice) Answer) Check {
	return Check{ID: id, Scope: Guest, Fix: Automatic, Source: source, Criteria: criteria, Remedy: remedy, Run: eachGuest(func(f *Facts, g *backends.Guest) Answer {
		t := backends.GuestRef(g.VM)
		d := g.Verbs(f.rdmaMAC(g.VM))
		if d == nil {
			return fail(t, "no RDMA device belongs to the adapter")
		}
		return ask(t, d)
	})}
}

// rdmaInterface asks about the interface behind the VM's RDMA adapter; where the answers name no address there is
// nothing to hold it against.
func rdmaInterface(ask func(f *Facts, t backends.Ref, i *backends.Interface) Answer) func(*Facts) []Answer {
	return func(f *Facts) []Answer {
		return slices.DeleteFunc(eachGuest(func(f *Facts, g *backends.Guest) Answer {
			t := backends.GuestRef(g.VM)
			if f.addressOf(g.VM) == "" {
				return Answer{}
			}
			i := g.Interface(f.rdmaMAC(g.VM))
			if i == nil {
				return fail(t, "no interface belongs to the adapter")
			}
			return ask(f, t, i)
		})(f), func(a Answer) bool { return a.Status == "" })
	}
}

// guestSubnets looks for a second interface in the network that RDMA has, or shall have.
func guestSubnets(f *Facts, g *backends.Guest) Answer {
	t := backends.GuestRef(g.VM)
	want, err := netip.ParsePrefix(f.addressOf(g.VM))
	if err != nil {
		return pass(t, "no RDMA address is planned")
	}
	mac := f.rdmaMAC(g.VM)
	for _, i := range g.Interfaces {
		if mac != "" && strings.EqualFold(i.MAC, mac) {
			continue
		}
		for _, a := range i.Addresses {
			if p, err := netip.ParsePrefix(a); err == nil && p.Overlaps(want.Masked()) {
				return fail(t, "%s has %s in the network of %s", i.Name, a, want)
			}
		}
	}
	return pass(t, "no other interface is in %s", want.Masked())
}
