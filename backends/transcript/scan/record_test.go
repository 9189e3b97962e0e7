package scan_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

func TestRecords(t *testing.T) {
	labels := scan.Named("World ID", "Config File", "Path", "Message", "Done")
	any := func(string) bool { return true }
	for _, c := range []struct {
		name, in string
		open     scan.Opening
		want     string
	}{
		{"head and first label", "lost: x\nvm-1\nWorld ID: 1\nvm-2\nWorld ID: 2", scan.Opening{First: "World ID", Head: any}, "vm-1/1 vm-2/2"},
		{"a record whose head is cut is left out", "World ID: 1\nConfig File: a\nvm-2\nWorld ID: 2", scan.Opening{First: "World ID", Head: any}, "vm-2/2"},
		{"label opens", "Path: /a\nMessage: m\nPath: /b", scan.Opening{First: "Path"}, "/ /"},
		{"one record", "noise\nWorld ID: 1\nWorld ID: 2", scan.Opening{}, "/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, r := range labels.Records(c.in, c.open) {
				got = append(got, r.Head+"/"+r.Value("World ID"))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

func TestRecordWrapped(t *testing.T) {
	labels := scan.Named("Message", "Done")
	one := func(in string) *scan.Record { return labels.Records(in, scan.Opening{})[0] }
	if got := one("Message: a b\nc d\nDone: yes").Value("Message"); got != "a b c d" {
		t.Errorf("wrapped: %q", got)
	}
	if got := one("Message: a b\n\nnoise\nDone: yes").Value("Message"); got != "a b" {
		t.Errorf("behind a blank line: %q", got)
	}
	r := one("Message: a b\nc d")
	if r.Value("Message") != "a b" || len(r.Tail) != 1 || r.Tail[0] != "c d" {
		t.Errorf("at the end: %+v", r)
	}
}
