package render_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// An incast is shown in every format for people: what the receiver got in total, which sender got least, what was lost.
func TestIncastIsDrawn(t *testing.T) {
	flow := func(from string, gbps float64, lost int64, v perftest.Verdict) perftest.Measurement {
		return perftest.Measurement{From: from, To: "vm-01", FromHost: "esx-" + from[3:], ToHost: "esx-01", Test: "ib_write_bw incast",
			Load: perftest.LoadIncast, Senders: 2,
			AchievedGbps: gbps, ExpectedGbps: 49, Verdict: v, Rows: []perftest.Row{{Bytes: 65536, AvgGbps: gbps}},
			Class:    &perftest.Proof{Verdict: v, Evidence: "class"},
			Lossless: &perftest.Proof{Verdict: v, Evidence: "lossless"}, Counters: &perftest.Sides{From: perftest.Counters{"packet_seq_err": lost}}}
	}
	r := &report.Report{Mode: "sriov", Status: "done", Measurements: []perftest.Measurement{flow("vm-02", 48, 0, perftest.VerdictPass),
		flow("vm-03", 10, 77, perftest.VerdictFail)}}
	for name, draw := range map[string]func(b *bytes.Buffer) error{
		"terminal": func(b *bytes.Buffer) error { return render.Terminal(b, r, theme.Plain()) },
		"markdown": func(b *bytes.Buffer) error { return render.Markdown(b, r) },
		"html":     func(b *bytes.Buffer) error { return render.HTML(b, r) },
	} {
		chart := "████████████░░░░░░░░"
		var b bytes.Buffer
		testclass.OK(t, draw(&b))
		if name == "terminal" {
			chart = "############........"
		}
		for _, want := range []string{chart, "58.0", "98.0", "0.70, least: vm-03", "77", "disproven",
			map[string]string{"terminal": "class disproven, packets lost: 77", "markdown": "| disproven | 77 |",
				"html": `data-label="lost packets">77<`}[name]} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not show %q:\n%s", name, want, b.String())
			}
		}
	}
	var b bytes.Buffer
	testclass.OK(t, render.JSON(&b, r))
	var doc struct {
		Receivers []struct {
			To       string  `json:"to"`
			Senders  int     `json:"senders"`
			Sum      float64 `json:"sum_gbps"`
			Fairness float64 `json:"fairness"`
			Lost     int64   `json:"lost_packets"`
			Least    string  `json:"least"`
		} `json:"receivers"`
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || len(doc.Receivers) != 1 {
		t.Fatalf("%v: %+v", err, doc)
	}
	if c := doc.Receivers[0]; c.To != "vm-01" || c.Senders != 2 || c.Sum != 58 || c.Fairness < 0.69 || c.Fairness > 0.71 || c.Lost != 77 ||
		c.Least != "vm-03" {
		t.Errorf("%+v", c)
	}
	if c := perftest.Crowds(nil); len(c) != 0 {
		t.Errorf("%v", c)
	}
}

// The expected value of a test is in every format with its reason, also if the test passes.
func TestExpectationHasItsReason(t *testing.T) {
	const why = "100G less the headers of RoCE v2 at an IB MTU of 4096"
	r := well()
	for i := range r.Measurements {
		if r.Measurements[i].Test == perftest.SendBandwidth {
			r.Measurements[i].Why = why
		}
	}
	for name, draw := range map[string]func(b *bytes.Buffer) error{
		"terminal": func(b *bytes.Buffer) error { return render.Terminal(b, r, theme.Plain()) },
		"markdown": func(b *bytes.Buffer) error { return render.Markdown(b, r) },
		"html":     func(b *bytes.Buffer) error { return render.HTML(b, r) },
		"json":     func(b *bytes.Buffer) error { return render.JSON(b, r) },
	} {
		var b bytes.Buffer
		testclass.OK(t, draw(&b))
		times := map[string]int{"terminal": 1, "markdown": 1, "html": 1, "json": 2}[name] // JSON has it with each measurement
		if got := strings.Count(strings.Join(strings.Fields(b.String()), " "), why); got != times {
			t.Errorf("%s says it %d times:\n%s", name, got, b.String())
		}
	}
}

// Each pair has the curve of its own test in every format: one pair's curve drops, the other's does not. JSON has the figures.
func TestEachPairHasItsCurve(t *testing.T) {
	curve := func(from string, gbps ...float64) perftest.Measurement {
		m := perftest.Measurement{From: from, To: "vm-01", FromHost: "esx-2", ToHost: "esx-1", Test: perftest.SendBandwidth, AchievedGbps: 96,
			ExpectedGbps: 98, Verdict: perftest.VerdictPass}
		for i, v := range gbps {
			m.Rows = append(m.Rows, perftest.Row{Bytes: 4096 << (2 * i), AvgGbps: v})
		}
		return m
	}
	r := &report.Report{Mode: "sriov", Status: "done", Measurements: []perftest.Measurement{curve("vm-02", 12, 48, 96, 96),
		curve("vm-03", 12, 96, 48, 12), curve("vm-04", 96)}}
	for name, draw := range map[string]func(b *bytes.Buffer) error{
		"terminal": func(b *bytes.Buffer) error { return render.Terminal(b, r, theme.Plain()) },
		"markdown": func(b *bytes.Buffer) error { return render.Markdown(b, r) },
		"html":     func(b *bytes.Buffer) error { return render.HTML(b, r) },
		"json":     func(b *bytes.Buffer) error { return render.JSON(b, r) },
	} {
		wants := map[string][]string{
			"terminal": {"4 KiB .=## 256 KiB\n", "4 KiB .#=. 256 KiB\n"},
			"markdown": {"| 4 KiB ▂▅██ 256 KiB |", "| 4 KiB ▂█▅▂ 256 KiB |"},
			"html":     {`points="0.0,13.2 33.3,8.0 66.7,1.0 100.0,1.0"`, `points="0.0,13.2 33.3,1.0 66.7,8.0 100.0,13.2"`, `class="spark">–</td>`},
			"json":     {`"bytes": 65536`, `"avg_gbps": 48`},
		}[name]
		var b bytes.Buffer
		testclass.OK(t, draw(&b))
		for _, want := range wants {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not show %q:\n%s", name, want, b.String())
			}
		}
	}
}

// The median of repeated tests is printed with their number and spread; senders that did not send at the same time are reported.
func TestMedianAndOverlapAreReported(t *testing.T) {
	r := well()
	for i := range r.Measurements {
		r.Measurements[i].Repeats, r.Measurements[i].Spread = 3, 1.25
	}
	r.Measurements = append(r.Measurements, perftest.Measurement{From: "vm-02", To: "vm-01", FromHost: "esx-2", ToHost: "esx-1",
		Test: "ib_write_bw incast", Load: perftest.LoadIncast,
		Senders: 1, AchievedGbps: 117.5, ExpectedGbps: 98, Apart: true, Verdict: perftest.VerdictUnknown})
	for name, draw := range map[string]func(b *bytes.Buffer) error{
		"terminal": func(b *bytes.Buffer) error { return render.Terminal(b, r, theme.Plain()) },
		"markdown": func(b *bytes.Buffer) error { return render.Markdown(b, r) },
		"html":     func(b *bytes.Buffer) error { return render.HTML(b, r) },
	} {
		var b bytes.Buffer
		testclass.OK(t, draw(&b))
		for _, want := range []string{"median of 3, spread 1.2 %", "inconclusive: not all sent at the same time"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not show %q:\n%s", name, want, b.String())
			}
		}
	}
}
