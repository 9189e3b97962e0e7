package plain_test

import (
	"bytes"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// The chain stands in one line, and the first failure along it comes before later ones and before warnings.
func TestChain(t *testing.T) {
	var b bytes.Buffer
	err := plain.Chain(&b, []checks.Finding{
		{ID: "GST-PORT-010", Target: backends.GuestRef("vm-02"), Status: checks.Fail, Evidence: "PORT_DOWN", Remedy: "Load it again."},
		{ID: "HOST-FW-PVRDMA-007", Target: backends.HostRef("esx-02"), Status: checks.Fail, Evidence: "ruleset pvrdma is off", Remedy: "Enable it."},
		{ID: "CL-VER-002", Target: backends.HostRef("esx-01"), Status: checks.Warn, Evidence: "ESXi 8.0.2", Remedy: "Align."},
		{ID: "DVS-MTU-006", Target: backends.SwitchRef("D"), Status: checks.Pass},
	})
	want := "chain   BIOS not evaluated > firmware not evaluated > driver not evaluated > host fail > switch pass > VM not evaluated > guest fail > pair not evaluated\n" +
		"first   host: HOST-FW-PVRDMA-007 esx-02: ruleset pvrdma is off\n        remedy: Enable it.\n"
	if err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}
