package render_test

import (
	"errors"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/render"
)

func TestPluginLine(t *testing.T) {
	shut := func(host string) checks.Finding {
		return finding("HOST-FW-PVRDMA-007", host, checks.Fail, "ruleset pvrdma is off | on", "")
	}
	fine := finding("HOST-CONN-001", "esx-01", checks.Pass, "the host is connected", "")
	down := finding("GST-VERBS-012", "vm-01", checks.Fail, "PORT_DOWN", "")
	hot := finding("HOST-POWER-009", "esx-01", checks.Warn, "power policy dynamic", "")
	quiet := checks.Finding{ID: "SW-PFC-001", Status: checks.Unknown, Quiet: true}
	for _, tt := range []struct {
		word string
		all  []checks.Finding
		want string
	}{
		{"ok", []checks.Finding{fine, quiet}, "RDMA OK - 1 passed, 0 warnings, 0 failed, 1 unknown; not evaluated: BIOS, firmware, driver, switch, VM, guest, pair"},
		{"warning", []checks.Finding{fine, hot}, "RDMA WARNING - HOST-POWER-009 esx-01: power policy dynamic"},
		{"critical", []checks.Finding{down, hot, shut("esx-02")}, "RDMA CRITICAL - HOST-FW-PVRDMA-007 esx-02: ruleset pvrdma is off / on (and 1 more failed)"},
		{"critical", []checks.Finding{shut("esx-\x1b[2J02"), shut("esx-03"), shut("esx-04")}, "RDMA CRITICAL - HOST-FW-PVRDMA-007 esx-?[2J02: ruleset pvrdma is off / on (and 2 more failed)"},
		{"critical", []checks.Finding{finding("X-1", "a", checks.Fail, "not in the catalogue", "")}, "RDMA CRITICAL - X-1 a: not in the catalogue"},
	} {
		if got := render.PluginLine(tt.word, tt.all); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if got := render.PluginError(errors.New("vCenter | cannot\nbe reached")); got != "RDMA UNKNOWN - vCenter / cannot be reached" {
		t.Error(got)
	}
}
