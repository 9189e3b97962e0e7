package render_test

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/render"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// formats are the formats for other programs: a browser, a ticket, a CI server, a monitoring agent.
var formats = map[string]func(io.Writer, *report.Report) error{
	"html":  render.HTML,
	"md":    render.Markdown,
	"junit": render.JUnit,
	"prom":  render.Prometheus,
}

func rendered(t testing.TB, format string, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	testclass.OK(t, formats[format](&b, r))
	return b.String()
}

// evils are names that untrusted machines may have.
var evils = []string{
	"$(x)", "`reboot`", "<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "</style></script></title>", "{{.}}",
	"javascript:alert(1)",
	"\u202emv-10\u202c", "\u2066x\u2069\u200b", "\u05d0\u05d1\u05d2", "\x1b[2J\x1b]0;owned\x07", "a\r\nb\u2028c", "a|b\\|c", "# x", "]]>",
	"&lt;&#x3c;", "\xff\xfe\xc3", "\x00", "a\tb", "*_~[x](http://x.example)",
	strings.Repeat("long", 200), `\"`, "ünïcödé",
}

// poisoned returns a report in which every text is s.
func poisoned(s string) *report.Report {
	r := everything()
	r.Run, r.Mode, r.Tool, r.VCenter, r.Status = s, s, s, s, s
	r.Notes = []string{s}
	for i := range r.Changes {
		o := &r.Changes[i]
		o.Target.Name, o.Name, o.Why, o.Err, o.From, o.To = s, s, s, s, backends.ValueOf(s), backends.ValueOf(s)
		found := backends.ValueOf("other " + s)
		o.Found = &found
	}
	for i := range r.Checks {
		f := &r.Checks[i]
		f.Target.Name, f.Evidence, f.Remedy, f.Source, f.Fix = s, s, s, s, s
	}
	for i := range r.Measurements {
		m := &r.Measurements[i]
		m.FromHost, m.ToHost, m.Hint, m.Why, m.Error, m.Device, m.Command = s, s, s, s, s, s, s
		m.From, m.To = "1"+s, "2"+s
	}
	r.NCCL = &report.NCCL{Env: []report.Variable{{Name: s, Value: s}}, Why: []string{s}}
	e := r.Environment
	e.VCenter, e.Switches[0].Name, e.Switches[0].Version = s, s, s
	h := &e.Hosts[0]
	h.Name, h.Version, h.Build, h.Machine, h.CPU, h.Power, h.GPUs = s, s, s, s, s, s, []string{s}
	h.NICs = []report.EnvNIC{{Device: s, Model: s, PCI: s, SpeedMbps: 100000, Driver: s, Firmware: s, PSID: s, RDMADevice: s, Switch: s,
		Neighbour: s}}
	e.Guests[0] = report.EnvGuest{VM: s, Host: s, OS: s, Kernel: s, RDMACore: s, Perftest: s, MOFED: s, Devices: []string{s}}
	return r
}

// everything returns a small report in which every section has content.
func everything() *report.Report {
	r := fallback()
	r.Simulated = true
	r.Changes = append(r.Changes, outcome("esx-02", "pvrdma", "failed", "no"))
	r.Checks = append(r.Checks, finding("HOST-POWER-009", "esx-01", checks.Warn, "power policy dynamic", "Select High Performance."),
		checks.Finding{ID: "SW-PFC-001", Scope: "switch", Target: backends.HostRef("esx-01"), Status: checks.Unknown,
			Evidence: "it cannot be detected", Quiet: true})
	for i := range r.Measurements {
		m := &r.Measurements[i]
		m.LinkGbps, m.MTU, m.Command = 100, 4096, "ib_send_bw -a"
		if m.AchievedUs > 0 {
			m.Rows = []perftest.Row{{Bytes: 2, Iterations: 1000, TypicalUs: m.AchievedUs, P99Us: m.AchievedUs * 2, P999Us: m.AchievedUs * 3},
				{Bytes: 4096, TypicalUs: m.AchievedUs * 4, P99Us: m.AchievedUs * 5, P999Us: m.AchievedUs * 6}}
		} else {
			m.Rows = []perftest.Row{{Bytes: 2, Iterations: 1000, AvgGbps: 0.1}, {Bytes: 65536, AvgGbps: m.AchievedGbps}}
		}
	}
	r.Measurements = append(r.Measurements, gpuMemory(93.1, perftest.VerdictPass, ""))
	back := gpuMemory(30.4, perftest.VerdictFail, "topology, not settings: GPU0 and mlx5_0 of vm-01 are at SYS")
	back.From, back.To, back.FromHost, back.ToHost = back.To, back.From, back.ToHost, back.FromHost
	r.Measurements = append(r.Measurements, back)
	r.NCCL = &report.NCCL{Env: []report.Variable{{Name: "NCCL_NET_GDR_LEVEL", Value: "PHB"}, {Name: "NCCL_IB_HCA", Value: "=mlx5_0"}},
		Why: []string{"as measured"}}
	r.Environment = &report.Environment{
		VCenter:  "8.0.3 build 1",
		Switches: []report.EnvSwitch{{Name: "RDMA-DVS", Version: "8.0.3", MTU: 9000, Uplinks: 1, Hosts: 2}},
		Hosts: []report.EnvHost{{Name: "esx-01", Version: "8.0.3", Machine: "Maker Model", CPU: "CPU", Sockets: 2, Cores: 48, MemoryMB: 524288,
			Power: "static", GPUs: []string{"A100", "A100"},
			NICs: []report.EnvNIC{{Device: "vmnic2", Model: "ConnectX-5", PCI: "0000:3b:00.0", SpeedMbps: 100000, Driver: "nic_driver 4.23",
				Firmware: "16.35.4030", PSID: "MT_0000000012", RDMADevice: "vmrdma0", Switch: "RDMA-DVS", Neighbour: "leaf-01 Ethernet1/3"}}}},
		Guests: []report.EnvGuest{{VM: "vm-01", Host: "esx-01", Hardware: 19, OS: "Ubuntu 22.04", Kernel: "5.15.0", RDMACore: "39.0",
			Perftest: "5.96", Devices: []string{"rocep19s0f1: vmw_pvrdma"}}},
	}
	return r
}

// gpuMemory returns a measurement with GPU memory, next to 95.8 Gb/s with host memory.
func gpuMemory(gbps float64, v perftest.Verdict, hint string) perftest.Measurement {
	return perftest.Measurement{From: "vm-01", To: "vm-02", FromHost: "esx-01", ToHost: "esx-02", Test: perftest.WriteBandwidthGPU,
		AchievedGbps: gbps, ExpectedGbps: 95.8,
		HostGbps: 95.8, LinkGbps: 100, Rows: []perftest.Row{{Bytes: 65536, AvgGbps: gbps}}, Verdict: v, Hint: hint,
		GPU: &perftest.Ends{From: perftest.GPU{Link: "PIX"}, To: perftest.GPU{Index: 1, Link: "PHB"}}}
}

var style = regexp.MustCompile(`(?s)<style>.*</style>`)

func TestFormats(t *testing.T) {
	for name, r := range map[string]*report.Report{"everything": everything(), "partial": partial(), "nothing-measured": nothing()} {
		for format := range formats {
			t.Run(name+"."+format, func(t *testing.T) {
				testclass.Golden(t, "testdata/"+name+"."+format, style.ReplaceAllString(rendered(t, format, r), "<style>…</style>"))
			})
		}
	}
}

func TestEmptyReport(t *testing.T) {
	for format := range formats {
		if got := rendered(t, format, &report.Report{}); got == "" {
			t.Errorf("%s: nothing", format)
		}
	}
}

// No name changes the structure of a document, or leaves a character in it that controls a terminal or changes the direction of text.
func TestHostileNames(t *testing.T) {
	for format := range formats {
		want := shape(t, format, rendered(t, format, poisoned("plain")))
		for _, evil := range evils {
			t.Run(fmt.Sprintf("%s %.20q", format, evil), func(t *testing.T) { harmless(t, format, evil, want) })
		}
	}
}

func harmless(t *testing.T, format, evil, want string) {
	t.Helper()
	got := rendered(t, format, poisoned(evil))
	if s := shape(t, format, got); s != want {
		t.Errorf("the shape of the document changed\n%s", firstDifference(want, s))
	}
	for _, c := range got {
		if c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 ||
			c >= 0x200b && c <= 0x200f || c == 0x2028 {
			t.Errorf("%U in the document", c)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, e := range evils {
		f.Add(e)
	}
	want := map[string]string{}
	for format := range formats {
		want[format] = shape(f, format, rendered(f, format, poisoned("plain")))
	}
	f.Fuzz(func(t *testing.T, evil string) {
		if evil == "" {
			return // the line of an empty text is omitted
		}
		for format := range formats {
			harmless(t, format, evil, want[format])
		}
	})
}

// shape returns the structure of a document without its texts, and fails if the document is invalid.
func shape(t testing.TB, format, doc string) string {
	switch format {
	case "html":
		return htmlShape(t, doc)
	case "junit":
		return junitShape(t, doc)
	case "prom":
		samples, err := exposition(doc)
		testclass.OK(t, err)
		return fmt.Sprint(len(samples))
	}
	return markdownShape(doc)
}

// markdownShape keeps the markup of Markdown: the start of lines, and cell borders.
func markdownShape(doc string) string {
	var out []string
	for _, l := range strings.Split(doc, "\n") {
		l = strings.ReplaceAll(strings.ReplaceAll(l, `\\`, ""), `\|`, "")
		lead := regexp.MustCompile(`^(#+ |- |> |\|[-|]+$)?`).FindString(l)
		out = append(out, fmt.Sprintf("%s%d cells, %d raw", lead, strings.Count(l, "|"),
			len(regexp.MustCompile("(^|[^\\\\])[<`\\[\\]_~]").FindAllString(l, -1))))
	}
	return strings.Join(out, "\n")
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: want %q, got %q", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(y), len(x))
}
