package catalogue_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func modes() []answers.Mode {
	return []answers.Mode{answers.PVRDMA, answers.SRIOV, answers.GPUDirect}
}

// notHere names the rows that have nothing to check in a healthy fabric of a mode; every other row passes.
func notHere(mode answers.Mode) string {
	if mode == answers.GPUDirect { // the card is no longer a pNIC
		return "CL-NIC-004 CL-FW-005 CL-DRV-006 HOST-PNIC-STATE-003 HOST-PNIC-SPEED-004 HOST-PNIC-MAC-005 HOST-PNIC-DRIVER-006 " +
			"HOST-PNIC-FWMATRIX-007 " +
			"HOST-PNIC-LINKTYPE-009 HOST-PNIC-MODE-019 HOST-PNIC-PCIE-010 HOST-PNIC-NUMA-011 HOST-PNIC-PAUSE-014 HOST-PNIC-DCB-015 " +
			"HOST-PNIC-ERR-016 SW-LLDP-011 SW-BUFFER-014 " +
			"VM-NIC-CONNECT-018 PAIR-ARP-004 CL-PCIE-016"
	}
	return ""
}

// amiss returns the ids that do not pass, with their worst status. Quiet unknowns are included only with quiet.
func amiss(f *checks.Facts, quiet bool) map[string]checks.Status {
	out := map[string]checks.Status{}
	order := []checks.Status{checks.Unknown, checks.Warn, checks.Fail}
	for _, r := range catalogue.Run(context.Background(), f, checks.Selection{Uses: f.Answers.Uses()}) {
		if r.Status == checks.NotApplicable && belongs(r.ID, f.Answers.Uses()...) {
			r.Status, r.Quiet = checks.Unknown, true
		}
		if r.Status == checks.Pass || r.Status == checks.NotApplicable || r.Status == checks.Unknown && r.Quiet && !quiet {
			continue
		}
		if was, seen := out[r.ID]; !seen || slices.Index(order, r.Status) > slices.Index(order, was) {
			out[r.ID] = r.Status
		}
	}
	return out
}

func TestHealthyFabricPassesEveryRow(t *testing.T) {
	for _, mode := range modes() {
		absent := strings.Fields(notHere(mode))
		for id, status := range amiss(healthy(mode), true) {
			if status != checks.Unknown || !slices.Contains(absent, id) {
				t.Errorf("%s: %s is %s: %s", mode, id, status, evidence(healthy(mode), id))
			}
		}
		for _, id := range absent {
			if amiss(healthy(mode), true)[id] == "" {
				t.Errorf("%s: %s passes; it needs no exception", mode, id)
			}
		}
	}
}

func evidence(f *checks.Facts, id string) string {
	var out []string
	for _, r := range catalogue.Run(context.Background(), f, checks.Selection{Only: []string{id}}) {
		if r.Status != checks.Pass {
			out = append(out, r.Target.String()+": "+r.Evidence)
		}
	}
	return strings.Join(out, "; ")
}
