package catalogue_test

import (
	"slices"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
)

func told(id string, t backends.Ref, host string, s checks.Status, evidence string) checks.Finding {
	return checks.Finding{ID: id, Target: t, Host: host, Status: s, Evidence: evidence}
}

// The first broken link is the one on which the others depend, not the first in the order of the catalogue.
func TestFirstBrokenByDependency(t *testing.T) {
	esx, far, vm, guest := backends.HostRef("esx-1"), backends.HostRef("esx-2"), backends.VMRef("vm-1"), backends.GuestRef("vm-1")
	pair := backends.Ref{Type: backends.TypePair, Name: "vm-1 -> vm-2"}
	for name, c := range map[string]struct {
		found   []checks.Finding
		first   string
		follows int
	}{
		"SRIOV_EN is off: the BIOS is not to blame": {[]checks.Finding{
			told("HOST-SRIOVBIOS-006", esx, "", checks.Fail, "not capable of SR-IOV"),
			told("HOST-SRIOVEN-009", esx, "", checks.Fail, "SRIOV_EN is off"), told("HOST-VF-COUNT-010", esx, "", checks.Fail, "0 VFs"),
		}, "HOST-SRIOVEN-009", 2},
		"a refused password leaves the firmware unread: the BIOS is not to blame": {[]checks.Finding{
			told("HOST-SRIOVBIOS-006", esx, "", checks.Fail, "not capable of SR-IOV"),
			told("HOST-SRIOVEN-009", esx, "", checks.Unknown, "the firmware could not be read: password refused"),
			told("HOST-NUMVFS-008", esx, "", checks.Unknown, "the firmware could not be read: password refused"),
		}, "HOST-NUMVFS-008", 2},
		"one reason for two rows that rest on each other's": {[]checks.Finding{
			told("HOST-SRIOVBIOS-006", esx, "", checks.Unknown, "no answer"), told("HOST-SRIOVEN-009", esx, "", checks.Unknown, "no answer"),
		}, "HOST-SRIOVEN-009", 1},
		"the firmware of another host says nothing about this one": {[]checks.Finding{
			told("HOST-SRIOVBIOS-006", esx, "", checks.Fail, "not capable of SR-IOV"),
			told("HOST-SRIOVEN-009", far, "", checks.Fail, "SRIOV_EN is off"),
		}, "HOST-SRIOVBIOS-006", 0},
		"a guest without login leaves its rows without facts": {[]checks.Finding{
			told("GST-MTU-012", guest, "esx-1", checks.Unknown, "x"), told("GST-OS-001", guest, "esx-1", checks.Unknown, "x"),
			told("GST-PORT-010", guest, "esx-1", checks.Unknown, "y"),
		}, "GST-OS-001", 2},
		"a pair rests on the hosts of both ends": {[]checks.Finding{
			told("PAIR-FALLBACK-010", pair, "esx-1 -> esx-2", checks.Fail, "TCP"), told("HOST-FW-PVRDMA-007", far, "", checks.Fail, "off"),
			told("PAIR-BW-006", pair, "esx-1 -> esx-2", checks.Fail, "9 Gb/s"),
		}, "HOST-FW-PVRDMA-007", 2},
		"a host that is away takes its VMs along": {[]checks.Finding{
			told("VM-NIC-DVS-019", vm, "esx-2", checks.Fail, "none"), told("HOST-CONN-001", far, "", checks.Fail, "notResponding"),
		}, "HOST-CONN-001", 1},
		"a warning breaks nothing": {[]checks.Finding{
			told("GST-GID-019", guest, "esx-1", checks.Fail, "no GID"), told("GST-PORT-010", guest, "esx-1", checks.Warn, "INIT"),
		}, "GST-GID-019", 0},
	} {
		roots := catalogue.Roots(c.found)
		if len(roots) == 0 || roots[0].Finding.ID != c.first || len(roots[0].Follows) != c.follows {
			t.Errorf("%s: %+v, want %s and %d", name, roots, c.first, c.follows)
		}
		told := 0
		for _, r := range roots {
			told += 1 + len(r.Follows)
		}
		if told != len(c.found) {
			t.Errorf("%s: %d of %d findings are told", name, told, len(c.found))
		}
	}
}

// A link passes only if every row of it was read and passed.
func TestLinkPassesOnlyIfAllWasRead(t *testing.T) {
	pass := func(id string) checks.Finding { return checks.Finding{ID: id, Status: checks.Pass} }
	unread := func(id string) checks.Finding {
		return checks.Finding{ID: id, Status: checks.Unknown, Quiet: true, Evidence: "not read"}
	}
	for name, c := range map[string]struct {
		found []checks.Finding
		rest  bool // the rows without a finding apply to nothing
		link  checks.LinkName
		want  checks.Status
	}{
		"pairs that nobody measured": {[]checks.Finding{pass("PAIR-HOSTS-005"), unread("PAIR-BW-006")}, true, checks.InPair,
			checks.PartlyRead},
		"pairs that were measured": {[]checks.Finding{pass("PAIR-HOSTS-005"), pass("PAIR-BW-006")}, true, checks.InPair, checks.Pass},
		"SRIOV_EN was not read": {[]checks.Finding{pass("HOST-PNIC-FWMATRIX-007"), unread("HOST-SRIOVEN-009")}, true,
			checks.InFirmware, checks.PartlyRead},
		"nothing was read":                {[]checks.Finding{unread("HOST-SRIOVEN-009")}, true, checks.InFirmware, checks.NotRead},
		"the quick check leaves rows out": {[]checks.Finding{pass("GST-DUPIP-016")}, false, checks.InGuest, checks.PartlyRead},
		"an unverified row is no blocker": {[]checks.Finding{pass("GST-OS-001"), {ID: "GST-FIREWALL-022", Status: checks.Warn, Quiet: true}},
			true, checks.InGuest, checks.Pass},
		"nothing applies": {nil, true, checks.InGuest, checks.NotApplicable},
		"one could not be read, one failed": {[]checks.Finding{{ID: "GST-OS-001", Status: checks.Unknown},
			{ID: "GST-MTU-012", Status: checks.Fail}}, true, checks.InGuest, checks.Fail},
		"one should have been read, and not": {[]checks.Finding{pass("GST-OS-001"), {ID: "GST-MTU-012", Status: checks.Unknown}}, true,
			checks.InGuest, checks.Unknown},
	} {
		var nothing []string
		for _, row := range catalogue.Checks() {
			if c.rest && !slices.Contains(ids(c.found), row.ID) {
				nothing = append(nothing, row.ID)
			}
		}
		for _, l := range catalogue.Chain(c.found, nothing...) {
			if l.Name == c.link && l.Worst != c.want {
				t.Errorf("%s: %s is %s, want %s", name, l.Name, l.Worst, c.want)
			}
		}
	}
}
