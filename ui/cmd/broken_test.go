package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/cmd"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// broken lists what check must report in the scenarios that break one link.
var broken = map[string]struct {
	first string
	exit  int
	with  []string // other rows that must be reported as a consequence of the same cause
}{
	"broken-cpu-mixed":         {"CL-CPU-003", 1, nil},
	"broken-nic-mixed":         {"CL-NIC-004", 1, nil},
	"broken-slot-moved":        {"CL-SLOT-007", 1, nil},
	"broken-hyperthreading":    {"HOST-HT-010", 1, nil},
	"broken-power-control":     {"HOST-BIOSPOWER-008", 2, nil},
	"broken-firmware-mixed":    {"CL-FW-005", 1, nil},
	"broken-firmware-old":      {"HOST-PNIC-FWMATRIX-007", 2, nil},
	"broken-driver-mixed":      {"CL-DRV-006", 1, nil},
	"broken-driver-unknown":    {"HOST-PNIC-DRIVER-006", 1, nil}, // the host reports RoCE v2 for it
	"broken-no-rdma":           {"HOST-PNIC-RDMA-001", 2, nil},
	"broken-iwarp":             {"HOST-PNIC-ROCEV2-002", 2, nil},
	"broken-rocev1-only":       {"HOST-PNIC-ROCEV2-002", 2, nil},
	"broken-parameters-mixed":  {"CL-PARAM-009", 1, nil},
	"broken-privileges":        {"VC-PRIV-003", 1, nil},
	"broken-clock":             {"VC-TIME-004", 2, nil},
	"broken-clock-drifting":    {"VC-TIME-004", 1, nil},
	"broken-esxi-mixed":        {"CL-VER-002", 1, nil},
	"broken-power-mixed":       {"CL-POWER-010", 1, nil},
	"broken-host-disconnected": {"HOST-CONN-001", 2, nil},
	"broken-maintenance":       {"HOST-MAINT-002", 1, nil},
	"broken-reboot-required":   {"HOST-REBOOT-003", 1, nil},
	"broken-ntp":               {"HOST-NTP-004", 2, nil},
	"broken-ntp-stopped":       {"HOST-NTP-004", 1, nil},
	"broken-link-down":         {"HOST-PNIC-STATE-003", 2, nil},
	"broken-link-slow":         {"HOST-PNIC-SPEED-004", 2, nil},
	"broken-nic-errors":        {"HOST-PNIC-ERR-016", 2, nil},
	"broken-nic-deaf":          {"SW-LLDP-011", 1, nil},
	"broken-nic-shared":        {"HOST-PNIC-USED-012", 2, nil},
	"broken-vmknic-empty":      {"HOST-VMKNIC-SET-001", 2, nil},
	"broken-vmknic-quoted":     {"HOST-VMKNIC-SET-001", 2, nil},
	"broken-vmknic-missing":    {"HOST-VMKNIC-EXIST-002", 2, nil},
	"broken-vmknic-dhcp":       {"HOST-VMKNIC-EXIST-002", 1, nil},
	"broken-vmknic-subnet":     {"HOST-VMKNIC-SUBNET-003", 1, nil},
	"broken-vmknic-duplicate":  {"HOST-VMKNIC-DUP-004", 2, nil},
	"broken-vmknic-cable":      {"HOST-VMKNIC-PING-005", 2, nil},
	"broken-vmknic-mtu":        {"PAIR-MTU-HOST-003", 2, nil},
	"broken-firewall":          {"HOST-FW-PVRDMA-007", 2, nil},
	// all of them depend on the DVS
	"broken-dvs-missing":    {"DVS-EXIST-001", 2, []string{"DVS-PG-007", "VM-NIC-DVS-019", "GST-LSPCI-003", "GST-PVLSPCI-050"}},
	"broken-dvs-version":    {"DVS-VERSION-002", 1, nil},
	"broken-not-member":     {"DVS-MEMBER-003", 2, nil},
	"broken-uplink-second":  {"HOST-PNIC-ONLYUPLINK-013", 2, []string{"DVS-UPLINKS-004"}}, // the second uplink needs a name on the DVS
	"broken-uplink-missing": {"HOST-PNIC-ONLYUPLINK-013", 2, nil},
	"broken-uplink-standby": {"DVS-UPLINKS-004", 2, nil},
	"broken-uplink-team":    {"DVS-UPLINKS-004", 2, nil},
	"broken-uplink-unused":  {"DVS-UPLINKS-004", 1, nil},
	"broken-ens":            {"HOST-ENS-017", 1, nil}, // no source says that ConnectX does not support RDMA with it
	"broken-nioc":           {"DVS-NIOC-005", 1, nil},
	"broken-dvs-mtu":        {"DVS-MTU-006", 2, nil},
	"broken-dvs-mtu-low":    {"DVS-MTU-006", 1, nil},
	// adapters keep their group, so that the planned group has none
	"broken-pg-missing":           {"DVS-PG-007", 2, []string{"VM-NIC-DVS-019"}},
	"broken-pg-binding":           {"DVS-PG-007", 1, nil},
	"broken-pg-vlan":              {"DVS-PG-VLAN-008", 2, nil},
	"broken-one-host":             {"CL-RULE-013", 1, []string{"VM-PLACEMENT-030", "PAIR-HOSTS-005"}}, // two more rows depend on where VMs run
	"broken-hwversion":            {"VM-HWVER-002", 2, nil},
	"broken-hwversion-old":        {"VM-HWVER-002", 1, nil},
	"broken-snapshot":             {"VM-SNAP-P-006", 1, nil},
	"broken-memory-reservation":   {"VM-MEMRES-007", 1, nil},
	"broken-vcpus":                {"VM-NUMA-013", 1, nil},
	"broken-adapter-missing":      {"VM-NIC-DVS-019", 2, []string{"GST-LSPCI-003", "GST-PVLSPCI-050"}}, // the guest has no such device
	"broken-adapter-first":        {"VM-NIC-FIRST-014", 2, nil},
	"broken-adapter-twice":        {"VM-NIC-PVCOUNT-016", 1, nil},
	"broken-adapter-disconnected": {"VM-NIC-CONNECT-018", 2, []string{"GST-PORT-010"}}, // the port goes down with the adapter
	"broken-adapter-elsewhere":    {"VM-NIC-DVS-019", 2, nil},
	"broken-protocol-mixed":       {"VM-NIC-PROTO-017", 2, []string{"GST-GID-019"}},           // a RoCE v1 device has no v2 GID
	"broken-guest-driver":         {"GST-OS-001", 2, []string{"GST-MOD-007", "GST-PORT-010"}}, // no driver, no module, no port
	"broken-guest-login":          {"GST-OS-001", 1, nil},
	"broken-sudo":                 {"GST-SUDO-002", 2, []string{"GST-IPPERSIST-018"}}, // only root can read netplan's files
	"broken-packages":             {"GST-PKG-005", 2, nil},
	"broken-tools-missing":        {"GST-PKG-005", 1, nil},
	"broken-perftest-missing":     {"GST-PKG-005", 2, []string{"GST-PERFTEST-023"}}, // the package is one of the required packages
	"broken-perftest-version":     {"GST-PERFTEST-023", 1, nil},
	"broken-mofed":                {"GST-MOFED-006", 2, nil},
	"broken-modules":              {"GST-MOD-007", 1, nil},
	// without the unit the port is down after a boot, according to the guide for Ubuntu
	"broken-persist":       {"GST-PERSIST-009", 2, []string{"GST-PORT-010"}},
	"broken-port-down":     {"GST-PORT-010", 2, nil},
	"broken-guest-mtu":     {"GST-MTU-012", 1, []string{"GST-IBMTU-013"}}, // the RDMA MTU follows
	"broken-no-address":    {"GST-IP-014", 2, []string{"GST-GID-019"}},    // GIDs follow the addresses
	"broken-wrong-address": {"GST-IP-014", 2, nil},
	"broken-address-lost":  {"GST-IPPERSIST-018", 2, nil},
	"broken-subnet-twice":  {"GST-SUBNET-015", 2, nil},
	"broken-duplicate-ip":  {"GST-DUPIP-016", 2, nil},
	"broken-memlock":       {"GST-MEMLOCK-020", 2, nil},
	"broken-kernel-trace":  {"GST-DMESG-051", 2, nil},
}

// TestBrokenLinks runs check on sites in which one link is broken: it reports that link first, and otherwise only its consequences.
func TestBrokenLinks(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	brokenLinks(t, 0)
}

// brokenLinks tests every fourth scenario if nth is 0, and the others if it is 1: make test runs the first part, make e2e the
// second.
func brokenLinks(t *testing.T, nth int) {
	const every = 4
	seen := 0
	for _, s := range scenario.All() {
		if _, link := broken[s.Name]; s.Name != "done" && (!link || !strings.HasPrefix(s.Name, "broken-")) {
			continue
		}
		seen++
		if seen%every == 0 != (nth == 0) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			want := broken[s.Name]
			doc, code := checkScenario(t, s)
			if code != want.exit {
				t.Errorf("exit code %d, want %d", code, want.exit)
			}
			first := ""
			if doc.FirstBroken != nil {
				first = doc.FirstBroken.ID
			}
			if first != want.first {
				t.Errorf("first broken link %q, want %q", first, want.first)
			}
			told := map[string]bool{}
			for _, f := range doc.Results {
				if f.Status == checks.Pass || f.Quiet || f.ID == want.first {
					continue
				}
				if b := doc.FirstBroken; b != nil && f.Target == b.Target && f.Evidence == b.Evidence {
					continue // the same text for the same target: rows that an unreachable guest leaves unevaluated
				}
				told[f.ID] = true
				if !slices.Contains(want.with, f.ID) {
					t.Errorf("also told: %s %s %s: %s", f.Status, f.ID, f.Target, f.Evidence)
				}
			}
			for _, id := range want.with {
				if !told[id] {
					t.Errorf("%s should have been told too", id)
				}
			}
		})
	}
	if seen != len(broken)+1 { // problems of the physical network are found only by measuring
		t.Errorf("%d scenarios, %d are expected", seen, len(broken)+1)
	}
}

type brokenDoc struct {
	FirstBroken *checks.Finding  `json:"first_broken"`
	Results     []checks.Finding `json:"results"`
}

// checkScenario runs check in this process, with the environment that the lab provides.
func checkScenario(t *testing.T, s scenario.Scenario) (brokenDoc, int) {
	t.Helper()
	o := lab.Options{Scenario: s.Name, Hosts: s.Hosts, VMs: s.VMs, Dir: t.TempDir()}
	if o.Hosts == 0 {
		o.Hosts, o.VMs = 2, 2
	}
	l, err := lab.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	env := environment(l, o.Dir)
	env["RDMA_SETUP_GUEST_TIMEOUT"] = "4m"
	var out, errs bytes.Buffer
	code := cmd.Run(context.Background(), &console.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(key string) string { return env[key] }, Now: time.Now,
		Terminal:   func() bool { return false },
		Executable: os.Executable,
		Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
	}, []string{"check", "-f", filepath.Join(l.Dir(), "answers-pvrdma.yaml"), "-o", "json"})
	var doc brokenDoc
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %s%s", err, out.Bytes(), errs.Bytes())
	}
	return doc, code
}
