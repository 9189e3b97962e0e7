package containers_test

import (
	"net/netip"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/rdma-setup/rdma-setup/wizard/generate/containers"
)

var network = netip.MustParsePrefix("172.30.0.0/16")

func hosts(t *testing.T) []containers.Host {
	t.Helper()
	out, err := containers.Spread(network, []containers.Host{
		{Name: "vm-01", Address: netip.MustParseAddr("10.0.0.11")}, {Name: "vm-02", Address: netip.MustParseAddr("10.0.0.12")},
		{Name: "vm-03", Address: netip.MustParseAddr("10.0.0.13")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7
// (NVIDIA/Mellanox), container routes: every host has another docker0 network.
func TestEveryHostHasItsOwnNetwork(t *testing.T) {
	many := make([]containers.Host, 255)
	for i := range many {
		many[i] = containers.Host{Name: "h" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + string(rune('a'+i/26)),
			Address: netip.AddrFrom4([4]byte{10, 1, byte(i), 1})}
	}
	out, err := containers.Spread(network, many)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range out {
		if h.Containers.Bits() != 24 || !network.Contains(h.Containers.Addr()) || h.Bridge().Addr() == h.Containers.Addr() ||
			!h.Containers.Contains(h.Bridge().Addr()) {
			t.Fatalf("%+v", h)
		}
		for _, other := range out[:i] {
			if other.Containers.Overlaps(h.Containers) {
				t.Fatalf("%s and %s have %s and %s", other.Name, h.Name, other.Containers, h.Containers)
			}
		}
		if _, _, err := (containers.Daemon{Bridge: h.Bridge(), Range: h.Containers}).Merge(nil); err != nil {
			t.Fatal(err)
		}
	}
	if out[0].Bridge().String() != "172.30.1.1/24" || out[254].Containers.String() != "172.30.255.0/24" {
		t.Errorf("%s, %s", out[0].Bridge(), out[254].Containers)
	}
}

func TestSpreadRefuses(t *testing.T) {
	one := func(name, addr string) []containers.Host {
		a, _ := netip.ParseAddr(addr)
		return []containers.Host{{Name: name, Address: a}}
	}
	for name, tt := range map[string]struct {
		all   string
		hosts []containers.Host
	}{
		"no room":                           {"172.30.0.0/23", append(one("a", "10.0.0.1"), one("b", "10.0.0.2")...)},
		"a network of one host":             {"172.30.0.0/24", one("a", "10.0.0.1")},
		"IPv6":                              {"fd00::/48", one("a", "10.0.0.1")},
		"not the network's address":         {"172.30.1.0/16", one("a", "10.0.0.1")},
		"a host inside":                     {"10.0.0.0/16", one("a", "10.0.0.1")},
		"a host without address":            {"172.30.0.0/16", one("a", "")},
		"a host twice":                      {"172.30.0.0/16", append(one("a", "10.0.0.1"), one("a", "10.0.0.2")...)},
		"an address twice":                  {"172.30.0.0/16", append(one("a", "10.0.0.1"), one("b", "10.0.0.1")...)},
		"a host that is a unit's next line": {"172.30.0.0/16", one("a\nExecStart=/bin/id", "10.0.0.1")},
	} {
		p, _ := netip.ParsePrefix(tt.all)
		if out, err := containers.Spread(p, tt.hosts); err == nil {
			t.Errorf("%s gives %v", name, out)
		}
	}
}

// unit parses a unit as systemd does: sections, keys that may repeat, no continued lines.
func unit(t *testing.T, text string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case line == "" || line[0] == '#':
			continue
		case line[0] == '[':
			section = line
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" || strings.HasSuffix(line, `\`) || strings.ContainsAny(value, "%$") {
			t.Fatalf("systemd would not take %q as it is", line)
		}
		out[section+key] = append(out[section+key], value)
	}
	return out
}

func TestRoutes(t *testing.T) {
	for _, forward := range []containers.Forward{containers.ForwardContainers, containers.ForwardAll, containers.ForwardLeave} {
		text, err := containers.Routes("vm-02", network, hosts(t), forward, origin)
		if err != nil {
			t.Fatal(err)
		}
		u := unit(t, text)
		start, stop := strings.Join(u["[Service]ExecStart"], "\n"), strings.Join(u["[Service]ExecStop"], "\n")
		for _, want := range []string{"ip route replace 172.30.1.0/24 via 10.0.0.11", "ip route replace 172.30.3.0/24 via 10.0.0.13",
			"net.ipv4.ip_forward=1"} {
			if !strings.Contains(start, want) {
				t.Errorf("%s: no %q in\n%s", forward, want, start)
			}
		}
		if strings.Contains(start, "172.30.2.0/24") {
			t.Errorf("%s: a route to itself:\n%s", forward, start)
		}
		if !strings.Contains(stop, "ip route del 172.30.1.0/24") {
			t.Errorf("%s: stopping leaves the routes:\n%s", forward, stop)
		}
		for rule, is := range map[string]bool{
			" DOCKER-USER -s 172.30.0.0/16 -d 172.30.0.0/16 -j ACCEPT": forward == containers.ForwardContainers,
			" POSTROUTING -s 172.30.0.0/16 -d 172.30.0.0/16 -j ACCEPT": forward == containers.ForwardContainers,
			"-P FORWARD": forward == containers.ForwardAll,
		} {
			if strings.Contains(start, rule) != is || strings.Contains(stop, rule) != is {
				t.Errorf("%s: %q in\n%s\n%s", forward, rule, start, stop)
			}
		}
		for _, line := range u["[Service]ExecStart"] {
			if script, is := strings.CutPrefix(line, "/bin/sh -c '"); is {
				if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(strings.TrimSuffix(script, "'")),
					""); err != nil {
					t.Error(err)
				}
			} else if !strings.HasPrefix(line, "/") {
				t.Errorf("%q is no path", line)
			}
		}
	}
	if _, err := containers.Routes("vm-09", network, hosts(t), containers.ForwardLeave, origin); err == nil {
		t.Error("a host that is none of them has routes")
	}
	if _, err := containers.Routes("vm-01", network, hosts(t), "open", origin); err == nil {
		t.Error("forward open is taken")
	}
}
