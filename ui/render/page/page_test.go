package page_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render/page"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// measured returns a bandwidth between two nodes, each on its own host, with rows from 2 B to 1 MiB.
func measured(from, to int, gbps float64) perftest.Measurement {
	m := perftest.Measurement{
		From: fmt.Sprintf("vm-%d", from), To: fmt.Sprintf("vm-%d", to), FromHost: fmt.Sprintf("esx-%d", from), ToHost: fmt.Sprintf("esx-%d", to),
		Test: perftest.SendBandwidth, LinkGbps: 100, ExpectedGbps: 98, AchievedGbps: gbps, Verdict: perftest.VerdictPass,
	}
	for b := int64(2); b <= 1<<20; b *= 2 {
		m.Rows = append(m.Rows, perftest.Row{Bytes: b, AvgGbps: gbps * float64(b) / float64(b+1000)})
	}
	if gbps < 50 {
		m.Verdict = perftest.VerdictFail
	}
	return m
}

// allPairs measures each pair of n nodes; slow is the node that is slow with all others.
func allPairs(n, slow int) []perftest.Measurement {
	var all []perftest.Measurement
	for i := 1; i <= n; i++ {
		for j := i + 1; j <= n; j++ {
			gbps := 96 + float64((i*7+j)%10)/20
			if i == slow || j == slow {
				gbps = 61
			}
			all = append(all, measured(i, j, gbps))
		}
	}
	return all
}

func of(all []perftest.Measurement) page.Test {
	return page.Of(&report.Report{Measurements: all}).Tests[0]
}

func TestMapOfManyNodes(t *testing.T) {
	for _, n := range []int{2, 3, 9, 24, 25, 64} {
		m := of(allPairs(n, 0)).Map
		if m == nil || len(m.Nodes) != n || len(m.Cells) != n*(n-1)/2 {
			t.Fatalf("%d nodes: %+v", n, m)
		}
		if m.W > 1180 || n > 24 == m.Numbers {
			t.Errorf("%d nodes: %g wide, figures %v", n, m.W, m.Numbers)
		}
		taken := map[[2]float64]bool{}
		for _, c := range m.Cells {
			if taken[[2]float64{c.X, c.Y}] || c.X < m.Left || c.Y < m.Top || c.X+m.Inner > m.W || c.Y+m.Inner > m.H || c.X <= c.Y {
				t.Errorf("%d nodes: cell %+v", n, c)
			}
			taken[[2]float64{c.X, c.Y}] = true
		}
		if len(m.Outliers) != 0 || len(m.Suspects) != 0 {
			t.Errorf("%d nodes that are alike: outliers %v, suspects %v", n, m.Outliers, m.Suspects)
		}
		if last := m.Nodes[n-1].Name; last != fmt.Sprintf("vm-%d", n) {
			t.Errorf("the last node is %s: names are not in the order in which people count", last)
		}
	}
}

func TestMapNamesOutliers(t *testing.T) {
	all := allPairs(64, 23)
	for i := range all {
		if all[i].From == "vm-5" && all[i].To == "vm-40" {
			all[i].AchievedGbps, all[i].Verdict = 20, perftest.VerdictFail
		}
	}
	m := of(all).Map
	if len(m.Suspects) != 1 || m.Suspects[0] != "vm-23 on esx-23: 63 of its 63 pairs" {
		t.Errorf("suspects %v", m.Suspects)
	}
	if len(m.Outliers) != 1 || m.Outliers[0].Pair != "vm-5 -> vm-40" || !strings.Contains(m.Outliers[0].Why, "verdict fail, 79 % below") ||
		m.MoreOut != 63 {
		t.Errorf("outliers %+v, %d more", m.Outliers, m.MoreOut)
	}
	out := 0
	for _, c := range m.Cells {
		if c.Out {
			out++
		}
	}
	if out != 64 {
		t.Errorf("%d cells stand out, want 64", out)
	}
}

// A pair that passes by the expected value can still be an outlier among the others.
func TestOutlierAmongGoodPairs(t *testing.T) {
	all := allPairs(6, 0)
	all[3].AchievedGbps = 90
	m := of(all).Map
	if len(m.Outliers) != 1 || m.Outliers[0].Pair != all[3].From+" -> "+all[3].To || strings.Contains(m.Outliers[0].Why, "verdict") {
		t.Errorf("outliers %+v", m.Outliers)
	}
	for i := range all {
		all[i].AchievedGbps = 60
	}
	if m := of(all).Map; len(m.Outliers) != 0 {
		t.Errorf("all are alike, yet %+v", m.Outliers)
	}
}

func TestMapOfWhatIsNotTheFabric(t *testing.T) {
	all := allPairs(4, 0)
	all[0].Verdict, all[0].AchievedGbps = perftest.VerdictNotApplicable, 300
	all[1].AchievedGbps, all[1].Verdict, all[1].Error, all[1].Rows = 0, perftest.VerdictUnknown, "the connection broke", nil
	m := of(all).Map
	if m.Cells[0].Class != "same" || m.Cells[0].Out || m.Cells[1].Class != "none" || !m.Cells[1].Out || m.Cells[2].Class != "h0" {
		t.Errorf("cells %+v", m.Cells[:3])
	}
	if c := of(all).Chart; strings.Contains(c.Desc, "300") {
		t.Errorf("a pair on one host is in the curve: %s", c.Desc)
	}
}

func TestRingOfManyHasNoMap(t *testing.T) {
	var ring []perftest.Measurement
	for i := 1; i <= 20; i++ {
		ring = append(ring, measured(i, i%20+1, 96))
	}
	if m := of(ring).Map; m != nil {
		t.Errorf("20 of 380 cells make no map: %s", m.Desc)
	}
}

func TestChartFitsItsPlot(t *testing.T) {
	latency := func(us ...float64) []perftest.Measurement {
		m := perftest.Measurement{Test: perftest.SendLatency, From: "a", To: "b", ExpectedUs: 8, Verdict: perftest.VerdictPass}
		for i, v := range us {
			m.Rows = append(m.Rows, perftest.Row{Bytes: 2 << i, TypicalUs: v, P99Us: v * 2, P999Us: v * 50})
		}
		return []perftest.Measurement{m}
	}
	for name, all := range map[string][]perftest.Measurement{
		"two nodes": allPairs(2, 0), "64 nodes": allPairs(64, 7), "faster than the line": {measured(1, 2, 140)},
		"hardly anything": {measured(1, 2, 0.001)},
		"latency":         latency(2, 2.5, 4, 900), "one size": latency(3), "over five decades": latency(0.02, 5, 9000),
	} {
		c := of(all).Chart
		if c == nil {
			t.Fatalf("%s: no chart", name)
		}
		if len(c.X) < 1 || len(c.Y) < 2 || len(c.Y) > 16 {
			t.Errorf("%s: %d and %d ticks", name, len(c.X), len(c.Y))
		}
		lines := []string{c.Band}
		for _, l := range c.Lines {
			lines = append(lines, l.Points)
		}
		for _, r := range c.Rules {
			lines = append(lines, fmt.Sprintf("%g,%g", c.Left, r.Y))
		}
		for _, p := range strings.Fields(strings.Join(lines, " ")) {
			x, y, _ := strings.Cut(p, ",")
			fx, errX := strconv.ParseFloat(x, 64)
			fy, errY := strconv.ParseFloat(y, 64)
			if errX != nil || errY != nil || math.IsNaN(fx+fy) || fx < c.Left-0.1 || fx > c.Right+0.1 || fy < c.Top-0.1 || fy > c.Bottom+0.1 {
				t.Errorf("%s: %s lies outside", name, p)
			}
		}
	}
}

func TestCurvesOfManyAreAField(t *testing.T) {
	c := of(allPairs(3, 0)).Chart
	if c.Band != "" || len(c.Lines) != 3 {
		t.Errorf("three pairs: %d lines, band %q", len(c.Lines), c.Band)
	}
	all := allPairs(8, 0)
	all[4].Verdict = perftest.VerdictFail
	c = of(all).Chart
	if c.Band == "" || len(c.Lines) != 2 || c.Lines[1].Label != all[4].From+" -> "+all[4].To {
		t.Errorf("28 pairs: %+v", c.Lines)
	}
	if len(c.Rules) != 2 || c.Rules[0].Label != "line rate 100 Gb/s" || c.Rules[1].Label != "expected 98.0 Gb/s" ||
		c.Rules[0].Y >= c.Rules[1].Y {
		t.Errorf("rules %+v", c.Rules)
	}
}

func TestManyPairsAreCutToTheWorst(t *testing.T) {
	all := allPairs(64, 23)
	for i := range all {
		if all[i].From == "vm-23" || all[i].To == "vm-23" {
			all[i].Verdict, all[i].Hint = perftest.VerdictWarn, "look at the host"
		}
	}
	for _, i := range []int{5, 700, 1500} {
		all[i].Verdict, all[i].AchievedGbps, all[i].Hint = perftest.VerdictFail, 10+float64(i)/1000, "look at the path"
	}
	x := of(all)
	var got []string
	for _, p := range x.Pairs {
		who := "other"
		if p.From == "vm-23" || p.To == "vm-23" {
			who = "vm-23"
		}
		got = append(got, who+" "+strings.Join(p.Remarks, ""))
	}
	want := []string{"other look at the path", "other as above", "other as above", "vm-23 look at the host", "vm-23 as above",
		"vm-23 as above"}
	if !slices.Equal(got, want) || x.More != 2016-len(want) {
		t.Errorf("%q and %d more", got, x.More)
	}
	if n := len(of(allPairs(64, 0)).Pairs); n != 5 {
		t.Errorf("%d pairs listed of many good ones", n)
	}
}

func change(kind backends.Kind, target backends.Ref, name string, to any, state string) report.Outcome {
	return report.Outcome{State: state, Change: plan.Change{Setting: backends.Setting{Target: target, Kind: kind, Name: name},
		From: backends.ValueOf(""), To: backends.ValueOf(to), Why: "because"}}
}

func TestChangesGoTogether(t *testing.T) {
	var all []report.Outcome
	for _, i := range []int{3, 1, 10, 2} {
		host := backends.HostRef(fmt.Sprintf("esx-%02d", i))
		all = append(all, change(backends.KindFirewall, host, "pvrdma", true, "done"), change(backends.KindOption, host, "Net.PVRDMAVmknic",
			fmt.Sprintf("vmk%d", i%2), "done"))
	}
	all = append(all, change(backends.KindFirewall, backends.HostRef("esx-04"), "pvrdma", true, "failed"),
		change(backends.KindSwitch, backends.SwitchRef("RDMA-DVS"), "switch", 1, "blocked"))
	found := backends.ValueOf(false)
	all[0].Found = &found
	p := page.Of(&report.Report{Changes: all})
	if len(p.Changes) != 2 || p.Changes[0].Heading != "Hosts" || p.Changes[1].Heading != "Distributed switches" {
		t.Fatalf("%+v", p.Changes)
	}
	var got []string
	for _, r := range p.Changes[0].Rows {
		got = append(got, fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s", r.What, r.Why, r.Who, r.Before, r.After, r.Outcome, r.Found))
	}
	want := []string{
		"enable firewall ruleset pvrdma|because|esx-01, esx-02, esx-10|not set|on|done|",
		"enable firewall ruleset pvrdma||esx-03|not set|on|done|off", "enable firewall ruleset pvrdma||esx-04|not set|on|failed|",
		"set option Net.PVRDMAVmknic to vmk1|because|esx-01, esx-03|not set|vmk1|done|",
		"set option Net.PVRDMAVmknic to vmk0||esx-02, esx-10|not set|vmk0|done|",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p.ChangeTally != "8 done, 0 already set, 1 failed, 1 not tried" {
		t.Error(p.ChangeTally)
	}
}

// A value that was unknown before the run is reported as it was read: before the operation and after it.
func TestValuesReadDuringTheRun(t *testing.T) {
	found, params := backends.ValueOf(8), backends.ValueOf(map[string]string{})
	o := change(backends.KindFirmware, backends.HostRef("esx-01"), "0000:3b:00.0", 1, "done")
	o.From, o.To, o.Found = params, backends.Unknown("host/esx-01/tools"), &found
	c := page.Of(&report.Report{Changes: []report.Outcome{o}}).Changes[0].Rows[0]
	if c.Before != "not set" || c.After != "8" || c.Found != "" {
		t.Errorf("%q -> %q, read back %q", c.Before, c.After, c.Found)
	}
}

func TestChainNamesTheFirstBrokenLink(t *testing.T) {
	fw := checks.Finding{ID: "HOST-FW-PVRDMA-007", Target: backends.HostRef("esx-02"), Status: checks.Fail, Evidence: "ruleset pvrdma is off"}
	slow := measured(1, 2, 20)
	p := page.Of(&report.Report{Checks: []checks.Finding{fw}, Measurements: []perftest.Measurement{slow, measured(2, 1, 96)}})
	var got []string
	for _, l := range p.Chain {
		got = append(got, fmt.Sprintf("%s %s %s %s", l.Name, l.Status, l.Tally, l.First))
	}
	want := []string{
		"BIOS not_read not checked ", "firmware not_read not checked ", "driver not_read not checked ",
		"host fail 1 failed HOST-FW-PVRDMA-007 esx-02: ruleset pvrdma is off",
		"switch not_read not checked ", "VM not_read not checked ", "guest not_read not checked ",
		"pair fail 1 passed, 1 failed ib_send_bw vm-1 -> vm-2: 20.0 Gb/s of 98.0 expected",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFindingsComeWorstFirstThenAlongTheChain(t *testing.T) {
	f := func(id string, s checks.Status, quiet bool) checks.Finding {
		return checks.Finding{ID: id, Target: backends.HostRef("x"), Status: s, Quiet: quiet}
	}
	p := page.Of(&report.Report{Checks: []checks.Finding{
		f("HOST-POWER-009", checks.Warn, false), f("GST-OS-001", checks.Fail, false), f("HOST-FW-PVRDMA-007", checks.Fail, false),
		f("HOST-CONN-001", checks.Pass, false), f("GST-SUDO-002", checks.Unknown, true),
	}})
	var got []string
	for _, g := range p.Amiss {
		got = append(got, g.ID)
	}
	if strings.Join(got, " ") != "HOST-FW-PVRDMA-007 GST-OS-001 HOST-POWER-009" || len(p.Passed) != 1 || len(p.Waiting) != 1 {
		t.Errorf("%v; passed %v; waiting %v", got, p.Passed, p.Waiting)
	}
}

func TestEnvironmentGroupsIdenticalTargets(t *testing.T) {
	e := &report.Environment{}
	for i := 1; i <= 5; i++ {
		fw := "16.35.4030"
		if i == 3 {
			fw = "16.32.1010"
		}
		e.Hosts = append(e.Hosts, report.EnvHost{Name: fmt.Sprintf("esx-0%d", i), Version: "8.0.3",
			NICs: []report.EnvNIC{{Device: "vmnic2", PCI: "0000:3b:00.0", NUMA: -1, Firmware: fw, SpeedMbps: 100000}}})
	}
	tables := page.Of(&report.Report{Environment: e}).Environment
	if len(tables) != 2 || len(tables[0].Rows) != 1 || tables[0].Rows[0][0] != "esx-01 to esx-05" {
		t.Fatalf("%+v", tables)
	}
	cards := tables[1]
	if strings.Join(cards.Head, "|") != "hosts|pNIC|PCI|link|firmware" || len(cards.Rows) != 2 ||
		strings.Join(cards.Rows[1], "|") != "esx-03|vmnic2|0000:3b:00.0|100G|16.32.1010" {
		t.Errorf("%+v", cards)
	}
}
