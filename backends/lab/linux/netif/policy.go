package netif

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// A Rule is a policy routing rule (ip-rule(8)): packets from an address use a table.
type Rule struct {
	Priority int
	From     netip.Prefix // invalid: from all
	Table    int
	Proto    string // "static" for a program that manages networks; "" for ip
}

// A TableRoute is a route in a table other than main.
type TableRoute struct {
	Table int
	To    netip.Prefix
	Dev   string
	Src   netip.Addr // invalid: none
	Proto string
}

// A Conf contains the values of an interface under net.ipv4.conf. The kernel's default is 0 for all (ip-sysctl.rst).
type Conf struct{ Ignore, Announce, Filter int }

// of returns a pointer to a value by its name, or nil if the lab does not support it.
func (c *Conf) of(name string) *int {
	return map[string]*int{"arp_ignore": &c.Ignore, "arp_announce": &c.Announce, "rp_filter": &c.Filter}[name]
}

var (
	errNoRule  = errors.New("no such file or directory")
	errPrefSrc = errors.New("invalid prefsrc address")
	errDown    = errors.New("device for nexthop is not up")
	errNoRoute = errors.New("no such process")
)

// Rules returns the added rules, sorted by priority.
func (s *Stack) Rules() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.rules)
	slices.SortStableFunc(list, func(a, b Rule) int { return cmp.Compare(a.Priority, b.Priority) })
	return list
}

// AddRule adds a rule (ErrExists).
func (s *Stack) AddRule(r Rule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.rules, func(o Rule) bool { return o.From == r.From && o.Table == r.Table && o.Priority == r.Priority }) {
		return ErrExists
	}
	s.rules = append(s.rules, r)
	return nil
}

// DeleteRule removes the first rule that equals r; if r has no priority, any priority matches.
func (s *Stack) DeleteRule(r Rule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.rules, func(o Rule) bool {
		return o.From == r.From && (r.Table == 0 || o.Table == r.Table) && (r.Priority == 0 || o.Priority == r.Priority)
	})
	if i < 0 {
		return errNoRule
	}
	s.rules = slices.Delete(s.rules, i, i+1)
	return nil
}

// TableRoutes returns the routes of all tables except main.
func (s *Stack) TableRoutes() []TableRoute {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.routes)
	slices.SortStableFunc(list, func(a, b TableRoute) int { return cmp.Compare(a.Table, b.Table) })
	return list
}

// AddRoute adds or replaces a route. Like Linux, it rejects a device that is down and a source address that the system does not
// have (fib_check_nh and fib_valid_prefsrc in net/ipv4/fib_semantics.c).
func (s *Stack) AddRoute(r TableRoute, replace bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.links, func(l *Link) bool { return l.Name == r.Dev })
	has := func(l *Link) bool {
		return slices.ContainsFunc(l.Addrs, func(a Addr) bool { return a.Addr() == r.Src })
	}
	switch {
	case i < 0:
		return ErrNoDevice
	case !s.links[i].Up:
		return errDown
	case r.Src.IsValid() && !slices.ContainsFunc(s.links, has):
		return errPrefSrc
	}
	same := func(o TableRoute) bool { return o.Table == r.Table && o.To == r.To }
	if slices.ContainsFunc(s.routes, same) {
		if !replace {
			return ErrExists
		}
		s.routes = slices.DeleteFunc(s.routes, same)
	}
	s.routes, s.tables = append(s.routes, r), append(s.tables, r.Table)
	return nil
}

// hasTable reports whether a table has ever had a route. Empty tables continue to exist.
func (s *Stack) hasTable(table int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return table >= 253 && table <= 255 || slices.Contains(s.tables, table)
}

// DeleteRoutes removes the route to a network from a table, or all routes if to is invalid.
func (s *Stack) DeleteRoutes(table int, to netip.Prefix) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.routes)
	s.routes = slices.DeleteFunc(s.routes, func(r TableRoute) bool { return r.Table == table && (!to.IsValid() || r.To == to) })
	if to.IsValid() && len(s.routes) == before {
		return errNoRoute
	}
	return nil
}

// prune removes the routes that Linux removes when a link goes down or an address is deleted (fib_sync_down_dev and
// fib_sync_down_addr). The caller must hold the lock.
func (s *Stack) prune() {
	s.routes = slices.DeleteFunc(s.routes, func(r TableRoute) bool {
		i := slices.IndexFunc(s.links, func(l *Link) bool { return l.Name == r.Dev && l.Up })
		has := func(l *Link) bool {
			return slices.ContainsFunc(l.Addrs, func(a Addr) bool { return a.Addr() == r.Src })
		}
		return i < 0 || r.Src.IsValid() && !slices.ContainsFunc(s.links, has)
	})
}

// policies are the rules and routes in the configuration of one interface.
type policies struct {
	rules  []Rule
	routes []TableRoute
}

// follow replaces the rules and routes of the previous configuration of an interface with those of want.
func (c *Config) follow(link string, want policies) {
	c.mu.Lock()
	old := c.policies[link]
	if c.policies == nil {
		c.policies = map[string]policies{}
	}
	c.policies[link] = want
	c.mu.Unlock()
	for _, r := range old.rules {
		_ = c.Stack.DeleteRule(r) // not an error if it was already deleted
	}
	for _, r := range old.routes {
		_ = c.Stack.DeleteRoutes(r.Table, r.To)
	}
	for _, r := range want.rules {
		_ = c.Stack.AddRule(r) // an existing rule is not an error
	}
	for _, r := range want.routes {
		r.Dev = link
		_ = c.Stack.AddRoute(r, true) // networkd logs routes that the kernel rejects
	}
}

// carrier is called when an interface gets a link. The program that manages the interface then configures it again
// (systemd.network(5), IgnoreCarrierLoss=).
func (c *Config) carrier(link string) {
	c.mu.Lock()
	p := c.policies[link]
	c.mu.Unlock()
	for _, r := range p.routes {
		r.Dev = link
		_ = c.Stack.AddRoute(r, true) // networkd logs routes that the kernel rejects
	}
}

// RouteFrom returns the outgoing interface for a packet from src to ip: according to the rules for src, otherwise like Route.
func (s *Stack) RouteFrom(src, ip netip.Addr) (Link, Addr, bool) {
	routes := s.TableRoutes()
	for _, r := range s.Rules() {
		if r.From.IsValid() && !r.From.Contains(src) {
			continue
		}
		for _, to := range routes {
			if l, ok := s.Link(to.Dev); ok && to.Table == r.Table && to.To.Contains(ip) {
				return l, Addr{Prefix: netip.PrefixFrom(src, to.To.Bits())}, true
			}
		}
	}
	return s.Route(ip)
}

// Conf returns the content of /proc/sys/net/ipv4/conf.
func (s *Stack) Conf() vfs.Tree {
	t := vfs.Tree{}
	for _, l := range append(s.Links(), Link{Name: "all"}, Link{Name: "default"}, Link{Name: "lo"}) {
		t[l.Name] = vfs.Entry{Sub: func() vfs.Tree {
			files := vfs.Tree{"forwarding": {Data: "0\n", Mode: 0o644}}
			for _, name := range []string{"arp_ignore", "arp_announce", "rp_filter"} {
				files[name] = vfs.Entry{Mode: 0o644, Data: strconv.Itoa(*l.Conf.of(name)) + "\n", Set: func(text string) error {
					number, err := strconv.Atoi(strings.TrimSpace(text))
					if err != nil {
						return syscall.EINVAL
					}
					return s.change(l.Name, func(l *Link) error {
						*l.Conf.of(name) = number
						return nil
					})
				}}
			}
			return files
		}}
	}
	return t
}

// Sysctls returns the values that files of sysctl.d(5) set for a new interface: systemd's udev rules apply them by the name of
// the interface. The last file has precedence. In a key whose first separator is a slash, dots are not separators.
func Sysctls(fs *vfs.FS, name string) (conf Conf) {
	list, err := fs.ReadDir(vfs.Root(), "/etc/sysctl.d")
	if err != nil {
		return conf
	}
	for _, i := range list {
		data, err := fs.ReadFile(vfs.Root(), "/etc/sysctl.d/"+i.Name())
		if err != nil || !strings.HasSuffix(i.Name(), ".conf") {
			continue
		}
		for line := range strings.Lines(string(data)) {
			key, value, ok := strings.Cut(line, "=")
			key = strings.TrimPrefix(strings.TrimSpace(key), "-")
			if dot := strings.IndexAny(key, "./"); dot >= 0 && key[dot] == '.' {
				key = strings.NewReplacer(".", "/", "/", ".").Replace(key)
			}
			word, mine := strings.CutPrefix(key, "net/ipv4/conf/"+name+"/")
			if number, err := strconv.Atoi(strings.TrimSpace(value)); ok && mine && err == nil && conf.of(word) != nil {
				*conf.of(word) = number
			}
		}
	}
	return conf
}
