package cmd_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/ui/cmd/torture/witness"
	"github.com/rdma-setup/rdma-setup/ui/cmd/twin"
)

// assumed are the keys of an outside client's dump that a twin has by assumption, or makes up.
var assumed = regexp.MustCompile(`^(vm .* device .* fileName` + // files on the datastore
	`|host .* label|host .* device .* (systemId|subDeviceId|subVendorId)|host .* vib .*)$`)

// twinOf collects the site of a bench and serves its twin, with answers for it.
func twinOf(t *testing.T, site *bench, answersFile string) (*bench, *twin.Twin, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "site.tgz")
	if code, _, errs := site.run("collect", "-f", answersFile, "--out", file); code != 0 {
		t.Fatalf("collect: %d\n%s", code, errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	tw, err := twin.Of(b)
	if err != nil {
		t.Fatal(err)
	}
	served := newBench(t, lab.Options{Found: tw.Found, BootTime: 50 * time.Millisecond, RebootTime: 100 * time.Millisecond})
	var out bytes.Buffer
	if has, err := tw.Answers(&out, served.lab, nil); err != nil || !has {
		t.Fatalf("answers: %t, %v", has, err)
	}
	path := filepath.Join(served.lab.Dir(), "answers.yaml")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return served, tw, path
}

// planHash is the hash of a plan, or where the inventory refuses what it says.
func (b *bench) planHash(answersFile string) string {
	b.t.Helper()
	code, out, errs := b.run("plan", "-f", answersFile, "-o", "json")
	if code != 0 {
		return errs
	}
	var doc struct{ Hash string }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.Hash == "" {
		b.t.Fatalf("plan: %v\n%s", err, out)
	}
	return doc.Hash
}

// outside is what a client that shares no code with the program sees of the vCenter.
func (b *bench) outside() witness.Dump {
	b.t.Helper()
	d, err := witness.Look(b.t.Context(), witness.Site{URL: b.lab.URL().String(), User: b.env["GOVC_USERNAME"], Password: b.env["GOVC_PASSWORD"], CACerts: b.env["GOVC_TLS_CA_CERTS"]})
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// The twin of a site has the plan of the site, and an outside client finds both alike.
func TestTwinIsTheSite(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		scenario, mode string
		hosts, vms     int
	}{
		{"healthy", "pvrdma", 4, 8}, {"drifted", "pvrdma", 3, 6}, {"names", "pvrdma", 2, 11}, {"mixed", "pvrdma", 6, 6}, {"esx-6.7", "pvrdma", 2, 2},
		{"bare", "sriov", 2, 4}, {"sriov-ready", "sriov", 2, 2}, {"sriov-api", "sriov", 2, 2}, {"sriov-added", "sriov", 2, 2}, {"sriov-vcls", "sriov", 2, 2},
		{"gpudirect-done", "gpudirect", 2, 2}, {"gpu-other-vm", "gpudirect", 2, 2},
	} {
		t.Run(row.scenario, func(t *testing.T) {
			t.Parallel()
			site := newBench(t, lab.Options{Scenario: row.scenario, Hosts: row.hosts, VMs: row.vms})
			answers := filepath.Join(site.lab.Dir(), "answers-"+row.mode+".yaml")
			served, tw, again := twinOf(t, site, answers)
			if want, got := site.planHash(answers), served.planHash(again); got != want {
				t.Errorf("plan %s on the site, %s on the twin", want, got)
			}
			if diff := witness.Diff(site.outside(), served.outside(), assumed.MatchString); len(diff) > 0 {
				t.Errorf("%d differences:\n%s", len(diff), strings.Join(diff[:min(len(diff), 15)], "\n"))
			}
			if len(tw.Assumed) == 0 {
				t.Error("it says that it assumes nothing")
			}
		})
	}
}
