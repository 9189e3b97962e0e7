package esxcli_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/esxcli"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// restart reboots the host, so that pending settings take effect.
func restart(t *testing.T, w *world.World) {
	t.Helper()
	if err := w.LoseHost("esx-01"); err != nil {
		t.Fatal(err)
	}
	if err := w.RestoreHost("esx-01"); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, w *world.World, line string) string {
	t.Helper()
	a, err := run(t, w, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return text(a)
}

// text returns an answer as lines of NAME: VALUE.
func text(a esxcli.Answer) string {
	var b strings.Builder
	b.WriteString(a.Text)
	for _, row := range a.Rows {
		for _, f := range row {
			b.WriteString(f.Name + ": " + f.Value + strings.Join(f.List, ", ") + "\n")
		}
	}
	return b.String()
}

func TestVFsThroughModuleParameters(t *testing.T) {
	w := lab(t)
	must(t, w, "system module parameters set -m nmlx5_core -p max_vfs=0,0,2,1")
	if _, err := run(t, w, "network sriovnic vf list -n vmnic2"); err == nil {
		t.Error("VFs before the reboot")
	}
	restart(t, w)
	want := "VF ID: 0\nActive: false\nPCI Address: 0000:3b:00.2\nOwner World ID: -\nVF ID: 1\nActive: false\nPCI Address: 0000:3b:00.3\nOwner World ID: -\n"
	if got := must(t, w, "network sriovnic vf list -n vmnic2"); got != want {
		t.Errorf("vf list:\n%s\nwant\n%s", got, want)
	}
	w.View(func(s *world.State) { s.Host("esx-01").Version = "7.0.3" })
	if got := must(t, w, "network sriovnic vf list -n vmnic3"); !strings.Contains(got, "00000:059:02.2") {
		t.Errorf("older releases print decimal addresses:\n%s", got)
	}
}

func TestPFCSuspendsPause(t *testing.T) {
	w := lab(t)
	if err := w.SetModule("esx-01", world.Nmlx5, "pfctx=0x08 pfcrx=0x08"); err != nil {
		t.Fatal(err)
	}
	if got := must(t, w, "network nic dcb status get -n vmnic0"); !strings.Contains(got, "PFC Enabled: false\nPFC Configuration: 0 0 0 0 0 0 0 0\n") {
		t.Errorf("PFC before the reboot:\n%s", got)
	}
	restart(t, w)
	// The parameters apply to every port of the driver, including that of the management NIC.
	if got := must(t, w, "network nic dcb status get -n vmnic0"); !strings.Contains(got, "PFC Enabled: true\nPFC Configuration: 0 0 0 1 0 0 0 0\n") {
		t.Errorf("PFC:\n%s", got)
	}
	if got := must(t, w, "network nic pauseParams list -n vmnic0"); !strings.Contains(got, "Pause RX: false\nPause TX: false\n") {
		t.Errorf("global pause beside PFC:\n%s", got)
	}
}

func TestVIBs(t *testing.T) {
	w := lab(t)
	w.View(func(s *world.State) {
		s.Depot = []*world.Package{{Path: "/vmfs/volumes/shared-01/tools.vib", VIBs: []world.VIB{
			{Name: "mft", Version: "4.30.0.111-0", Vendor: "MEL", Acceptance: "PartnerSupported"}}}}
	})
	if got := must(t, w, "software sources vib get -v /vmfs/volumes/shared-01/tools.vib"); !strings.Contains(got, "Name: mft\nVersion: 4.30.0.111-0\n") {
		t.Errorf("what the file holds:\n%s", got)
	}
	if _, err := run(t, w, "software sources vib list -d /vmfs/volumes/shared-01/tools.vib"); err == nil || !strings.Contains(err.Error(), "[MetadataDownloadError]") {
		t.Errorf("a VIB taken for a bundle: %v", err)
	}
	if got := must(t, w, "software vib list --rebooting-image"); got != "" {
		t.Errorf("an image of the next boot before anything is staged:\n%s", got)
	}
	got := must(t, w, "software vib install -v /vmfs/volumes/shared-01/tools.vib")
	want := "" +
		"Message: The update completed successfully, but the system needs to be rebooted for the changes to be effective.\n" +
		"VIBs Installed: MEL_bootbank_mft_4.30.0.111-0\n" +
		"VIBs Removed: MEL_bootbank_mft_4.28.0.92-0\n" +
		"VIBs Skipped: \n" +
		"Reboot Required: true\n" +
		"DPU Results: \n"
	if got != want {
		t.Errorf("install:\n%s\nwant\n%s", got, want)
	}
	if now, next := must(t, w, "software vib list"), must(t, w, "software vib list --rebooting-image"); !strings.Contains(now, "4.28.0.92-0") ||
		!strings.Contains(next, "4.30.0.111-0") || strings.Contains(now, "4.30.0.111-0") {
		t.Errorf("now:\n%s\nnext:\n%s", now, next)
	}
	if got := must(t, w, "software vib remove -n mft -n nmst"); !strings.Contains(got, "VIBs Removed: MEL_bootbank_mft_4.30.0.111-0, MEL_bootbank_nmst_") {
		t.Errorf("remove:\n%s", got)
	}
	if got := must(t, w, "software acceptance get"); got != "PartnerSupported" {
		t.Errorf("acceptance %q", got)
	}
	for line, want := range map[string]string{
		"software vib install":                              "One and only one of --depot or --viburl must be given.",
		"software vib install -v /nosuch.vib":               " [VibDownloadError]\n ('/nosuch.vib', '', \"[Errno 2] No such file or directory: '/nosuch.vib'\")\n Please refer to the log file for more details.",
		"software vib remove -n nosuch":                     " [NoMatchError]\n No VIB matching VIB search specification 'nosuch'.\n Please refer to the log file for more details.",
		"network sriovnic vf list -n vmnic2":                "There is no SRIOV Nic with name vmnic2",
		"network nic dcb status get -n vmnic9":              "NIC vmnic9 does not exist",
		"system module parameters set -m nmlx5_core -p x=1": "Unable to set module parameters: parameter x of nmlx5_core: not found",
	} {
		if _, err := run(t, w, line); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}
