package scan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

func text(p *string) string {
	if p == nil {
		return "null"
	}
	return *p
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		name string
		read func(string) *string
		in   string
		want string
	}{
		{"8-digit domain, upper case", scan.PCI, "00000000:3B:00.1", "0000:3b:00.1"},
		{"no domain", scan.PCI, "af:00.0", "0000:af:00.0"},
		{"no function", scan.PCI, "0000:af:02", "0000:af:02.0"},
		{"no domain, no function", scan.PCI, "af:02", "0000:af:02.0"},
		{"colon before the function", scan.PCI, "0000:af:02:3", "0000:af:02.3"},
		{"old ESXi decimal", scan.PCI, "00000:059:00.1", "0000:3b:00.1"},
		{"real domain", scan.PCI, "B791:00:00.0", "b791:00:00.0"},
		{"device name is no address", scan.PCI, "mt4129_pciconf0", "null"},
		{"function out of range", scan.PCI, "0000:af:02.9", "null"},
		{"vSphere decimal", scan.DecimalPCI, "59:0.1", "0000:3b:00.1"},
		{"GUID groups", scan.GUID, "0250:56FF:fe00:0201", "025056fffe000201"},
		{"GUID with 0x", scan.GUID, "0x54db0f0300c72376", "54db0f0300c72376"},
		{"GUID too short", scan.GUID, "54db0f", "null"},
		{"MAC of 16 digits", scan.MAC, "00000c42a1aabbcd", "0c:42:a1:aa:bb:cd"},
		{"MAC dashes", scan.MAC, "0C-42-A1-AA-BB-CD", "0c:42:a1:aa:bb:cd"},
		{"GID v4 mapped", scan.GID, "::ffff:192.0.2.11,", "0000:0000:0000:0000:0000:ffff:c000:020b"},
		{"GID short", scan.GID, "fe80::1", "fe80:0000:0000:0000:0000:0000:0000:0001"},
		{"GID no", scan.GID, "aa:bb", "null"},
		{"IPv4 with zeros", scan.IPv4, "192.168.09.05", "192.168.9.5"},
		{"id", scan.HexID, "0x15B3", "15b3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := text(c.read(c.in)); got != c.want {
				t.Errorf("%q: got %s, want %s", c.in, got, c.want)
			}
		})
	}
}

func TestClean(t *testing.T) {
	in := "a\u00a0b\r\n\x1b[1;32mgreen\x1b[0m\x1b]0;title\x07\rover\xff\x00\n"
	if got, want := scan.Normalize(in), "a b\ngreen\nover?\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRecordIsWrapped(t *testing.T) {
	for in, want := range map[string]string{
		"Message: a b\nc d\nDone: yes":       "a b c d",
		"Message: a b\n\nnoise\nDone: yes":   "a b",
		" message : a b\nFilename: c\nDone:": "a b",
		"Message: a b\nc d":                  "a b",
	} {
		if got := scan.Named("Message", "Done").Record(in); got.Value("Message") != want || got.Ends("Message") != (len(got.Tail) > 0) {
			t.Errorf("%q: %+v", in, got)
		}
	}
}

func TestBeginCuts(t *testing.T) {
	e, s := scan.Begin("lsmod", strings.Repeat("x", scan.MaxInput+1))
	if len(s) != scan.MaxInput || len(e.Warnings) != 1 || e.Warnings[0].Code != scan.CodeInputCut {
		t.Errorf("%d bytes, warnings %v", len(s), e.Warnings)
	}
}

func TestMessageIsFlat(t *testing.T) {
	var e scan.Envelope
	e.Fail("connect_failed", " line ", map[string]any{"peer": "vm-01:18515"})
	e.Fail("connect_failed", "again", nil)
	got, err := json.Marshal(e.Errors)
	if want := `[{"code":"connect_failed","peer":"vm-01:18515","text":"line"}]`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

func TestNumbers(t *testing.T) {
	if n := scan.Int("0x10"); n == nil || *n != 16 {
		t.Error("0x10")
	}
	if n := scan.LeadingInt("4096 (5)"); n == nil || *n != 4096 {
		t.Error("4096 (5)")
	}
	if n := scan.LeadingInt("9000[B]"); n == nil || *n != 9000 {
		t.Error("9000[B]")
	}
	if f := scan.LeadingFloat("2.5 Gbps (1)"); f == nil || *f != 2.5 {
		t.Error("2.5 Gbps")
	}
	for in, want := range map[string]int64{"4K": 4096, "32M": 32 << 20, "8GB": 8 << 30, "128 MiB": 128 << 20, "16": 16} {
		if n := scan.Size(in); n == nil || *n != want {
			t.Errorf("size %s: %v", in, n)
		}
	}
	for _, in := range []string{"", "x", "nan", "inf", "0x1p4", "1_000"} {
		if scan.Int(in) != nil || scan.Float(in) != nil {
			t.Errorf("%q is no number", in)
		}
	}
}
