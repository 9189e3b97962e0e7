package entry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Guests are the VMs of the answers while they are being edited: their RDMA addresses and logins.
type Guests struct {
	Mode   answers.Mode
	VM     map[string]answers.VM
	Member func(id string) bool // the VM takes part: no other may have its address
}

// Unfit says why a VM can never be set up, "" if it can.
func Unfit(v backends.VM) string {
	switch {
	case v.Template:
		return "it is a template"
	case v.Power == "suspended":
		return "it is suspended"
	case v.FaultTolerant:
		return "fault tolerance is on"
	case v.VCenterVM:
		return "it is the vCenter itself"
	}
	return ""
}

// Completed returns a VM with the defaults and a free address if it has none yet.
func Completed(id string, vm answers.VM, known bool, free func() netip.Prefix) answers.VM {
	if !known {
		vm = answers.DefaultVM(id)
	}
	if !vm.IP.Given() && len(vm.Adapters) == 0 {
		vm.IP.Prefix = free()
	}
	return vm
}

// InOrder sorts the chosen VMs in the order of the answers before: VMs that were not in them come last, in their own order. The first
// VM may be the canary (run.power.canary).
func InOrder(before, chosen []answers.VM) []answers.VM {
	place := map[string]int{}
	for i, v := range before {
		place[v.Name] = i - len(before)
	}
	out := slices.Clone(chosen)
	slices.SortStableFunc(out, func(a, b answers.VM) int { return cmp.Compare(place[a.Name], place[b.Name]) })
	return out
}

// FreeAddresses returns a function that returns consecutive addresses that no VM of the answers has and VMware Tools do not
// report, all of one network: that of the first VM with an address, else one with room for n guests. It returns the zero value
// when the network is full.
func FreeAddresses(chosen []answers.VM, all []backends.VM, n int) func() netip.Prefix {
	next := netip.MustParsePrefix("192.168.50.10/24")
	if n > 200 {
		next = netip.MustParsePrefix("10.50.0.10/16")
	}
	used := taken(all)
	first := true
	for _, v := range chosen {
		if !v.IP.IsValid() {
			continue
		}
		used[v.IP.Addr()] = true
		if first || next.Masked() == v.IP.Masked() && next.Addr().Less(v.IP.Addr()) {
			next, first = v.IP.Prefix, false
		}
	}
	return func() netip.Prefix {
		next = following(next, used)
		return next
	}
}

// taken returns the addresses that VMware Tools report for any guest.
func taken(all []backends.VM) map[netip.Addr]bool {
	used := map[netip.Addr]bool{}
	for _, v := range all {
		for _, text := range v.IPs {
			if ip, err := netip.ParseAddr(text); err == nil {
				used[ip] = true
			}
		}
	}
	return used
}

// following returns the next free address of the same network, starting again at its beginning after its last, and marks it as
// used. The zero value means that there is none.
func following(p netip.Prefix, used map[netip.Addr]bool) netip.Prefix {
	if !p.IsValid() {
		return p
	}
	net := p.Masked()
	for ip, wrapped := p.Addr().Next(), false; ip != p.Addr(); ip = ip.Next() {
		if !net.Contains(ip) {
			if wrapped {
				break
			}
			wrapped, ip = true, net.Addr()
			if ip == p.Addr() {
				break
			}
		}
		// In a network of two addresses both can be used (RFC 3021).
		edge := p.Bits() < 31 && (ip == net.Addr() || !net.Contains(ip.Next()))
		if !edge && !used[ip] {
			used[ip] = true
			return netip.PrefixFrom(ip, p.Bits())
		}
	}
	return netip.Prefix{}
}

// AddressText returns the address of a VM, or those of its adapters.
func AddressText(v answers.VM) string {
	switch {
	case len(v.Adapters) > 0:
		return strings.Join(plain.Mapped(v.Adapters, func(a answers.Adapter) string { return a.IP.String() }), ",")
	case v.IP.Given():
		return v.IP.String()
	}
	return ""
}

// LoginText returns "user@address:port" without the parts that are not set.
func LoginText(v answers.VM) string {
	port := ""
	if v.Guest.Port != 22 && v.Guest.Port != 0 {
		port = ":" + strconv.Itoa(v.Guest.Port)
	}
	if v.Guest.Address+port == "" {
		return v.Guest.User
	}
	return v.Guest.User + "@" + v.Guest.Address + port
}

// SetAddress checks and sets the address of one VM.
func (g Guests) SetAddress(id, text string) error {
	vm := g.VM[id]
	var ip answers.Address
	err := ip.UnmarshalText([]byte(text))
	switch {
	case len(vm.Adapters) > 0:
		return errors.New("this VM has several RDMA adapters: change them in the answers file")
	case err != nil:
		return fmt.Errorf("%q: expected an address with its prefix length, such as 192.168.50.11/24, or dhcp", text)
	}
	for other, v := range g.VM {
		if other != id && g.Member(other) && v.IP.IsValid() && v.IP.Addr() == ip.Addr() {
			return fmt.Errorf("%s is the address of %s", ip.Addr(), other)
		}
	}
	vm.IP = ip
	return g.keep(id, vm)
}

// SetAddresses assigns addresses to several VMs in order: the typed one and the following ones in its network, without those of
// other guests. Nothing is changed if the network is too small.
func (g Guests) SetAddresses(ids []string, text string, all []backends.VM) error {
	var ip answers.Address
	if err := ip.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("%q: expected the first address with its prefix length, such as 192.168.50.11/24, or dhcp", text)
	}
	used := taken(all)
	for id, v := range g.VM {
		if g.Member(id) && v.IP.IsValid() && !slices.Contains(ids, id) {
			used[v.IP.Addr()] = true
		}
	}
	given := map[string]answers.Address{}
	for i, id := range ids {
		if ip.DHCP || i == 0 && !used[ip.Addr()] {
			used[ip.Addr()] = true
		} else if ip.Prefix = following(ip.Prefix, used); !ip.IsValid() {
			return fmt.Errorf("%s has free addresses for only %d of %d VMs: choose a larger network", text, i, len(ids))
		}
		given[id] = ip
	}
	try := Guests{Mode: g.Mode, VM: maps.Clone(g.VM), Member: func(id string) bool { _, mine := given[id]; return !mine && g.Member(id) }}
	for _, id := range ids {
		if err := try.SetAddress(id, given[id].String()); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	maps.Copy(g.VM, try.VM)
	return nil
}

// SetLogins sets one login for several VMs; it must not contain an address, which belongs to one guest only.
func (g Guests) SetLogins(ids []string, text string) error {
	if strings.Contains(text, "@") && len(ids) > 1 {
		return fmt.Errorf("%q: expected an account without an address: VMware Tools reports the address of each guest", text)
	}
	for _, id := range ids {
		if err := g.SetLogin(id, text); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

// Pasted parses a list, one VM per line: its name, its address with the prefix length and optionally the login, separated by
// commas, semicolons or tabs. It returns the ids of the VMs; nothing is changed if a line is invalid.
func (g Guests) Pasted(text string) ([]string, error) {
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	fields := func(line string) []string {
		f := strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ';' || r == '\t' })
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		return f
	}
	waiting := map[string]bool{} // their previous addresses are free: the list may swap them
	for _, line := range lines {
		if f := fields(line); len(f) > 0 {
			waiting[f[0]] = true
		}
	}
	done := map[string]bool{}
	try := Guests{Mode: g.Mode, VM: maps.Clone(g.VM), Member: func(id string) bool { return done[id] || !waiting[id] && g.Member(id) }}
	var ids []string
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		f := fields(line)
		if len(f) < 2 || len(f) > 3 {
			return nil, fmt.Errorf("line %d: expected NAME,ADDRESS/PREFIX or NAME,ADDRESS/PREFIX,LOGIN", i+1)
		}
		id := f[0]
		if _, known := g.VM[id]; !known {
			return nil, fmt.Errorf("line %d: no VM %q is on the chosen hosts", i+1, id)
		}
		if done[id] {
			return nil, fmt.Errorf("line %d: %s is in the list twice", i+1, id)
		}
		err := try.SetAddress(id, f[1])
		if len(f) == 3 {
			err = cmp.Or(err, try.SetLogin(id, f[2]))
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		ids, done[id] = append(ids, id), true
	}
	maps.Copy(g.VM, try.VM)
	return ids, nil
}

// SetLogin parses "user", "user@address", "user@address:port" or nothing; the default user comes from the SSH settings, the
// default address from VMware Tools.
func (g Guests) SetLogin(id, text string) error {
	vm := g.VM[id]
	user, address, _ := strings.Cut(text, "@")
	vm.Guest = answers.VMGuest{User: user, Address: address, Port: 22}
	if host, port, ok := cutPort(address); ok {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is not a port: expected a number from 1 to 65535", port)
		}
		vm.Guest.Address, vm.Guest.Port = host, n
	}
	return g.keep(id, vm)
}

// cutPort removes the port of an address; an IPv6 address without brackets has none.
func cutPort(s string) (host, port string, ok bool) {
	i := strings.LastIndex(s, ":")
	if i < 0 || strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
		return s, "", false
	}
	return strings.Trim(s[:i], "[]"), s[i+1:], true
}

// keep stores an edited VM if it is valid.
func (g Guests) keep(id string, vm answers.VM) error {
	alone := answers.Default(g.Mode)
	alone.VMs = []answers.VM{vm}
	if err := Problem(alone, "vms[0]"); err != nil {
		return err
	}
	g.VM[id] = vm
	return nil
}
