package cmd_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestExitCodesOfCheck covers the exit codes of the monitoring-plugin convention: 0 OK, 1 WARNING, 2 CRITICAL, 3 nothing could be
// evaluated.
func TestExitCodesOfCheck(t *testing.T) {
	testclass.Raced(t)
	t.Parallel()
	away := func(b *bench) { b.env["GOVC_URL"] = "https://127.0.0.1:1/sdk" }
	for name, tt := range map[string]struct {
		scenario string
		args     []string
		env      func(b *bench)
		code     int
		says     string // on stdout, with -o text
	}{
		"all is well":                  {"done", []string{"-f", "ANSWERS"}, nil, 0, "RDMA OK - "},
		"all is well, quick":           {"done", []string{"-f", "ANSWERS", "--quick"}, nil, 0, "RDMA OK - "},
		"all is well, without answers": {"done", []string{"--quick"}, nil, 0, "RDMA OK - "},
		"a warning": {"broken-maintenance", []string{"-f", "ANSWERS", "--quick"}, nil, 1,
			"RDMA WARNING - HOST-MAINT-002"},
		"a guest that should tell cannot": {"broken-guest-login", []string{"-f", "ANSWERS"}, nil, 1, "RDMA WARNING - GST-OS-001"},
		"a failure": {"broken-firewall", []string{"-f", "ANSWERS", "--quick"}, nil, 2,
			"RDMA CRITICAL - HOST-FW-PVRDMA-007"},
		"a failure that was left out": {"broken-firewall", []string{"-f", "ANSWERS", "--quick", "--skip", "HOST-FW-PVRDMA-007"}, nil, 0,
			"RDMA OK - "},
		"only what is unverified":  {"done", []string{"-f", "ANSWERS", "--only", "CL-EVC-014"}, nil, 0, "RDMA OK - "},
		"a host that is not there": {"done", []string{"-f", "UNKNOWN-HOST", "--quick"}, nil, 2, "RDMA CRITICAL - HOST-CONN-001"},
		"one host of those that are well": {"broken-firewall", []string{"-f", "ANSWERS", "--quick", "--limit", "esx-01", "--skip",
			"CL-HOSTS-001"}, nil, 0, "RDMA OK - "},
		"a limit that names no host": {"done", []string{"-f", "ANSWERS", "--quick", "--limit", "esx-99"}, nil, 3,
			"RDMA UNKNOWN - esx-99"},
		"wrong password": {"done", []string{"--quick"}, func(b *bench) { b.env["GOVC_PASSWORD"] = "wrong" }, 3,
			"RDMA UNKNOWN - "},
		"nobody answers":                 {"done", []string{"--quick"}, away, 3, "RDMA UNKNOWN - "},
		"bad answers":                    {"done", []string{"-f", "BAD"}, nil, 3, "RDMA UNKNOWN - "},
		"no such datacenter":             {"done", []string{"-f", "UNKNOWN-DC"}, nil, 3, "RDMA UNKNOWN - "},
		"no such check":                  {"done", []string{"--only", "HOST-FW"}, nil, 3, "RDMA UNKNOWN - "},
		"the catalogue needs no vCenter": {"done", []string{"--list"}, away, 0, "HOST-FW-PVRDMA-007"},
		"in JSON the codes are the same": {"broken-firewall", []string{"-f", "ANSWERS", "--quick", "-o", "json"}, nil, 2,
			`"status": "critical"`},
		"and in the formats of other tools": {"broken-firewall", []string{"-f", "ANSWERS", "--quick", "-o", "prometheus"}, nil, 2,
			"HOST-FW-PVRDMA-007"},
		"a time that is none":                 {"done", []string{"--quick", "--guest-timeout", "0s"}, nil, 3, "RDMA UNKNOWN - "},
		"a file that cannot be written":       {"done", []string{"--quick", "--out", "/dev/null/x"}, nil, 3, ""},
		"a flag that does not exist is usage": {"done", []string{"--quik"}, nil, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hosts, vms := 2, 2
			if tt.scenario == "broken-maintenance" {
				hosts = 3
			}
			b := newBench(t, lab.Options{Scenario: tt.scenario, Hosts: hosts, VMs: vms})
			good := testclass.Read(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"))
			for i, a := range tt.args {
				text, found := "", true
				switch a {
				case "UNKNOWN-HOST":
					text = strings.Replace(string(good), "esx-02", "esx-77", 1)
				case "UNKNOWN-DC":
					text = strings.Replace(string(good), `datacenter: "DC"`, `datacenter: "nowhere"`, 1)
				case "BAD":
					text = "mode: quantum\n"
				default:
					found = false
				}
				if found {
					tt.args[i] = filepath.Join(b.env["HOME"], a+".yaml")
					testclass.Write(t, tt.args[i], text)
				}
			}
			if tt.env != nil {
				tt.env(b)
			}
			code, out, errs := b.run(append([]string{"check"}, tt.args...)...)
			if code != tt.code || !strings.Contains(out, tt.says) {
				t.Errorf("exit %d, want %d with %q:\n%s\n%s", code, tt.code, tt.says, out, errs)
			}
		})
	}
}

// TestDocumentsWhateverHappens: whatever keeps check from judging, its document says so and the last good one is gone.
func TestDocumentsWhateverHappens(t *testing.T) {
	t.Parallel()
	unknown := map[string]string{"json": `"verdict": "unknown"`, "junit": `<error message="Nothing could be evaluated: `,
		"nagios":     "RDMA UNKNOWN - ",
		"prometheus": `verdict="unknown"} 1`}
	b := newBench(t, lab.Options{Scenario: "done", Hosts: 1, VMs: 1})
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	testclass.Write(t, bad, "mode: quantum\n")
	old, good := filepath.Join(t.TempDir(), "document"), filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml")
	for name, tt := range map[string]struct {
		key, value string   // of the environment
		args       []string // before those of the document
		says       string
	}{
		"vCenter is dead":      {"GOVC_URL", "https://127.0.0.1:1/sdk", []string{"--quick"}, "127.0.0.1:1"},
		"the password is bad":  {"GOVC_PASSWORD", "wrong", []string{"--quick", "-f", good}, "password is wrong"},
		"the answers are bad":  {"", "", []string{"-f", bad}, "quantum"},
		"a flag is unknown":    {"", "", []string{"--quik"}, "quik"},
		"a flag was removed":   {"", "", []string{"--watch", "60"}, "watch"},
		"a value is bad":       {"", "", []string{"--guest-timeout", "soon"}, "soon"},
		"an argument too many": {"", "", []string{"a", "b"}, "only"},
	} {
		was := b.env[tt.key]
		if tt.key != "" {
			b.env[tt.key] = tt.value
		}
		for format, says := range unknown {
			args := append([]string{"check"}, tt.args...)
			code, doc, errs := b.run(append(args, "-o", format)...)
			if code != 3 || !strings.Contains(doc, says) || !strings.Contains(doc, tt.says) {
				t.Errorf("%s, -o %s: exit %d:\n%s\n%s", name, format, code, doc, errs)
			}
			if format == "prometheus" && slices.Contains(tt.args, good) && !strings.Contains(doc, `mode="pvrdma"`) {
				t.Errorf("%s: the mode of the answers is missing:\n%s", name, doc)
			}
			testclass.Write(t, old, "all is well")
			code, out, errs := b.run(append(args, "--output="+format, "--out="+old)...)
			if doc, err := os.ReadFile(old); err != nil || code != 3 || out != "" || !strings.Contains(string(doc), says) {
				t.Errorf("%s, -o %s --out: exit %d, %v:\n%s\n%s%s", name, format, code, err, doc, out, errs)
			}
		}
		b.env[tt.key] = was
	}
	// A name so long that no temporary file can stand beside it; and a format that does not exist.
	for format, file := range map[string]string{"json": "", "junit": "", "nagios": "", "prometheus": "", "html": "", "prom": "short"} {
		file = filepath.Join(t.TempDir(), cmp.Or(file, strings.Repeat("x", 255)))
		testclass.Write(t, file, "all is well")
		code, _, errs := b.run("check", "--quick", "--out", file, "-o", format)
		if _, err := os.Lstat(file); code != 3 || !os.IsNotExist(err) {
			t.Errorf("-o %s cannot be written: exit %d, %v\n%s", format, code, err, errs)
		}
	}
}

// TestBenchWithoutALogin names the cause where neither a key nor a password is given, as plan does.
func TestBenchWithoutALogin(t *testing.T) {
	b := newBench(t, lab.Options{Scenario: "done", Hosts: 2, VMs: 2})
	delete(b.env, "RDMA_SETUP_SSH_KEY")
	delete(b.env, "RDMA_SETUP_GUEST_PASSWORD")
	for _, command := range []string{"plan", "bench"} {
		code, _, errs := b.run(command, "-f", "ANSWERS")
		if code != 4 || !strings.Contains(errs, "neither a key nor a password was given") || !strings.Contains(errs, "RDMA_SETUP_GUEST_PASSWORD") {
			t.Errorf("%s: exit %d\n%s", command, code, errs)
		}
	}
}
