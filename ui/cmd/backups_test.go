package cmd_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// TestBackupsBeforeARun: targets are saved before the first change, and a page describes how to undo the run manually. If the
// account cannot save host configurations, the run prints a warning and continues.
func TestBackupsBeforeARun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		privileges []string
		warns      bool
	}{
		{"allowed", append(checks.Privileges(answers.PVRDMA), checks.Backup()...), false},
		{"not allowed", checks.Privileges(answers.PVRDMA), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, err := lab.Start(t.Context(), lab.Options{Scenario: "drifted", Hosts: 1, VMs: 1, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			closeAtEnd(t, l)
			state := t.TempDir()
			env := environment(l, state)
			newRole(t, env).hold(t, tt.privileges)
			_, errs, code := inProcess(env, "apply", "-f", filepath.Join(l.Dir(), "answers-pvrdma.yaml"), "--yes")
			if code != 0 && code != 1 { // the pair of one VM is not measured
				t.Fatalf("exit %d\n%s", code, errs)
			}
			if warned := strings.Contains(errs, "WARNING: not saved before the run: configuration of host esx-01") && strings.Contains(errs, "Host.Config.Firmware"); warned != tt.warns {
				t.Errorf("warned %t, want %t:\n%s", warned, tt.warns, errs)
			}
			dirs, err := filepath.Glob(filepath.Join(state, "rdma-setup", "runs", "*", "backup"))
			if err != nil || len(dirs) != 1 {
				t.Fatalf("%v, %v", dirs, err)
			}
			private(t, dirs[0], 0o700)
			at := func(name string) string { return filepath.Join(dirs[0], name) }
			if _, err := os.Stat(at("host-esx-01.tgz")); (err == nil) == tt.warns {
				t.Errorf("the bundle: %v", err)
			}
			if !tt.warns {
				isBundle(t, at("host-esx-01.tgz"))
			}
			if devices, err := os.ReadFile(at("vms.json")); err != nil || !strings.Contains(string(devices), `"vm-01"`) || !strings.Contains(string(devices), `"_typeName": "VirtualVmxnet3"`) {
				t.Errorf("vms.json: %v\n%.2000s", err, devices)
			}
			var export []struct{ EntityType, Name, ConfigBlob string }
			readJSON(t, at("switch-RDMA-DVS.json"), &export)
			if len(export) < 2 || export[0].Name != "RDMA-DVS" || export[0].ConfigBlob == "" {
				t.Errorf("the export of the switch: %+v", export)
			}
			private(t, at("undo.md"), 0o600)
			page, err := os.ReadFile(at("undo.md"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(page), "before the first change, from the plan") || !strings.Contains(string(page), "## Host esx-01") ||
				!strings.Contains(string(page), "govc host.esxcli -host 'esx-01' ") {
				t.Errorf("the page:\n%s", page)
			}
		})
	}
}

func private(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

func isBundle(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if h, err := tar.NewReader(z).Next(); err != nil || h.Name != "state.tgz" {
		t.Errorf("%v, %v", h, err)
	}
}

// TestResumeKeepsThePageOfTheRun: a run sets up one host and cannot evacuate the other. The resume keeps the backups from before
// the run and does not save already changed targets again. It saves a VM that the first attempt did not touch in a separate file,
// and the page then includes the steps for that VM.
func TestResumeKeepsThePageOfTheRun(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-half", Hosts: 2, VMs: 2, Faults: []string{"host=esx-02,method=EnterMaintenanceMode_Task,do=fault:NoPermission"}})
	file = edited(t, file, "vfs: 8", "vfs: 8\nmeasure: {bandwidth: false, latency: false}")
	b.must(5, "apply", "-f", file, "--yes")
	b.lab.World().Faults.Clear()
	dirs, err := filepath.Glob(filepath.Join(b.env["XDG_STATE_HOME"], "rdma-setup", "runs", "*", "backup"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v, %v", dirs, err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dirs[0], name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const mark = "\n## VM vm-02"
	page := read("undo.md")
	var devices map[string]json.RawMessage
	readJSON(t, filepath.Join(dirs[0], "vms.json"), &devices)
	first, err := json.Marshal(map[string]json.RawMessage{"vm-01": devices["vm-01"]})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dirs[0], "vms.json"), first, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dirs[0], "host-esx-02.tgz")); err != nil {
		t.Fatal(err)
	}
	b.must(0, "resume", "--yes")
	var more map[string]json.RawMessage
	readJSON(t, filepath.Join(dirs[0], "vms-2.json"), &more)
	if read("vms.json") != string(first) || more["vm-02"] == nil || more["vm-01"] != nil {
		t.Errorf("vms.json was replaced, or the VM of the resume is not saved beside it: %s", more)
	}
	if _, err := os.Stat(filepath.Join(dirs[0], "host-esx-02.tgz")); err == nil {
		t.Error("the resume saves what the run had changed already as if it were from before the run")
	}
	after := read("undo.md")
	if strings.Contains(page, mark) || !strings.Contains(after, mark) || !strings.Contains(after, "- vms.json: ") || !strings.Contains(after, "- vms-2.json: ") || !strings.Contains(after, "- host-esx-01.tgz: ") ||
		!strings.Contains(after, "- configuration of host esx-02: the run had changed it") {
		t.Errorf("the page before the resume:\n%s\nand after it:\n%s", page, after)
	}
}

// TestInterruptDuringBackups: creating backups can take minutes; Ctrl-C during that time ends the program immediately without
// changes.
func TestInterruptDuringBackups(t *testing.T) {
	t.Parallel()
	b, file := sriovBench(t, lab.Options{Scenario: "sriov-half", Hosts: 1, VMs: 1, Faults: []string{"method=BackupFirmwareConfiguration,do=hang"}})
	b.interrupts = make(chan os.Signal, 1)
	began := make(chan time.Time, 1)
	ended := make(chan struct{})
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			if slices.ContainsFunc(b.lab.World().Log.Events(), func(e world.Event) bool { return e.What == world.FaultApplied }) {
				began <- time.Now()
				b.interrupts <- os.Interrupt
				return
			}
		}
	}()
	defer close(ended)
	b.must(130, "apply", "-f", file, "--yes")
	if took := time.Since(<-began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	b.wentDown()
}
