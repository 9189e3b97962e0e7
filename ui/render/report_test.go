package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

func base() *report.Report {
	return &report.Report{Run: "20260314-092653-pvrdma-abcd", Mode: "pvrdma", Made: time.Date(2026, 3, 14, 9, 31, 7, 0, time.UTC),
		Tool:    "1.0.0",
		VCenter: "https://vcenter.example/sdk", Status: "done"}
}

func outcome(host, name, state, err string) report.Outcome {
	return report.Outcome{State: state, Err: err, Change: plan.Change{
		Setting: backends.Setting{Target: backends.HostRef(host), Kind: backends.KindFirewall, Name: name}, From: backends.ValueOf(false),
		To: backends.ValueOf(true)}}
}

// both returns bandwidth and latency from one guest to another; the hosts have the guests' numbers.
func both(from, to int, gbps, us float64) []perftest.Measurement {
	m := perftest.Measurement{From: fmt.Sprintf("vm-%02d", from), To: fmt.Sprintf("vm-%02d", to), FromHost: fmt.Sprintf("esx-%02d", from),
		ToHost: fmt.Sprintf("esx-%02d", to)}
	bw, lat := m, m
	bw.Test, bw.AchievedGbps, bw.ExpectedGbps, bw.Verdict = perftest.SendBandwidth, gbps, 98, perftest.VerdictPass
	bw.Rows = []perftest.Row{{Bytes: 65536, AvgGbps: gbps}}
	lat.Test, lat.AchievedUs, lat.ExpectedUs, lat.Verdict = perftest.SendLatency, us, 8, perftest.VerdictPass
	return []perftest.Measurement{bw, lat}
}

func finding(id, host string, s checks.Status, evidence, remedy string) checks.Finding {
	return checks.Finding{ID: id, Target: backends.HostRef(host), Status: s, Evidence: evidence, Remedy: remedy}
}

func well() *report.Report {
	r := base()
	r.Changes = []report.Outcome{outcome("esx-01", "pvrdma", "done", ""), outcome("esx-02", "pvrdma", "skipped", "")}
	r.Checks = []checks.Finding{finding("CL-VER-002", "Cluster-01", checks.Pass, "all hosts have 8.0.3", ""),
		finding("HOST-FW-PVRDMA-007", "esx-01", checks.Pass, "ruleset pvrdma is on", "")}
	r.Measurements = append(both(1, 2, 96.1, 2.1), both(2, 1, 97.3, 2.04)...)
	r.Notes = []string{"PVRDMA keeps vMotion and snapshots"}
	return r
}

func fallback() *report.Report {
	r := well()
	for i := range r.Measurements[2:] {
		m := &r.Measurements[2+i]
		m.Verdict = perftest.VerdictFail
		m.Hint = "TCP fallback: the RDMA counters of esx-02 did not change during the test; check the uplink, the firewall ruleset pvrdma and " +
			"Net.PVRDMAVmknic on both hosts"
	}
	r.Measurements[2].AchievedGbps, r.Measurements[2].Why = 21.4, "100G less the headers of RoCE v2 at an IB MTU of 4096"
	r.Measurements[3].AchievedUs = 31.5
	r.Checks = append(r.Checks, finding("HOST-FW-PVRDMA-007", "esx-02", checks.Fail, "ruleset pvrdma is off",
		"Enable the firewall ruleset pvrdma."))
	return r
}

func partial() *report.Report {
	r := base()
	r.Status = "partial"
	r.Changes = []report.Outcome{outcome("esx-01", "pvrdma", "done", ""),
		outcome("esx-02", "pvrdma", "failed",
			"esx-02: the firewall ruleset pvrdma could not be enabled: permission denied (Host.Config.NetService)")}
	r.Changes[1].Hint = "grant Host.Config.NetService to the account"
	r.Failures = []report.Failure{{Target: backends.VMRef("vm-10"), Step: "power on", Err: "vm-10: no host is compatible"},
		{Target: backends.VMRef("vm-9"), Step: "power on", Err: "vm-9: no host is compatible"}}
	r.LeftBehind = &report.LeftBehind{VMsOff: []string{"vm-10", "vm-9"}, Maintenance: []string{"esx-02"},
		HalfDone: []string{"guest/vm-9 packages"}, Continue: "rdma-setup resume " + r.Run}
	r.Checks = append(r.Checks, finding("HOST-FW-PVRDMA-007", "esx-02", checks.Fail, "ruleset pvrdma is off",
		"Enable the firewall ruleset pvrdma."))
	for i := 3; i < 9; i++ {
		r.Changes = append(r.Changes, outcome(fmt.Sprintf("esx-%02d", i), "pvrdma", "blocked", ""))
	}
	for i, e := range []string{"8.0.2", "8.0.2", "8.0.1", "7.0.3", "8.0.0", "7.0.2", "6.7.0"} {
		r.Checks = append(r.Checks, finding("CL-VER-002", fmt.Sprintf("esx-%02d", i+2), checks.Warn, "ESXi "+e+", most have 8.0.3",
			"Install the same ESXi build on all hosts."))
	}
	r.Checks = append(r.Checks, finding("HOST-NUMA-004", "esx-01", checks.Unknown, "the NUMA node could not be read: no shell", ""))
	return r
}

func nothing() *report.Report {
	r := well()
	r.Run, r.Status, r.Changes, r.Measurements, r.Notes = "", "", nil, nil, nil
	return r
}

func ring() *report.Report {
	r := base()
	for i := 1; i <= 20; i++ {
		r.Measurements = append(r.Measurements, both(i, i%20+1, 94+float64(i)/8, 2+float64(i)/100)...)
	}
	slow := &r.Measurements[12]
	slow.AchievedGbps, slow.Verdict, slow.Hint = 83, perftest.VerdictWarn,
		"about 92 % is typical of an active MTU of 1024: raise the Ethernet MTU on every hop"
	r.Measurements[16].AchievedGbps, r.Measurements[16].Verdict = 0, perftest.VerdictUnknown
	r.Measurements[16].Error = "guest vm-09: the connection broke while ib_send_bw was running"
	for i := range r.Measurements[20:22] {
		m := &r.Measurements[20+i]
		m.ToHost, m.Verdict, m.Why = m.FromHost, perftest.VerdictNotApplicable, "both on one host: this is memory, not the fabric"
	}
	return r
}

// mesh returns measurements of seven machines: the fourth is slow with all others, and one pair was not measured.
func mesh() *report.Report {
	r := base()
	for i := 1; i <= 7; i++ {
		for j := i + 1; j <= 7; j++ {
			two := both(i, j, 96+float64(i*j%5)/10, 2+float64(i+j)/100)
			two[0].Rows = nil
			for bytes := int64(2); bytes <= 8<<20; bytes *= 8 {
				two[0].Rows = append(two[0].Rows, perftest.Row{Bytes: bytes, AvgGbps: two[0].AchievedGbps * min(1, float64(bytes)/8192)})
			}
			if i == 4 || j == 4 {
				two[0].AchievedGbps, two[0].Verdict, two[0].Hint = 40, perftest.VerdictFail, "check PCIe width"
			}
			if i == 2 && j == 6 {
				two = two[:1]
				two[0].AchievedGbps, two[0].Rows, two[0].Verdict, two[0].Error = 0, nil, perftest.VerdictFail, "ib_send_bw did not end within 3m0s"
			}
			r.Measurements = append(r.Measurements, two...)
		}
	}
	return r
}

func TestTexts(t *testing.T) {
	for name, r := range map[string]*report.Report{"well": well(), "fallback": fallback(), "partial": partial(), "nothing-measured": nothing(),
		"ring": ring(), "mesh": mesh()} {
		t.Run(name, func(t *testing.T) {
			var text, doc bytes.Buffer
			testclass.OK(t, render.Terminal(&text, r, theme.New(false, false, true)))
			for _, l := range strings.Split(text.String(), "\n") {
				if lipgloss.Width(l) > 80 {
					t.Errorf("wider than 80 columns: %q", l)
				}
			}
			testclass.Golden(t, "testdata/"+name+".txt", strings.NewReplacer("\x1b[1m", "", "\x1b[m", "").Replace(text.String()))
			testclass.OK(t, render.JSON(&doc, r))
			contract(t, doc.Bytes())
		})
	}
}

// classed is a run with SR-IOV: its rows also tell what was proven about the class, and the first broken link has much to say.
func classed() *report.Report {
	r := well()
	for i := range r.Measurements {
		m := &r.Measurements[i]
		m.Class, m.Lossless = &perftest.Proof{Verdict: perftest.VerdictUnknown, Evidence: "neither end shows it"},
			&perftest.Proof{Verdict: perftest.VerdictUnknown, Evidence: "no congestion"}
		for bytes := int64(2); bytes <= 8<<20; bytes *= 2 {
			m.Rows = append(m.Rows, perftest.Row{Bytes: bytes, AvgGbps: m.AchievedGbps, TypicalUs: m.AchievedUs})
		}
	}
	r.Checks = append(r.Checks, finding("HOST-PNIC-CVE-018", "esx-01", checks.Warn,
		"vmnic2: firmware 16.35.4030: CVE-2025-23351 (9.0, code execution on the card, fixed in "+
			"16.35.8002), CVE-2025-33207 (6.8, denial of service, fixed in 16.35.8008)", ""))
	return r
}

// A wide screen has a row for each pair, and below it the explanation of a bad figure.
func TestWideScreens(t *testing.T) {
	for name, r := range map[string]*report.Report{"well": well(), "fallback": fallback(), "ring": ring(), "mesh": mesh(),
		"class": classed()} {
		var text bytes.Buffer
		testclass.OK(t, render.Screen(&text, r, theme.New(false, false, true), 162))
		for _, l := range strings.Split(text.String(), "\n") {
			if w := lipgloss.Width(l); w > 162 {
				t.Errorf("%s: %d columns: %q", name, w, l)
			}
		}
		pairs := map[string]bool{}
		for _, m := range r.Measurements {
			pairs[m.Pair()] = true
		}
		for p := range pairs {
			if strings.Count(text.String(), p+" ") == 0 {
				t.Errorf("%s: no row for %s", name, p)
			}
		}
		testclass.Golden(t, "testdata/"+name+"-wide.txt", text.String())
	}
}

// The verdict has the colour of its status.
func TestVerdictIsColoured(t *testing.T) {
	colours := theme.New(true, false, true)
	for want, r := range map[string]*report.Report{colours.Good.Bold(true).Render("RDMA works"): well(),
		colours.Bad.Render("1 change failed"): partial()} {
		var b bytes.Buffer
		testclass.OK(t, render.Terminal(&b, r, colours))
		want, _, _ = strings.Cut(want, "\x1b[m")
		if first, _, _ := strings.Cut(b.String(), "\n"); !strings.Contains(first, want) {
			t.Errorf("%q does not contain %q", first, want)
		}
	}
}

// contract has the fields that the command line documents, with lists that are never null.
func contract(t *testing.T, doc []byte) {
	t.Helper()
	var r struct {
		Run          *string
		Mode         *string
		Simulated    *bool
		Changes      []json.RawMessage
		Checks       []json.RawMessage
		Measurements []struct {
			From, To, Test, Verdict *string
			Rows                    []json.RawMessage
		}
	}
	testclass.OK(t, json.Unmarshal(doc, &r))
	if r.Run == nil || r.Mode == nil || r.Simulated == nil || r.Changes == nil || r.Checks == nil || r.Measurements == nil {
		t.Errorf("a promised field is missing:\n%s", doc)
	}
	for _, m := range r.Measurements {
		if m.From == nil || m.To == nil || m.Test == nil || m.Verdict == nil || m.Rows == nil {
			t.Errorf("a measurement lacks a promised field:\n%s", doc)
		}
	}
	var again report.Report
	testclass.OK(t, json.Unmarshal(doc, &again))
	var b bytes.Buffer
	if err := render.JSON(&b, &again); err != nil || !bytes.Equal(b.Bytes(), doc) {
		t.Errorf("the document does not survive reading and writing: %v\n%s", err, b.Bytes())
	}
}

func TestPlainThemeIsASCII(t *testing.T) {
	var b bytes.Buffer
	testclass.OK(t, render.Terminal(&b, ring(), theme.Plain()))
	for _, r := range strings.NewReplacer("\x1b[1m", "", "\x1b[m", "").Replace(b.String()) {
		if r > 0x7e || r < 0x20 && r != '\n' {
			t.Errorf("%U in the plain report", r)
		}
	}
}
