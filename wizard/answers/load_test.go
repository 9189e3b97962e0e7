package answers_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

func load(text string) (*answers.Answers, error) {
	return answers.Load(strings.NewReader(text), "f.yaml")
}

func problems(t *testing.T, text string) answers.Problems {
	t.Helper()
	_, err := load(text)
	var ps answers.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("no problems in:\n%s\n%v", text, err)
	}
	return ps
}

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	got, err := load("mode: pvrdma")
	if err != nil {
		t.Fatal(err)
	}
	want := &answers.Answers{
		APIVersion: "rdma-setup/v1", Mode: answers.PVRDMA,
		Switch:    answers.Switch{Name: "RDMA-DVS", PortGroup: "RDMA-PG", Uplinks: 1, MTU: 9000},
		PVRDMA:    answers.PVRDMAOpt{VMKNic: answers.VMKNic{Name: "vmk0"}, Protocol: "rocev2"},
		QoS:       answers.QoS{Lossless: "none", Priority: 3, DSCP: 26, ECN: true},
		SRIOV:     answers.SRIOVOpt{VFs: 8},
		GPUDirect: answers.GPUOpt{NIC: "passthrough", Backing: "fixed", MMIO: "kb", AllowP2P: true, RelaxACS: true},
		ESXi:      answers.ESXi{User: "root", Port: 22},
		Guest:     answers.Guest{Install: true, Persist: true},
		Tuning:    answers.Tuning{Latency: "normal", NUMA: "none"},
		Measure: answers.Measure{Pairs: "ring", Bandwidth: true, Latency: true, Load: "none", CrossRail: "none", Repeat: 1,
			Perftest: answers.OwnPerftest},
		Run: answers.Run{Parallel: 16, Lock: answers.LockLocal, Reboot: answers.Reboot{MaxUnavailable: 1, Timeout: answers.Duration(30 * 60e9),
			Canary: true}, Power: answers.Power{Canary: true, CanaryReboot: true}, Bystanders: answers.BystandersDRS},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, answers.Default(answers.PVRDMA)); diff != "" {
		t.Errorf("Default differs from an empty file:\n%s", diff)
	}
	if s, err := load("mode: sriov"); err != nil || s.QoS.Lossless != "pfc" {
		t.Errorf("sriov is lossless by pfc unless said otherwise: %+v %v", s, err)
	}
	if s, err := load("mode: sriov\nqos: {lossless: none}"); err != nil || s.QoS.Lossless != "none" {
		t.Errorf("said otherwise: %+v %v", s, err)
	}
}

func TestValuesAreNormalised(t *testing.T) {
	a, err := load(`mode: gpudirect
nic: {speed: 25GbE, device: vmnic2, macs: {esx-01: 0C-42-A1-00-00-01, esx-02: 0c42.a100.0002}}
gpudirect: {mmio: 256, gpus: {a: [3D:00.0]}}
run: {reboot: {timeout: 1h}}
vms: [{name: a, ip: 10.1.1.1/24}]
`)
	if err != nil {
		t.Fatal(err)
	}
	if a.NIC.Speed.Mbps() != 25000 || a.NIC.MACs["esx-01"] != "0c:42:a1:00:00:01" || a.NIC.MACs["esx-02"] != "0c:42:a1:00:00:02" {
		t.Errorf("%+v", a.NIC)
	}
	if a.GPUDirect.MMIO.GB() != 256 || a.GPUDirect.GPUs["a"].Whole[0] != "0000:3d:00.0" || a.Run.Reboot.Limit().Hours() != 1 ||
		a.VMs[0].Guest.Port != 22 {
		t.Errorf("%+v %+v", a.GPUDirect, a.VMs)
	}
	for text, want := range map[string]int{"100G": 100000, "2500M": 2500, "2.5G": 2500, "100 Gbps": 100000, "": 0} {
		var s answers.Speed
		if err := s.UnmarshalText([]byte(text)); err != nil || s.Mbps() != want {
			t.Errorf("speed %q: %d %v", text, s, err)
		}
	}
	for _, text := range []string{"100", "fast", "0G", "9999999G", "1.5M", "-1G", "100T"} {
		var s answers.Speed
		if s.UnmarshalText([]byte(text)) == nil {
			t.Errorf("speed %q is read as %d", text, s)
		}
	}
}

// Keys that only another mode uses are reported with their line; keys with their default value, and GPU keys beside PVRDMA
// adapters, are not.
func TestUnusedKeys(t *testing.T) {
	for text, want := range map[string]string{
		"mode: pvrdma\nsriov: {vfs: 4}\ngpudirect:\n  ats: true":                                                 "test.yaml:2: sriov.vfs test.yaml:4: gpudirect.ats",
		"mode: pvrdma\nsriov: {vfs: 8}\ngpudirect: {nic: passthrough}":                                           "",
		"mode: gpudirect\npvrdma: {vmknic: vmk3}\nsriov: {vfs: 4}":                                               "test.yaml:2: pvrdma.vmknic test.yaml:3: sriov.vfs",
		"mode: gpudirect\nsriov: {vfs: 4}\ngpudirect: {nic: sriov}":                                              "",
		"mode: gpudirect\npvrdma: {vmknic: vmk3}\ngpudirect: {nic: pvrdma, mmio: 256}":                           "",
		"mode: pvrdma\ngpudirect: {gpus: {a: [3d:00.0]}, relax_acs: false}\nvms: [{name: a, ip: 10.1.1.1/24}]\n": "test.yaml:2: gpudirect.relax_acs",
	} {
		a, err := answers.Load(strings.NewReader(text), "test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(a.Unused, " "); got != want {
			t.Errorf("%s\n  %q, want %q", text, got, want)
		}
	}
}

func TestEveryProblemIsNamedWithItsLine(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
		path string
		what string // part of the problem
		hint string // part of the hint
	}{
		"GPUs in mode sriov": {"mode: sriov\ngpudirect:\n  gpus: {a: [3d:00.0]}\nvms: [{name: a, ip: 10.1.1.1/24}]", 3, "gpudirect.gpus",
			"contradicts mode sriov", "gpudirect"},
		"VFs for GPUs in mode pvrdma": {"mode: pvrdma\ngpudirect: {nic: sriov}", 2, "gpudirect.nic", "contradicts mode pvrdma", "pvrdma"},
		"PVRDMA in mode sriov":        {"mode: sriov\ngpudirect: {nic: pvrdma}", 2, "gpudirect.nic", "contradicts mode sriov", "pvrdma"},
		"unknown key, near one":       {"mode: pvrdma\nnic:\n  sped: 100G", 3, "nic.sped", "unknown key", "speed"},
		"unknown key of elsewhere":    {"mode: pvrdma\nvlan: 5", 2, "vlan", "unknown key", "switch.vlan"},
		"unknown key, nothing near":   {"mode: pvrdma\nguest: {zzzzzz: 1}", 2, "guest.zzzzzz", "unknown key", "install, persist"},
		"unknown mode":                {"mode: pvrmda", 1, "mode", `"pvrmda" is not known`, "pvrdma"},
		"mode missing":                {"guest: {install: true}", 1, "mode", "missing", "pvrdma, sriov, gpudirect"},
		"key twice": {"mode: pvrdma\nswitch: {mtu: 9000}\nswitch: {mtu: 1500}", 3, "switch", "twice, first in line 2",
			"one of the two"},
		"map for text":        {"mode: pvrdma\nvcenter: {url: {a: b}}", 2, "vcenter.url", "keys and values", ""},
		"list for map":        {"mode: pvrdma\nswitch: [1]", 2, "switch", "a list", "key: value"},
		"text for list":       {"mode: pvrdma\nhosts: {names: esx-01}", 2, "hosts.names", `not "esx-01"`, "list"},
		"text for number":     {"mode: pvrdma\nswitch: {mtu: '9000'}", 2, "switch.mtu", "whole number", "without quotes"},
		"fraction":            {"mode: pvrdma\nswitch: {mtu: 1.5}", 2, "switch.mtu", "whole number", ""},
		"yes":                 {"mode: pvrdma\nguest: {install: yes}", 2, "guest.install", "true or false", ""},
		"bare true as a name": {"mode: pvrdma\nswitch: {name: true}", 2, "switch.name", "expected text", "quotes"},
		"MTU":                 {"mode: pvrdma\nswitch: {mtu: 1000}", 2, "switch.mtu", "not between 1280 and 9190", ""},
		"VLAN":                {"mode: pvrdma\nswitch: {vlan: 4095}", 2, "switch.vlan", "not between 0 and 4094", ""},
		"port group named as switch": {"mode: pvrdma\nswitch: {name: RDMA, portgroup: RDMA}", 2, "switch.portgroup",
			"also the name of the switch", ""},
		"vmknic in quotes": {`mode: pvrdma` + "\n" + `pvrdma: {vmknic: '"vmk0"'}`, 2, "pvrdma.vmknic", "not a vmknic", "write vmk0"},
		"vmknic of one host": {"mode: pvrdma\npvrdma: {vmknic: {names: {esx-01: vmko}}}", 2, "pvrdma.vmknic.names{esx-01}", "not a vmknic",
			"digit zero"},
		"vmknic to create, no network": {"mode: pvrdma\npvrdma: {vmknic: {create: {portgroup: P, start: 10.1.0.1}}}",
			2, "pvrdma.vmknic.create.network", "is missing", "10.1.0.0/24"},
		"vmknic to create, start elsewhere": {"mode: pvrdma\npvrdma: {vmknic: {create: {portgroup: P, network: 10.1.0.0/24, start: 10.2.0.1}}}",
			2, "pvrdma.vmknic.create.start", "not in", "10.1.0.0/24"},
		"vmknic to create beside a name": {
			"mode: pvrdma\npvrdma: {vmknic: {name: vmk1, create: {portgroup: P, network: 10.1.0.0/24, start: 10.1.0.1}}}",
			2, "pvrdma.vmknic.name", "cannot be combined with create", "one of both"},
		"vmknic to create, bits": {"mode: pvrdma\npvrdma: {vmknic: {create: {portgroup: P, network: 10.1.0.1/24, start: 10.1.0.1}}}",
			2, "pvrdma.vmknic.create.network", "after its prefix", "10.1.0.0/24"},
		"vmknic to create, loopback": {"mode: pvrdma\npvrdma: {vmknic: {create: {portgroup: P, network: 127.0.0.0/24, start: 127.0.0.1}}}",
			2, "pvrdma.vmknic.create.network", "no machine can have", "10.1.0.0/24"},
		"vmknic to create, multicast": {"mode: pvrdma\npvrdma: {vmknic: {create: {portgroup: P, network: 239.1.0.0/24, start: 239.1.0.1}}}",
			2, "pvrdma.vmknic.create.network", "no machine can have", "10.1.0.0/24"},
		"vmknic to create, everything": {"mode: pvrdma\npvrdma: {vmknic: {create: {portgroup: P, network: 0.0.0.0/0, start: 10.1.0.1}}}",
			2, "pvrdma.vmknic.create.network", "no machine can have", "10.1.0.0/24"},
		"vmknic to create, broadcast": {"mode: pvrdma\npvrdma: {vmknic: {create: {portgroup: P, network: 10.1.0.0/24, start: 10.1.0.255}}}",
			2, "pvrdma.vmknic.create.start", "broadcast address", "earlier"},
		"vmknic to create, VLAN": {"mode: pvrdma\npvrdma: {vmknic: {create: {portgroup: P, vlan: 4095, network: 10.1.0.0/24, start: 10.1.0.1}}}",
			2, "pvrdma.vmknic.create.vlan", "not between 0 and 4094", ""},
		"vmknic with an unknown key": {"mode: pvrdma\npvrdma: {vmknic: {namess: {esx-01: vmk1}}}", 2, "pvrdma.vmknic.namess",
			"unknown key", "names"},
		"vmko (PVRDMA and vSphere Bitfusion)": {"mode: pvrdma\npvrdma: {vmknic: vmko}", 2, "pvrdma.vmknic", "not a vmknic", "digit zero"},
		"speed":                               {"mode: pvrdma\nnic: {speed: 100}", 2, "nic.speed", `"100" is not a link speed`, "100G"},
		"MAC":                                 {"mode: pvrdma\nnic: {macs: {h: zz}}", 2, "nic.macs{h}", "not a MAC", "hexadecimal"},
		"MAC of two hosts": {"mode: pvrdma\nnic:\n  macs:\n    a: 0c:42:a1:00:00:01\n    b: 0c:42:a1:00:00:01", 5,
			"nic.macs{b}", "also used by", ""},
		"device":     {"mode: pvrdma\nnic: {device: eth0}", 2, "nic.device", "not a device", "vmnic2"},
		"host twice": {"mode: pvrdma\nhosts: {names: [a, b, a]}", 2, "hosts.names[2]", "twice", ""},
		"http":       {"mode: pvrdma\nvcenter: {url: http://vc/sdk}", 2, "vcenter.url", "not https", ""},
		"not a URL":  {"mode: pvrdma\nvcenter: {url: vcenter}", 2, "vcenter.url", "not a URL", "https://"},
		"SHA-1 thumbprint": {"mode: pvrdma\nvcenter: {thumbprint: \"" + strings.Repeat("12:", 19) + "34\"}", 2,
			"vcenter.thumbprint", "is a SHA-1 thumbprint", "openssl"},
		"thumbprint": {"mode: pvrdma\nvcenter: {thumbprint: 12:34}", 2, "vcenter.thumbprint", "not a thumbprint",
			"hexadecimal"},
		"IP without prefix": {"mode: pvrdma\nvms: [{name: a, ip: 10.0.0.1}]", 2, "vms[0].ip", "cannot be read",
			"192.168.50.11/24"},
		"DHCP with GPUDirect": {"mode: gpudirect\nvms: [{name: a, ip: dhcp}]", 2, "vms[0].ip", "not for mode gpudirect",
			"192.168.50.11/24"},
		"DHCP misspelled": {"mode: pvrdma\nvms: [{name: a, ip: dhpc}]", 2, "vms[0].ip", "cannot be read", "or dhcp"},
		"DHCP and adapters": {"mode: pvrdma\nvms:\n- {name: a, ip: dhcp, adapters: [{ip: dhcp}]}", 3, "vms[0].adapters",
			"both adapters and ip", ""},
		"subnet as address": {"mode: pvrdma\nvms: [{name: a, ip: 10.0.0.0/24}]", 2, "vms[0].ip", "subnet itself", ""},
		"broadcast":         {"mode: pvrdma\nvms: [{name: a, ip: 10.0.0.255/24}]", 2, "vms[0].ip", "broadcast", ""},
		"loopback": {"mode: pvrdma\nvms: [{name: a, ip: 127.0.0.1/8}]", 2, "vms[0].ip", "not an address of a machine",
			""},
		"IPv6": {"mode: pvrdma\nvms: [{name: a, ip: 'fd00::1/64'}]", 2, "vms[0].ip", "not an IPv4", ""},
		"IP twice": {"mode: pvrdma\nvms:\n- {name: a, ip: 10.0.0.1/24}\n- {name: b, ip: 10.0.0.1/24}", 4, "vms[1].ip",
			"also used by vms[0]", ""},
		"VM twice": {"mode: pvrdma\nvms:\n- {name: a, ip: 10.0.0.1/24}\n- {name: a, ip: 10.0.0.2/24}", 4, "vms[1].name",
			"twice", ""},
		"VM without name":    {"mode: pvrdma\nvms:\n- {ip: 10.0.0.1/24}", 3, "vms[0].name", "missing", ""},
		"VM without address": {"mode: pvrdma\nvms:\n- {name: a}", 3, "vms[0].ip", "missing", ""},
		"ip and adapters": {"mode: pvrdma\nvms:\n- {name: a, ip: 10.0.0.1/24, adapters: [{ip: 10.0.1.1/24}]}", 3,
			"vms[0].adapters", "both adapters and ip", ""},
		"adapters in one port group": {"mode: pvrdma\nvms:\n- {name: a, adapters: [{ip: 10.0.0.1/24}, {ip: 10.0.1.1/24}]}", 3,
			"vms[0].adapters[1].portgroup", "also used by adapters[0]", ""},
		"command as login": {"mode: pvrdma\nvms:\n- {name: a, ip: 10.0.0.1/24, guest: {user: 'a;rm'}}", 3, "vms[0].guest.user",
			"is not a valid user name", "bare account name"},
		"adapters in subnets that overlap": {"mode: pvrdma\nvms:\n- {name: a, adapters: [{ip: 10.0.0.1/24}, {ip: 10.0.0.2/16, portgroup: p}]}", 3,
			"vms[0].adapters[1].ip", "overlaps with 10.0.0.0/24 of adapters[0]", "the same one"},
		"SSH address is the RDMA one": {"mode: pvrdma\nvms:\n- {name: a, ip: 10.0.0.1/24, guest: {address: 10.0.0.1}}", 3, "vms[0].ip",
			"own address for SSH", ""},
		"address that is an option": {"mode: pvrdma\nvms:\n- {name: a, ip: 10.0.0.1/24, guest: {address: -oProxyCommand=x}}", 3,
			"vms[0].guest.address", "not an address", ""},
		"user with host": {"mode: pvrdma\nvms:\n- {name: a, ip: 10.0.0.1/24, guest: {user: u@h}}", 3, "vms[0].guest.user",
			"not a valid user name", ""},
		"port": {"mode: pvrdma\nesxi: {port: 70000}", 2, "esxi.port", "not between 1 and 65535", ""},
		"ESXi address": {"mode: pvrdma\nesxi: {addresses: {h: 'a b'}}", 2, "esxi.addresses{h}", "not an address",
			"10.0.0.1:22"},
		"VFs": {"mode: sriov\nsriov: {vfs: 128}", 2, "sriov.vfs", "not between 1 and 127", ""},
		"component": {"mode: sriov\nsriov: {components: [mft.zip]}", 2, "sriov.components[0]", "not a datastore path",
			"/vmfs/volumes"},
		"DSCP of another priority": {"mode: sriov\nqos: {dscp: 32}", 2, "qos.dscp", "priority 4", "24 to 31"},
		"MMIO":                     {"mode: gpudirect\ngpudirect: {mmio: 100}", 2, "gpudirect.mmio", "power of two", "256"},
		"installer under another name": {"mode: gpudirect\ngpudirect: {driver: [/srv/cuda_12.8.run]}", 2, "gpudirect.driver[0]",
			"not a path of NVIDIA's installer", "NVIDIA-Linux-x86_64-"},
		"installer without its path": {"mode: gpudirect\ngpudirect: {driver: [NVIDIA-Linux-x86_64-570.133.20.run]}", 2,
			"gpudirect.driver[0]", "not a path", "path in the guests"},
		"option as a package": {"mode: gpudirect\ngpudirect: {driver: [nvidia-open, -y]}", 2, "gpudirect.driver[1]",
			"not a valid package name", "name of a package"},
		"two packages in one word": {"mode: gpudirect\ngpudirect: {driver: [nvidia-open cuda]}", 2, "gpudirect.driver[0]",
			"not a valid package name", ""},
		"installer and packages": {"mode: gpudirect\ngpudirect: {driver: [a, /srv/NVIDIA-Linux-x86_64-570.133.20.run]}", 2,
			"gpudirect.driver[1]", "cannot be combined with others", "alone"},
		"device group and profile": {
			"mode: gpudirect\nvms: [{name: a, ip: 10.0.0.1/24}]\ngpudirect: {gpus: {a: {group: 'Nvidia:2@p%NVLink', profile: p}}}", 3,
			"gpudirect.gpus{a}.group", "other GPUs", "{group: NAME} alone"},
		"device group of two words": {"mode: gpudirect\nvms: [{name: a, ip: 10.0.0.1/24}]\ngpudirect: {gpus: {a: {group: 'a b'}}}", 3,
			"gpudirect.gpus{a}.group", "not a vendor device group", "discover"},
		"source of perftest": {"mode: gpudirect\ngpudirect: {perftest: perftest.tgz}", 2, "gpudirect.perftest",
			"not an absolute path", "/mnt/share"},
		"one perftest without its path": {"mode: pvrdma\nmeasure: {perftest: perftest.tgz}", 2, "measure.perftest", "not an absolute path",
			"/mnt/share"},
		"one perftest by FTP": {"mode: pvrdma\nmeasure: {perftest: 'ftp://h/p.tgz'}", 2, "measure.perftest",
			"not a URL of a web server", "https://"},
		"one perftest unprotected": {"mode: pvrdma\nmeasure: {perftest: 'http://h/p.tgz'}", 2, "measure.perftest", "not protected",
			"#sha256="},
		"one perftest with half a SHA-256": {"mode: pvrdma\nmeasure: {perftest: 'https://h/p.tgz#sha256=12'}", 2, "measure.perftest",
			"no SHA-256", "#sha256="},
		"one perftest with a user": {"mode: pvrdma\nmeasure: {perftest: 'https://u@h/p.tgz'}", 2, "measure.perftest", "holds a user", "https://"},
		"GPU of an unknown VM":     {"mode: gpudirect\ngpudirect: {gpus: {x: ['3d:00.0']}}", 2, "gpudirect.gpus{x}", "not among vms", ""},
		"PCI address": {"mode: gpudirect\ngpudirect: {gpus: {x: [zz]}}\nvms: [{name: x, ip: 10.0.0.1/24}]", 2,
			"gpudirect.gpus{x}[0]", "not a PCI address", "0000:3d:00.0"},
		"time-out": {"mode: pvrdma\nrun: {reboot: {timeout: 1s}}", 2, "run.reboot.timeout", "not between 1m and 24h", ""},
		"no time":  {"mode: pvrdma\nrun: {reboot: {timeout: soon}}", 2, "run.reboot.timeout", "not a duration", "30m"},
		"switch name is a path": {"mode: pvrdma\nswitch: {name: a/b, portgroup: ../../../etc/cron.d/x}", 2, "switch.portgroup", "is a path",
			"not a path"},
		"switch name too long": {"mode: pvrdma\nswitch: {name: " + strings.Repeat("x", 81) + "}", 2, "switch.name", "too long", "80"},
		"newer file":           {"apiVersion: rdma-setup/v2\nmode: pvrdma", 1, "apiVersion", "reads rdma-setup/v1", "newer"},
		"other file":           {"apiVersion: v1\nmode: pvrdma", 1, "apiVersion", "reads rdma-setup/v1", "write apiVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			ps := problems(t, c.text)
			if len(ps) != 1 {
				t.Fatalf("%d problems:\n%v", len(ps), ps)
			}
			p := ps[0]
			if p.Line != c.line || p.Path != c.path || !strings.Contains(p.What, c.what) || !strings.Contains(p.Hint, c.hint) || p.File != "f.yaml" {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestAllProblemsComeAtOnceInTheOrderOfTheFile(t *testing.T) {
	ps := problems(t, "mode: pvrmda\nnic: {sped: 1, speed: fast}\nswitch:\n  mtu: 1\n  nmae: x\nvms:\n- {name: a, ip: x}\n- {nam: b}\n")
	last, paths := 0, []string{}
	for _, p := range ps {
		if p.Line < last {
			t.Errorf("line %d after %d", p.Line, last)
		}
		last = p.Line
		paths = append(paths, p.Path)
	}
	want := []string{"mode", "nic.sped", "nic.speed", "switch.mtu", "switch.nmae", "vms[0].ip", "vms[1].name", "vms[1].ip", "vms[1].nam"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidYAML(t *testing.T) {
	for name, c := range map[string]struct{ text, what string }{
		"nothing":          {"", "is empty"},
		"only a comment":   {"# hello\n", "is empty"},
		"a list":           {"- a\n- b\n", "key: value"},
		"text":             {"hello", "key: value"},
		"two documents":    {"mode: pvrdma\n---\nmode: sriov\n", "more than one document"},
		"tab":              {"mode: pvrdma\nswitch:\n\tmtu: 9000\n", "tab"},
		"anchor":           {"mode: pvrdma\nnic: &a {speed: 100G}\n", "anchors"},
		"alias bomb":       {"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nmode: pvrdma\n", "anchors"},
		"tag":              {"mode: !!python/object pvrdma\n", "tags"},
		"broken":           {"mode: [pvrdma\n", "not valid YAML"},
		"colon in a value": {"mode: pvrdma\nswitch: {name: a}\n  x: y: z\n", "not valid YAML"},
		"too large":        {"# " + strings.Repeat("x", 5<<20), "larger than"},
		"binary":           {"\x00\x01\x02", "not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			if ps := problems(t, c.text); !strings.Contains(ps[0].What+ps[0].Hint, c.what) {
				t.Errorf("%v", ps)
			}
		})
	}
}

func TestHarmlessSpellings(t *testing.T) {
	for name, text := range map[string]string{
		"byte order mark": "\xef\xbb\xbfmode: pvrdma\nswitch: {mtu: 4200}\n",
		"CRLF":            "mode: pvrdma\r\nswitch:\r\n  mtu: 4200\r\n",
		"document marks":  "---\nmode: pvrdma\nswitch: {mtu: 4200}\n...\n",
		"null sections":   "mode: pvrdma\nswitch: {mtu: 4200, name: }\nnic:\nvms: ~\n",
		"JSON":            `{"mode": "pvrdma", "switch": {"mtu": 4200}}`,
	} {
		if a, err := load(text); err != nil || a.Switch.MTU != 4200 || a.Switch.Name != "RDMA-DVS" {
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
}

func TestSecretsAreRefusedAndNeverRepeated(t *testing.T) {
	for name, text := range map[string]string{
		"password":      "mode: pvrdma\nvcenter: {password: hunter2}",
		"deep":          "mode: pvrdma\nvms: [{name: a, ip: 10.0.0.1/24, guest: {sudo_password: hunter2}}]",
		"token":         "mode: pvrdma\nvcenter: {api_token: hunter2}",
		"private key":   "mode: pvrdma\nesxi:\n  user: |\n    -----BEGIN OPENSSH PRIVATE KEY-----\n    hunter2\n",
		"key name":      "mode: pvrdma\nesxi: {private-key: hunter2}",
		"URL":           "mode: pvrdma\nvcenter: {url: 'https://root:hunter2@vc/sdk'}",
		"URL elsewhere": "mode: pvrdma\nswitch: {name: 'https://root:hunter2@vc'}",
		"URL as number": "mode: pvrdma\nswitch: {mtu: 'ssh://root:hunter2@vc'}",
		"URL as speed":  "mode: pvrdma\nnic: {speed: 'ssh://root:hunter2@vc'}",
		"as a key":      "mode: pvrdma\nnic: {macs: {'https://a:hunter2@b': '0c:42:a1:00:00:01'}}",
		"under a list":  "mode: pvrdma\nsecrets: [hunter2]",
	} {
		ps := problems(t, text)
		if all := ps.Error(); strings.Contains(all, "hunter2") {
			t.Errorf("%s: repeated: %s", name, all)
		}
		found := false
		for _, p := range ps {
			found = found || strings.Contains(p.What, "secret") || strings.Contains(p.What, "holds a") || strings.Contains(p.What, "password")
		}
		if !found {
			t.Errorf("%s: %v", name, ps)
		}
	}
}

func TestNetworksSpellOutTheShortForm(t *testing.T) {
	a, err := load(
		"mode: pvrdma\nvms:\n- {name: a, ip: 10.0.0.1/24}\n- {name: b, adapters: [{ip: 10.0.0.2/24}, {ip: 10.0.1.2/24, portgroup: P2}]}")
	if err != nil {
		t.Fatal(err)
	}
	if n := a.Networks(a.VMs[0]); len(n) != 1 || n[0].PortGroup != "RDMA-PG" || n[0].IP.String() != "10.0.0.1/24" {
		t.Errorf("%+v", n)
	}
	if diff := cmp.Diff([]string{"RDMA-PG", "P2"}, a.PortGroups()); diff != "" {
		t.Error(diff)
	}
}

// Guests with dhcp have no address or subnet in the answers that could collide; every rail has a server of its own. Saved answers
// load again.
func TestDHCP(t *testing.T) {
	a, err := load("mode: pvrdma\nvms:\n- {name: a, ip: DHCP}\n- {name: b, adapters: [{ip: dhcp}, {ip: dhcp, portgroup: P2}]}")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := answers.Save(&b, a); err != nil || strings.Count(b.String(), "ip: dhcp") != 3 {
		t.Fatalf("%v\n%s", err, b.String())
	}
	again, err := load(b.String())
	if err != nil || !again.VMs[0].IP.DHCP || again.VMs[0].IP.IsValid() || !again.VMs[1].Adapters[1].IP.DHCP {
		t.Errorf("%v %+v", err, again)
	}
	i := &backends.Interface{DHCP: true, Addresses: []string{"fd00::7/64", "10.0.0.7/24"}}
	if got := a.VMs[0].IP.Of(i).String(); got != "10.0.0.7/24" {
		t.Error(got)
	}
	if got := a.VMs[0].IP.Of(nil); got.IsValid() {
		t.Error(got)
	}
}

func TestLoginsThatExistAreAccepted(t *testing.T) {
	for _, user := range []string{`LAB\ops`, "ops.team", "svc-rdma_1", "CORP+ops", "jörg", "o(2)"} {
		a, err := load("mode: pvrdma\nvms: [{name: a, ip: 10.0.0.1/24, guest: {user: '" + user + "'}}]")
		if err != nil || a.VMs[0].Guest.User != user {
			t.Errorf("%s: %v", user, err)
		}
	}
}
