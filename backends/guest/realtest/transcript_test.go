//go:build e2e

package realtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keepIn names a directory for the output of the guests' tools: fixtures for backends/transcript/testdata.
const keepIn = "RDMA_SETUP_KEEP_TRANSCRIPTS"

// printed are tools that every configured guest has, and the expected parts of their output as parse reads it.
var printed = []struct{ tool, command, says string }{
	{"ibv_devinfo", "ibv_devinfo -v", `"PORT_ACTIVE"`},
	{"ip_addr", "ip addr show", `192\.168\.50\.1[12]`},
	{"lspci", "lspci -vv -s $(basename $(readlink -f /sys/class/net/NIC/device))", `VMXNET3`},
}

// understood runs the program's parsers on the output of a guest's tools.
func (s *site) understood(m *machine) {
	s.scenario("what the tools of "+m.kind()+" print is understood", func(t *testing.T) {
		fill := strings.NewReplacer("NIC", m.nic())
		for _, p := range printed {
			text, err := m.try(fill.Replace(p.command))
			if err != nil {
				t.Fatal(err)
			}
			file := s.write(p.tool+".txt", text)
			out, _ := s.must(0, "parse", p.tool, file)
			s.says(out, fill.Replace(p.says))
			kept := os.Getenv(keepIn)
			if kept == "" {
				continue
			}
			dir := filepath.Join(kept, p.tool)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "guest-"+m.kind()+".txt"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func (m *machine) kind() string {
	if m.pvrdma {
		return "vmw_pvrdma"
	}
	return "rxe"
}
