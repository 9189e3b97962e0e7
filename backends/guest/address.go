package guest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// address sets the persistent address of an adapter's interface: KindAddress.
type address struct{ g *Guests }

// An interfaceState is the part of an interface that is compared.
type interfaceState struct {
	Addresses []string `json:"addresses"`
	MTU       int      `json:"mtu"`
	Up        bool     `json:"up"`
	Tables    []int    `json:"tables,omitempty"` // tables of policy routing
}

// item records an interface, Absent if it no longer exists. Its content is the network system that configures it.
func (n *network) item(mac string, i *backends.Interface) backends.Item {
	item := backends.Item{Kind: backends.ItemInterface, Name: mac, Content: []byte(n.system), Runtime: true}
	if i != nil {
		item.State = backends.ValueOf(interfaceState{append([]string{}, i.Addresses...), i.MTU, i.Up, n.tables(i)})
	}
	return item
}

// tables returns the tables of the rules for packets from an interface.
func (n *network) tables(i *backends.Interface) (tables []int) {
	for _, r := range n.rules[i.Name] {
		tables = append(tables, r.table)
	}
	return tables
}

// find reads the network and returns the interface; nil if the guest does not have it.
func (a address) find(ctx context.Context, s backends.Setting) (*network, *backends.Interface, error) {
	mac, err := a.g.mac(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	n, err := a.network(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	return n, n.byMAC(mac), nil
}

// networkCommand reads the network of the guest: as root, because only root can read netplan's files; without root the
// current state can still be read.
func (a address) networkCommand(ctx context.Context, vm string) (ssh.Command, error) {
	c, err := a.g.conn(ctx, vm)
	if err != nil {
		return ssh.Command{}, err
	}
	_, noRoot := c.Sudo(ctx)
	return traced(ssh.Command{Script: networkScript(), Sudo: noRoot == nil, MaxOutput: 8 << 20}), nil
}

// network reads the network of the guest.
func (a address) network(ctx context.Context, s backends.Setting) (*network, error) {
	cmd, err := a.networkCommand(ctx, s.Target.Name)
	if err != nil {
		return nil, err
	}
	r, err := a.g.look(ctx, s.Target.Name, cmd)
	if err != nil {
		return nil, err
	}
	n := sections(r.Stdout).network()
	return &n, nil
}

// Read returns address and MTU if both are active and persistent, else Absent.
func (a address) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	n, i, err := a.find(ctx, s)
	if err != nil {
		return backends.Absent, err
	}
	var want backends.AddressSpec
	a.g.want(s, &want)
	v := i.Address(want)
	if half := halfConfigured(n, i, s.Name, v); half != "" {
		return backends.Partial(half), nil
	}
	return v, nil
}

// halfConfigured describes a configuration of this program that is not active, or only partly; "" if there is none.
func halfConfigured(n *network, i *backends.Interface, portGroup string, v backends.Value) string {
	static := netconf.Static{PortGroup: portGroup}
	if i != nil {
		static.NIC = netconf.NIC{Name: i.Name, MAC: i.MAC}
	}
	f, _ := netconf.FileFor(n.system, static)
	own := f.Path
	at := slices.IndexFunc(n.files, func(f netconf.File) bool { return f.Path == own && strings.Contains(f.Content, "rdma-setup") })
	switch c, _ := n.of(static.Name); {
	case at < 0:
		return ""
	case n.refusal != nil:
		return n.refusal.Error()
	case i != nil && c.File != "" && c.File != own:
		return c.File + " decides for " + i.Name + ", not " + own
	case n.shared != nil && n.shared.File == own:
		return n.shared.String()
	case c.DHCP4 && i != nil && i.DHCP:
		return ""
	}
	var spec backends.AddressSpec
	if v.IsAbsent() || v.Decode(&spec) != nil {
		return own + " exists, but its address is not active"
	}
	if address, _, _ := strings.Cut(spec.CIDR, "/"); !strings.Contains(n.files[at].Content, address) {
		return own + " is there, and " + i.Name + " has " + spec.CIDR
	}
	return ""
}

// Set writes the configuration of one interface and applies it under a watchdog in the guest: the guest reverts the change unless
// it is confirmed over a new connection.
func (a address) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	vm := s.Target.Name
	a.g.Want(s, to)
	n, i, err := a.find(ctx, s)
	if err != nil {
		return err
	}
	if i.Address(specOf(to)) == to {
		return nil
	}
	t, err := a.turn(s, n, i, to)
	if err != nil {
		return err
	}
	if t.content != "" {
		if err := a.g.try(ctx, vm, n, netconf.File{Path: t.file, Content: t.content}, t.static); err != nil {
			return err
		}
	}
	progress.Report(10)
	if err := a.g.apply(ctx, vm, t, n); err != nil {
		return err
	}
	progress.Report(80)
	return nil
}

// specOf returns the requested spec, the zero spec if nothing is requested.
func specOf(v backends.Value) (spec backends.AddressSpec) {
	if v.IsAbsent() || v.Decode(&spec) != nil {
		return backends.AddressSpec{}
	}
	return spec
}

// turn computes the changes. It refuses interfaces that carry management traffic or are used by others.
func (a address) turn(s backends.Setting, n *network, i *backends.Interface, to backends.Value) (turn, error) {
	vm := s.Target.Name
	refuse := func(hint, format string, args ...any) (turn, error) {
		return turn{}, backends.Errorf(backends.KindRefused, label(vm), hint, format, args...)
	}
	if i == nil {
		return refuse("Check that the adapter is attached, that the VM was power-cycled since, and that the guest has a driver for it.",
			"no interface has the MAC of the adapter on %s", s.Name)
	}
	if why := n.management[i.Name]; why != "" {
		return refuse("Give the VM an adapter of its own for RDMA.", "will not change interface %s: %s", i.Name, why)
	}
	if m := n.master[i.Name]; m != "" {
		return refuse("Remove the interface from the bond or bridge first.", "will not change interface %s: it is a member of %s", i.Name, m)
	}
	t := turn{nonce: nonce(), system: n.system, nic: netconf.NIC{Name: i.Name, MAC: i.MAC}, slug: backends.Slug(s.Name)}
	static := netconf.Static{NIC: t.nic, PortGroup: s.Name}
	var want backends.AddressSpec
	if !to.IsAbsent() {
		if err := to.Decode(&want); err != nil {
			return turn{}, err
		}
		p, err := netip.ParsePrefix(want.CIDR)
		dhcp := want.CIDR == backends.DHCP
		if !dhcp && (err != nil || !p.Addr().Is4()) || want.MTU < 576 || want.MTU > 65535 {
			return turn{}, backends.Errorf(backends.KindUsage, label(vm), "", "address %s with MTU %d cannot be set", want.CIDR, want.MTU)
		}
		if dhcp && n.system == netconf.Ifupdown {
			return refuse("Set a static address for this VM in the answers.",
				"%s must not get a default route or DNS servers by DHCP, and ifupdown cannot prevent it (interfaces(5))", i.Name)
		}
		if want.Table != 0 && n.system == netconf.Ifcfg {
			return refuse("Give each rail a subnet of its own.",
				"%s shares its subnet with another rail, which needs rules and routes; network-scripts keep them in separate files, which this "+
					"program does not write", i.Name)
		}
		for _, other := range n.interfaces {
			if !dhcp && other.Name != i.Name && overlaps(other.Addresses, p) && (want.Table == 0 || n.management[other.Name] != "") {
				return refuse("Give the RDMA network its own subnet. Otherwise replies leave through the wrong interface.",
					"%s is in the same subnet as %s", want.CIDR, other.Name)
			}
		}
		static.CIDR, static.MTU, static.Table = want.CIDR, want.MTU, want.Table
		t.address, t.mtu, t.table = want.CIDR, want.MTU, want.Table
	}
	p, ok := netconf.For(n.system, n.tools...)
	if !ok {
		return refuse("Configure the address by hand and exclude the guest.",
			"none of the supported tools configures its network (netplan, NetworkManager, network-scripts, systemd-networkd, ifupdown)")
	}
	f, _ := netconf.FileFor(n.system, static)
	t.file = f.Path
	if !to.IsAbsent() {
		f, err := p.Add(n.files, n.links, static)
		if err != nil {
			return refuse(problem(err).Remedy, "%s", problem(err))
		}
		t.file, t.content, t.static = f.Path, f.Content, static
	}
	if i.Config == t.file { // a rule in another file is not this program's
		t.rules = n.rulesBut(i, want.Table)
	}
	t.uuid = netconf.ConnectionUUID(static)
	for _, addr := range i.Addresses {
		if t.address == backends.DHCP && i.DHCP {
			break // it is unknown which of them is the lease that stays
		}
		if p, err := netip.ParsePrefix(addr); err == nil && p.Addr().Is4() && addr != t.address {
			t.stale = append(t.stale, addr)
		}
	}
	return t, nil
}

// rulesBut returns the rules for packets from an interface, except those to a table that stays: "ADDRESS TABLE".
func (n *network) rulesBut(i *backends.Interface, stays ...int) (rules []string) {
	for _, r := range n.rules[i.Name] {
		if !slices.Contains(stays, r.table) {
			rules = append(rules, r.from+" "+strconv.Itoa(r.table))
		}
	}
	return rules
}

func nonce() string {
	b := make([]byte, 4)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func overlaps(addresses []string, with netip.Prefix) bool {
	return slices.ContainsFunc(addresses, func(a string) bool {
		p, err := netip.ParsePrefix(a)
		return err == nil && p.Overlaps(with.Masked())
	})
}

// Keep records the file that Set will write, and the current state of the interface.
func (a address) Keep(ctx context.Context, s backends.Setting, to backends.Value) (backends.Kept, error) {
	a.g.Want(s, to)
	n, i, err := a.find(ctx, s)
	if err != nil {
		return backends.Kept{}, err
	}
	t, err := a.turn(s, n, i, to)
	if err != nil {
		return backends.Kept{}, err
	}
	kept, err := a.g.record(ctx, s.Target.Name, manifest{files: []string{t.file}}, n.item(i.MAC, i))
	if n.shared != nil && n.shared.File == t.file { // without it the stanza of the other file is again what it was
		for k, item := range kept.Items {
			if item.Kind == backends.ItemFile && item.Name == t.file {
				kept.Items[k] = backends.Item{Kind: backends.ItemFile, Name: t.file}
			}
		}
	}
	return kept, err
}

// Observe returns the current state of file and interface.
func (a address) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	_, now, err := a.observe(ctx, s, kept)
	return now, err
}

// observe is Observe, and returns the network, too.
func (a address) observe(ctx context.Context, s backends.Setting, kept backends.Kept) (*network, backends.Kept, error) {
	cmd, err := a.networkCommand(ctx, s.Target.Name)
	if err != nil {
		return nil, backends.Kept{}, err
	}
	r, items, err := a.g.lookBeside(ctx, s.Target.Name, cmd, manifestOf(kept))
	if err != nil {
		return nil, backends.Kept{}, err
	}
	n := sections(r.Stdout).network()
	for _, i := range kept.Items {
		if i.Kind == backends.ItemInterface {
			items = append(items, n.item(i.Name, n.byMAC(i.Name)))
		}
	}
	return &n, backends.Kept{Items: items}, nil
}

// Restore restores the file exactly, applies it, and restores the addresses and MTU of the interface, also under the watchdog.
func (a address) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	vm := s.Target.Name
	at := slices.IndexFunc(kept.Items, func(i backends.Item) bool { return i.Kind == backends.ItemInterface })
	file := slices.IndexFunc(kept.Items, func(i backends.Item) bool { return i.Kind == backends.ItemFile })
	if at < 0 {
		return a.g.putBack(ctx, vm, kept)
	}
	if file < 0 {
		return badKept(vm, errors.New("it names no file"))
	}
	was := kept.Items[at]
	var k interfaceState
	if err := was.State.Decode(&k); err != nil {
		return badKept(vm, err)
	}
	n, now, err := a.observe(ctx, s, kept)
	if err != nil {
		return err
	}
	i := n.byMAC(was.Name)
	if i == nil { // the adapter and its address are gone: only the file is left
		return a.g.putBack(ctx, vm, kept)
	}
	if why := n.management[i.Name]; why != "" {
		return backends.Errorf(backends.KindRefused, label(vm), "", "will not change interface %s: %s", i.Name, why)
	}
	if len(backends.Differences(kept, now)) == 0 {
		return nil
	}
	f := kept.Items[file]
	st := fileState{Mode: uint32(netconf.System(was.Content).Mode()), Owner: "0:0"}
	if !f.State.IsAbsent() && f.State.Decode(&st) != nil { // for example a link, to which nothing was written
		return a.g.putBack(ctx, vm, kept)
	}
	t := turn{nonce: nonce(), system: netconf.System(was.Content), nic: netconf.NIC{Name: i.Name, MAC: i.MAC}, slug: backends.Slug(s.Name),
		file: f.Name, content: string(f.Content), missing: f.State.IsAbsent(), mode: st.Mode, owner: st.Owner, back: k.Addresses, mtu: k.MTU,
		down:  !k.Up,
		rules: n.rulesBut(i, k.Tables...),
		uuid:  netconf.ConnectionUUID(netconf.Static{NIC: netconf.NIC{MAC: was.Name}, PortGroup: s.Name})}
	for _, addr := range i.Addresses {
		if !slices.Contains(k.Addresses, addr) {
			t.stale = append(t.stale, addr)
		}
	}
	if err := a.g.apply(ctx, vm, t, n); err != nil {
		return err
	}
	return a.g.putBack(ctx, vm, kept) // remove what an interrupted write left beside the file
}

// apply runs a turn in the guest, and confirms it over a new connection if every other interface is as in before; else it is undone at
// once.
func (g *Guests) apply(ctx context.Context, vm string, t turn, before *network) error {
	r, err := g.step(ctx, vm, step{what: "configure " + t.nic.Name, keep: true,
		Command: ssh.Command{Script: t.script(g.options.TakeBack, g.options.Settle), Limit: 3*time.Minute + g.options.Settle}})
	if err == nil && r.ExitCode != 0 {
		e := failed(vm, "configure "+t.nic.Name+" with "+string(t.system), r)
		if backends.HintOf(e) == "" {
			e = &backends.Error{Kind: backends.KindOf(e),
				Hint: "The guest has undone the change. Check the error messages of its network configuration.", Err: e, What: "the change was undone"}
		}
		return e
	}
	if err != nil && backends.KindOf(err) != backends.KindUnreachable {
		return err
	}
	// An existing connection that still works proves little: log in again.
	c, cerr := g.conn(ctx, vm)
	if cerr != nil {
		return cerr
	}
	c.Drop()
	if err == nil {
		switch differs, derr := g.settled(ctx, vm, before, t.nic.Name, g.options.Settle); {
		case len(differs) > 0:
			return g.undo(ctx, vm, t, differs)
		case derr != nil: // not compared, so not confirmed: the guest takes it back
			return g.takenBack(ctx, vm, t, false, derr)
		}
	}
	if _, cerr = g.ask(ctx, vm, "confirm the new address",
		ssh.Command{Script: t.confirm(), Limit: max(g.options.TakeBack/2, 5*time.Second)}); cerr == nil {
		return nil
	}
	if err == nil {
		err = cerr
	}
	return g.takenBack(ctx, vm, t, r.ExitCode == 0 && cerr == err, err)
}

// takenBack waits until a guest that could not be reached has reverted the change. If the guest was only slow and completed the
// change, which done reports, it is confirmed when it answers in time. If it was confirmed and only the answer was lost, it stays.
func (g *Guests) takenBack(ctx context.Context, vm string, t turn, done bool, cause error) error {
	wait := backends.Poll{What: "reach it after the change of its address", Target: vm, Limit: 2*g.options.TakeBack + g.options.Settle,
		Every: g.options.Poll}
	err := wait.Until(ctx, func(ctx context.Context) (bool, error) {
		r, err := g.Run(ctx, vm, ssh.Command{What: "look for the watch over the address", Script: t.pending(), Sudo: true,
			Limit: 30 * time.Second})
		if err == nil && strings.TrimSpace(r.Stdout) == "" {
			// otherwise the next step does it
			_, _ = g.Run(ctx, vm, ssh.Command{What: "end the watch over the address", Script: t.end(), Sudo: true, Limit: 30 * time.Second})
			switch r, err := g.Run(ctx, vm, ssh.Command{What: "read whether the address stays", Script: t.stays(), Sudo: true,
				Limit: 30 * time.Second}); {
			case err != nil:
				return false, backends.Errorf(backends.KindUnreachable, label(vm), "Check the address and the guest's routes.",
					"the guest could not be reached after the address of %s was set; whether it undid the change is not known: %w", t.nic.Name, cause)
			case strings.TrimSpace(r.Stdout) != "":
				return true, nil
			}
			return false, backends.Errorf(backends.KindPermanent, label(vm), "Check the address and the guest's routes.",
				"the guest could not be reached after the address of %s was set; it undid the change by itself: %w", t.nic.Name, cause)
		}
		if err == nil && done {
			if r, err := g.Run(ctx, vm, ssh.Command{What: "confirm the new address", Script: t.confirm(), Sudo: true,
				Limit: 30 * time.Second}); err == nil && r.ExitCode == 0 {
				return true, nil
			}
		}
		return false, nil
	})
	if err == backends.ErrLate || ctx.Err() != nil {
		return backends.Errorf(backends.KindUnreachable, label(vm),
			"Check the VM's console. The guest undoes the change by itself; if it does not, remove "+t.file+" and reboot it.",
			"the guest cannot be reached after the address of %s was set: %w", t.nic.Name, cause)
	}
	return err
}
