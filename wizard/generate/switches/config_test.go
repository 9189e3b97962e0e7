package switches_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
	"github.com/rdma-setup/rdma-setup/wizard/generate/switches"
)

var made = generate.Origin{Tool: "rdma-setup 1.0", What: "generate switch", From: []string{"answers.yaml", "LLDP"},
	Made: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}

// ports as LLDP reports them, two of each system.
var ports = map[switches.OS][]string{
	switches.Onyx: {"Eth1/7", "Eth1/11"}, switches.Cumulus: {"swp7", "swp11s1"},
	switches.OS10: {"ethernet1/1/7", "ethernet1/1/11:2"}, switches.EOS: {"Ethernet7/1", "Ethernet11/1"},
}

func wish(t *testing.T, os switches.OS) switches.Wish {
	t.Helper()
	w := switches.Wish{OS: os, Switch: "leaf-01", VLAN: 50, PFC: true, Priority: 3, DSCP: 26, ECN: true, ECNMin: 150, ECNMax: 1500}
	for i, p := range ports[os] {
		name, err := switches.Name(os, p)
		testclass.OK(t, err)
		w.Ports = append(w.Ports, switches.Port{Name: name, Peer: []string{"esx-01 vmnic2", "esx-02 vmnic2"}[i]})
	}
	return w
}

// commands are the lines that a switch would execute.
func commands(text, mark string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, mark) {
			out = append(out, line)
		}
	}
	return out
}

var marks = map[switches.OS]string{switches.Onyx: "##", switches.Cumulus: "#", switches.OS10: "!", switches.EOS: "!"}

func TestConfig(t *testing.T) {
	for os := range marks {
		t.Run(string(os), func(t *testing.T) {
			text, missing, err := switches.Config(wish(t, os), made)
			if err != nil || len(missing) != 0 {
				t.Fatal(missing, err)
			}
			testclass.Golden(t, "testdata/"+string(os)+".txt", text)
			if again, _, _ := switches.Config(wish(t, os), made); again != text {
				t.Error("the same wish gives another text")
			}
		})
	}
}

// The output contains the lines of the guide for Onyx (Reference Deployment Guide for RoCE accelerated HPC or ML applications with
// GPUDirect RDMA on vSphere 6.7, NVIDIA/Mellanox, network switch configuration), except its host name and licence.
func TestOnyxHasTheLinesOfTheGuide(t *testing.T) {
	text, _, err := switches.Config(wish(t, switches.Onyx), made)
	testclass.OK(t, err)
	for _, line := range []string{
		"no cli default prefix-modes enable", "traffic pool roce type lossless", "traffic pool roce memory percent 50.00",
		"traffic pool roce map switch-priority 3", "lldp", "interface ethernet 1/7 qos trust L3",
		"interface ethernet 1/11 traffic-class 3 congestion-control ecn minimum-absolute 150 maximum-absolute 1500",
		"interface ethernet 1/7 traffic-class 6 dcb ets strict", "interface ethernet 1/7 mtu 9216 force", "cli default prefix-modes enable",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	for _, never := range []string{"license", "hostname"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is the author's own", never)
		}
	}
}

// Every requested setting changes the commands; settings that were not requested are not in them.
func TestRequestedSettingsChangeTheCommands(t *testing.T) {
	for os, mark := range marks {
		for _, tt := range []struct {
			name      string
			change    func(*switches.Wish)
			want, not string // words of any system
		}{
			{"no PFC", func(w *switches.Wish) { w.PFC = false }, "", "no-drop|pfc-cos|type lossless|mode lossless|pfc-watchdog|pfc-wd|dcbx"},
			{"no ECN", func(w *switches.Wish) { w.ECN = false }, "", "congestion-control ecn|random-detect|ecn enable"},
			{"no VLAN", func(w *switches.Wish) { w.VLAN = 0 }, "", "vlan"},
			{"thresholds", func(w *switches.Wish) { w.ECNMin, w.ECNMax = 200, 2100 }, "200", "1500"},
			{"priority 4", func(w *switches.Wish) { w.Priority, w.DSCP = 4, 34 }, "4",
				"priority 3 no-drop|pfc-cos 3|switch-priority 3 traffic-class 3|map switch-priority 3"},
		} {
			t.Run(string(os)+"/"+tt.name, func(t *testing.T) {
				w := wish(t, os)
				tt.change(&w)
				text, _, err := switches.Config(w, made)
				testclass.OK(t, err)
				got := strings.Join(commands(text, mark), "\n")
				for word := range strings.SplitSeq(tt.not, "|") {
					if strings.Contains(got, word) {
						t.Errorf("%q in\n%s", word, got)
					}
				}
				if !strings.Contains(got, tt.want) {
					t.Errorf("no %q in\n%s", tt.want, got)
				}
			})
		}
	}
}

// Without ports no command can be pasted, and the text says what is missing.
func TestWithoutPortsNothingRuns(t *testing.T) {
	for os, mark := range marks {
		w := wish(t, os)
		w.Ports = nil
		text, missing, err := switches.Config(w, made)
		if err != nil || len(missing) == 0 {
			t.Fatal(missing, err)
		}
		if left := commands(text, mark); len(left) > 0 {
			t.Errorf("%s: a paste would run %q", os, left)
		}
		if !strings.Contains(text, "NOT COMPLETE") || !strings.Contains(text, "PORT") {
			t.Errorf("%s: it does not say what to fill in:\n%s", os, text)
		}
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		os       switches.OS
		in, want string // "": refused
	}{
		{switches.Onyx, "Eth1/7", "1/7"}, {switches.Onyx, "1/7/2", "1/7/2"}, {switches.Onyx, "ethernet 1/32", "1/32"},
		{switches.Onyx, "swp7", ""},
		{switches.Cumulus, "swp1", "swp1"}, {switches.Cumulus, "swp1s3", "swp1s3"}, {switches.Cumulus, "eth0", ""},
		{switches.Cumulus, "swp1;reboot", ""},
		{switches.OS10, "ethernet1/1/7", "ethernet1/1/7"}, {switches.OS10, "Eth 1/1/7:3", "ethernet1/1/7:3"}, {switches.OS10, "1/1/7", ""},
		{switches.EOS, "Et7", "Ethernet7"}, {switches.EOS, "Ethernet7/1", "Ethernet7/1"}, {switches.EOS, "Ethernet", ""},
		{switches.EOS, "Ethernet7\nreload now", ""}, {switches.Onyx, "1/1 shutdown", ""}, {switches.OS10, "", ""}, {"junos", "ge-0/0/0", ""},
	} {
		got, err := switches.Name(tt.os, tt.in)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s %q: %q %v, want %q", tt.os, tt.in, got, err, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*switches.Wish){
		"an unknown system":                 func(w *switches.Wish) { w.OS = "junos" },
		"VLAN 4095":                         func(w *switches.Wish) { w.VLAN = 4095 },
		"priority of CNP":                   func(w *switches.Wish) { w.Priority = 6 },
		"priority of everything else":       func(w *switches.Wish) { w.Priority = 0 },
		"DSCP of CNP":                       func(w *switches.Wish) { w.DSCP = 48 },
		"thresholds the wrong way":          func(w *switches.Wish) { w.ECNMin = 2000 },
		"a port twice":                      func(w *switches.Wish) { w.Ports = append(w.Ports, w.Ports[0]) },
		"a port that is a command":          func(w *switches.Wish) { w.Ports[0].Name = "1/1\nreload" },
		"another DSCP's class on Onyx":      func(w *switches.Wish) { w.DSCP = 34 },
		"EOS: the queue of everything else": func(w *switches.Wish) { w.OS, w.Ports, w.Priority = switches.EOS, nil, 1 },
		"a queue of no kind":                func(w *switches.Wish) { w.Queue = "q" },
	} {
		w := wish(t, switches.Onyx)
		change(&w)
		if text, _, err := switches.Config(w, made); err == nil || text != "" {
			t.Errorf("%s is taken", name)
		}
	}
}

// Names come from switches and hosts that nobody has verified: they stay inside comments.
func TestHostileNamesStayInComments(t *testing.T) {
	for os, mark := range marks {
		w := wish(t, os)
		want, _, err := switches.Config(w, made)
		testclass.OK(t, err)
		evil := "x\nreload now\r\n$(reboot) `reboot` \\\n? \x1b[2J é \u202e"
		w.Switch, w.Ports[0].Peer = evil, evil
		o := made
		o.From = []string{evil}
		text, _, err := switches.Config(w, o)
		testclass.OK(t, err)
		if d := cmp.Diff(commands(want, mark), commands(text, mark)); d != "" {
			t.Errorf("%s: other commands:\n%s", os, d)
		}
		for _, r := range text {
			if r != '\n' && (r < ' ' || r > '~') || r == '?' {
				t.Fatalf("%s: %q on a console", os, r)
			}
		}
	}
}

func TestCumulusIsAShellScript(t *testing.T) {
	text, _, err := switches.Config(wish(t, switches.Cumulus), made)
	testclass.OK(t, err)
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "nv")
	testclass.OK(t, err)
	for _, s := range f.Stmts {
		call, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || call.Args[0].Lit() != "nv" {
			t.Errorf("line %d is no nv command", s.Pos().Line())
		}
	}
}

// Every block names the source of its lines, and every number is in the list of sources.
func TestEveryBlockIsCited(t *testing.T) {
	for os, mark := range marks {
		text, _, err := switches.Config(wish(t, os), made)
		testclass.OK(t, err)
		body, sources, ok := strings.Cut(text, mark+"\n"+mark+" Sources:\n")
		if !ok || strings.Count(sources, "\n") < 3 {
			t.Fatalf("%s: sources %q", os, sources)
		}
		for _, block := range strings.Split(body, "\n"+mark+"\n")[1:] {
			why, _, _ := strings.Cut(block, "\n")
			cited := numbers.FindAllString(why, -1)
			if len(cited) == 0 {
				t.Errorf("%s: %q cites nothing", os, why)
			}
			for _, n := range cited {
				if !strings.Contains(sources, mark+" "+n+" ") {
					t.Errorf("%s: %s of %q is no source", os, n, why)
				}
			}
		}
	}
}

var numbers = regexp.MustCompile(`\[[0-9]+\]`)
