//go:build e2e

package guest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/guest/realtest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// The real programs of Debian 12 and 13 decide as the resolver says, before and after our file is added; so the other interfaces are as
// they were, and ours has its address. The long suite tries all layouts.
func TestE2ELayouts(t *testing.T) {
	for i, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			var states []layoutState
			for j, l := range layouts(t) {
				if l.system != netconf.Ifcfg && (testclass.All || j%14 == 7*i) && !strings.Contains(l.name, "ifcfg") {
					states = append(states, statesOf(t, l)...)
				}
			}
			main := []string{". /turn/lib.sh\n. /turn/layouts.sh"}
			for _, s := range states {
				main = append(main, s.script())
			}
			functions, err := networkSources.ReadFile("testdata/network/layouts.sh")
			testclass.OK(t, err)
			out := inNetwork(t, suiteRoot(t, suite), map[string]string{"layouts.sh": string(functions), "try": script("netplan-try.sh"),
				"main": strings.Join(append(main, "fresh\necho @end\n"), "\n")})
			for k, part := range strings.Split(out, "@layout\n")[1:] {
				s := states[k]
				t.Run(s.layout.name+"/"+s.when, func(t *testing.T) { s.judge(t, realOf(part)) })
			}
		})
	}
}

func suiteRoot(t *testing.T, suite string) string {
	sources, err := fs.Sub(networkSources, "testdata/network/debian")
	testclass.OK(t, err)
	kind := "network"
	if suite != "bookworm" {
		kind += "-" + suite
	}
	return realtest.Kept(t, kind, sources, func(dir string) {
		if out, err := realtest.AsRoot(t.Context(), "env", "NETWORK_SUITE="+suite, "testdata/network/debian/root.sh", dir); err != nil {
			t.Fatalf("is a Debian mirror within reach? %v\n%s", err, out)
		}
	})
}

// A layoutState is a layout before or after our file is added, and what the resolver says about it.
type layoutState struct {
	layout  layout
	when    string
	files   []netconf.File
	says    []netconf.Effective
	invalid *netconf.Refusal
	added   netconf.File
}

func statesOf(t *testing.T, l layout) []layoutState {
	p, _ := netconf.For(l.system)
	f, refused := p.Add(l.files, l.links, planned)
	own, _ := netconf.FileFor(l.system, planned)
	before := layoutState{layout: l, when: "before",
		files: slices.DeleteFunc(slices.Clone(l.files), func(o netconf.File) bool { return o.Path == own.Path })}
	var err error
	if before.says, err = p.Effective(before.files, l.links); err != nil {
		errors.As(err, &before.invalid)
	}
	if refused != nil {
		return []layoutState{before}
	}
	after := layoutState{layout: l, when: "after", files: append(slices.Clone(before.files), f), added: f}
	if after.says, err = p.Effective(after.files, l.links); err != nil {
		t.Fatal(err)
	}
	return []layoutState{before, after}
}

func (s layoutState) script() string {
	var b strings.Builder
	var links, cards []string
	b.WriteString("echo @layout\nfresh\n")
	for _, l := range s.layout.links {
		links = append(links, l.Name)
		if l.Device {
			cards = append(cards, l.Name)
			fmt.Fprintf(&b, "wired %s %s\n", l.Name, l.MAC)
		}
	}
	fmt.Fprintf(&b, "links='%s' cards='%s'\n", strings.Join(links, " "), strings.Join(cards, " "))
	for _, f := range s.files {
		if f.Content == "" {
			fmt.Fprintf(&b, "mask %s\n", ssh.Quote(f.Path))
			continue
		}
		mode := 0o644
		if strings.Contains(f.Path, "/netplan/") || strings.Contains(f.Path, "/system-connections/") {
			mode = 0o600
		}
		fmt.Fprintf(&b, "base64 -d <<'E' | put %s %04o\n%s\nE\n", ssh.Quote(f.Path), mode, base64.StdEncoding.EncodeToString([]byte(f.Content)))
	}
	b.WriteString(map[netconf.System]string{netconf.Netplan: "netplanned", netconf.NetworkManager: "manager", netconf.Networkd: "networkd",
		netconf.Ifupdown: "interfaces"}[s.layout.system])
	return b.String()
}

// A real is what the programs did.
type real struct {
	text      string
	exit      string
	generated []netconf.File
	facts     map[string][]string // by "decides ens192" and so on
}

func realOf(text string) real {
	r := real{text: text, facts: map[string][]string{}}
	for line := range strings.SplitSeq(text, "\n") {
		w := strings.SplitN(line, " ", 3)
		switch {
		case w[0] == "exit":
			r.exit = w[1]
		case w[0] == "generated" && len(w) == 3:
			content, _ := base64.StdEncoding.DecodeString(w[2])
			r.generated = append(r.generated, netconf.File{Path: w[1], Content: string(content)})
		case len(w) >= 2:
			key := w[0] + " " + w[1]
			r.facts[key] = append(r.facts[key], strings.Join(w[2:], ""))
		}
	}
	return r
}

func (s layoutState) judge(t *testing.T, r real) {
	if s.invalid != nil {
		place := s.invalid.File
		if s.invalid.Line > 0 {
			place += fmt.Sprint(":", s.invalid.Line, ":")
		}
		if r.exit == "0" || !strings.Contains(r.text, place) {
			t.Errorf("%s is not said to be invalid:\n%s", place, r.text)
		}
		return
	}
	if r.exit != "" && r.exit != "0" {
		t.Fatalf("exit %s\n%s", r.exit, r.text)
	}
	if s.layout.system == netconf.Netplan {
		is, err := netconf.Generated(s.files, r.generated, s.layout.links)
		if err != nil || !reflect.DeepEqual(is, s.says) {
			t.Errorf("%v: netplan generates what means\n%+v\nnot\n%+v\n%s", err, is, s.says, r.text)
		}
	}
	for i, l := range s.layout.links {
		s.link(t, r, l, s.says[i])
	}
	if t.Failed() {
		t.Log(r.text)
	}
}

// generatedFile is a file of netplan's.
var generatedFile = regexp.MustCompile(`^/run/.*/(?:10-)?netplan-(.*)\.(?:network|nmconnection)$`)

func (s layoutState) link(t *testing.T, r real, l netconf.Link, says netconf.Effective) {
	if s.layout.system == netconf.Ifupdown {
		s.interfaces(t, r, l, says)
		return
	}
	_, unmanaged := r.facts["unmanaged "+l.Name]
	decides := strings.Join(r.facts["decides "+l.Name], "")
	if !l.Device && r.facts["mtu "+l.Name] == nil {
		return // a kind of interface that this kernel does not have
	}
	want := says.File
	if m := generatedFile.FindStringSubmatch(decides); m != nil {
		decides, _ = url.PathUnescape(m[1])
		want = says.ID
	}
	switch {
	case says.Unmanaged:
		if !unmanaged {
			t.Errorf("%s is managed by %s", l.Name, decides)
		}
		return
	case decides == "" && r.elsewhere(says.File, says.ID):
		return // a profile of NetworkManager is for one interface at a time (nm-settings(5), multi-connect)
	case decides != want && says.Master == "":
		t.Errorf("%s decides for %s, not %s", decides, l.Name, want)
	}
	addresses := slices.Sorted(slices.Values(r.facts["address "+l.Name]))
	if static := slices.Sorted(slices.Values(says.Addresses)); says.Master == "" && !slices.Equal(slices.Compact(addresses), static) {
		t.Errorf("%s has %v, not %v", l.Name, addresses, static)
	}
	if says.MTU > 0 && !slices.Contains(r.facts["mtu "+l.Name], fmt.Sprint(says.MTU)) {
		t.Errorf("%s has MTU %v, not %d", l.Name, r.facts["mtu "+l.Name], says.MTU)
	}
	if names := r.facts["linkfile "+l.Name]; l.Device && len(names) > 0 {
		name := names[0]
		if path.Base(name) == "99-default.link" {
			name = ""
		}
		if (name == "") != (says.LinkFile == "") {
			t.Errorf("%q names %s, not %q", name, l.Name, says.LinkFile)
		}
	}
}

// elsewhere reports whether a profile is in use.
func (r real) elsewhere(file, id string) bool {
	for key, files := range r.facts {
		for _, f := range files {
			if strings.HasPrefix(key, "decides ") && strings.Contains(f, "/system-connections/") &&
				(f == file || strings.HasSuffix(f, "/netplan-"+id+".nmconnection")) {
				return true
			}
		}
	}
	return false
}

// interfaces compares with what ifup would do: "configuring interface ens192=ens192 (inet)", then its commands.
func (s layoutState) interfaces(t *testing.T, r real, l netconf.Link, says netconf.Effective) {
	does, logical := "", ""
	seen := map[string]bool{} // a VLAN starts its parent, which is not up where nothing acts
	for _, part := range strings.Split(r.text, "configuring interface ")[1:] {
		head, commands, _ := strings.Cut(part, "\n")
		if name, rest, _ := strings.Cut(head, "="); name == l.Name && !seen[head] {
			seen[head] = true
			logical, _, _ = strings.Cut(rest, " ")
			does += commands
		}
	}
	dhcp := regexp.MustCompile(`dhclient|dhcpcd|udhcpc|No DHCP client`).MatchString(does)
	if logical != says.ID || dhcp != (says.DHCP4 || says.DHCP6) {
		t.Errorf("%s becomes %q, with DHCP %v, not %+v", l.Name, logical, dhcp, says)
	}
	for _, a := range says.Addresses {
		if a, _, _ = strings.Cut(a, "/"); !strings.Contains(does, " "+a+"/") {
			t.Errorf("%s does not get %s: %s", l.Name, a, does)
		}
	}
	if n := strings.Count(does, " addr add "); n != len(says.Addresses) {
		t.Errorf("%s gets %d addresses, not %v: %s", l.Name, n, says.Addresses, does)
	}
}
