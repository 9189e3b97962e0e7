package containers_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/wizard/generate/containers"
)

func daemon() containers.Daemon {
	return containers.Daemon{
		Bridge: netip.MustParsePrefix("172.30.1.1/24"), Range: netip.MustParsePrefix("172.30.1.0/25"), MTU: 1500,
		DNS: []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")}, NVIDIA: true,
	}
}

func TestMerge(t *testing.T) {
	const all = `{
  "bip": "172.30.1.1/24",
  "fixed-cidr": "172.30.1.0/25",
  "mtu": 1500,
  "dns": [
    "10.0.0.2",
    "10.0.0.3"
  ],
  "runtimes": {
    "nvidia": {
      "args": [],
      "path": "nvidia-container-runtime"
    }
  }
}
`
	for _, tt := range []struct {
		name, old string
		d         containers.Daemon
		want      string
		kept      []string
	}{
		{"no file (GPUDirect RDMA on vSphere 6.7, daemon.json)", "", daemon(), all, nil},
		{"an empty file", " \n", daemon(), all, nil},
		{"what is there already", all, daemon(), all, nil},
		{"other keys stay, in their order and spelling", `{"log-opts":{"max-size":"10m","tag":"a&b<c>"},"big":12345678901234567890,"e":1.0}`,
			containers.Daemon{MTU: 9000},
			"{\n  \"log-opts\": {\n    \"max-size\": \"10m\",\n    \"tag\": \"a&b<c>\"\n  },\n  \"big\": 12345678901234567890,\n  \"e\": 1.0,\n  " +
				"\"mtu\": 9000\n}\n", nil},
		{"another value stays and is told", `{"mtu": 1450, "bip": "172.30.1.1/24"}`,
			containers.Daemon{MTU: 9000, Bridge: netip.MustParsePrefix("172.30.1.1/24")},
			"{\n  \"mtu\": 1450,\n  \"bip\": \"172.30.1.1/24\"\n}\n", []string{"mtu stays 1450, wanted was 9000"}},
		{"the same number spelled otherwise is the same", `{"mtu": 1.5e3}`, containers.Daemon{MTU: 1500}, "{\n  \"mtu\": 1.5e3\n}\n", nil},
		{"another runtime stays beside nvidia's", `{"default-runtime":"crun","runtimes":{"crun":{"path":"/usr/bin/crun"}}}`,
			containers.Daemon{NVIDIA: true},
			"{\n  \"default-runtime\": \"crun\",\n  \"runtimes\": {\n    \"crun\": {\n      \"path\": \"/usr/bin/crun\"\n    },\n    \"nvidia\": " +
				"{\n      \"args\": [],\n      \"path\": \"nvidia-container-runtime\"\n    }\n  }\n}\n", nil},
		{"nvidia's own path stays", `{"runtimes":{"nvidia":{"path":"/opt/nvidia","runtimeArgs":[]}}}`, containers.Daemon{NVIDIA: true},
			"{\n  \"runtimes\": {\n    \"nvidia\": {\n      \"path\": \"/opt/nvidia\",\n      \"runtimeArgs\": []\n    }\n  }\n}\n", nil},
		{"nothing is wanted", `{}`, containers.Daemon{}, "{}\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, kept, err := tt.d.Merge([]byte(tt.old))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, string(got)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tt.kept, kept); d != "" {
				t.Error(d)
			}
			again, _, err := tt.d.Merge(got)
			if err != nil || string(again) != string(got) {
				t.Errorf("merging again gives\n%s (%v)", again, err)
			}
		})
	}
}

func TestMergeRefuses(t *testing.T) {
	for name, old := range map[string]string{
		"no object":            `[1]`,
		"half a file":          `{"mtu": 1500`,
		"a comment":            "// mine\n{}",
		"two objects":          `{} {}`,
		"a key twice":          `{"mtu":1,"mtu":2}`,
		"runtimes of any kind": `{"runtimes": 5}`,
		"a byte order mark":    "\ufeff{}",
	} {
		if got, _, err := daemon().Merge([]byte(old)); err == nil || got != nil {
			t.Errorf("%s gives %s", name, got)
		}
	}
	for name, change := range map[string]func(*containers.Daemon){
		"the network's own address":   func(d *containers.Daemon) { d.Bridge = netip.MustParsePrefix("172.30.1.0/24") },
		"a range elsewhere":           func(d *containers.Daemon) { d.Range = netip.MustParsePrefix("172.31.1.0/25") },
		"a range wider than the net":  func(d *containers.Daemon) { d.Range = netip.MustParsePrefix("172.30.0.0/16") },
		"a range without an address":  func(d *containers.Daemon) { d.Bridge = netip.Prefix{} },
		"an MTU that no network has":  func(d *containers.Daemon) { d.MTU = 1 },
		"IPv6, which bip cannot take": func(d *containers.Daemon) { d.Bridge = netip.MustParsePrefix("fd00::1/64") },
	} {
		d := daemon()
		change(&d)
		if _, _, err := d.Merge(nil); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Whatever the file contains: no panic, nothing lost, and merging again changes nothing.
func FuzzMerge(f *testing.F) {
	for _, seed := range []string{`{}`, `{"mtu":1450,"runtimes":{"x":{}}}`, `{"a":[1,{"b":null}],"bip":7}`, `{"runtimes":null}`,
		`{"\u0000é<":1e400}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, old []byte) {
		got, _, err := daemon().Merge(old)
		if err != nil {
			return
		}
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if len(strings.TrimSpace(string(old))) > 0 {
			if err := json.Unmarshal(old, &before); err != nil {
				t.Fatalf("%q was taken: %v", old, err)
			}
		}
		for k, v := range before {
			if k == "runtimes" {
				continue
			}
			var x, y any
			if json.Unmarshal(v, &x) == nil && (json.Unmarshal(after[k], &y) != nil || !cmp.Equal(x, y)) {
				t.Errorf("%q was %s and is %s", k, v, after[k])
			}
		}
		again, _, err := daemon().Merge(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("no fixed point:\n%s\n%s (%v)", got, again, err)
		}
	})
}
