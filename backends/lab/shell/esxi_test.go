package shell_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func (l *lab) host(name string) *ssh.Client {
	l.Helper()
	if err := l.world.SetService(name, "TSM-SSH", true); err != nil {
		l.Fatal(err)
	}
	addr, err := l.servers.Host(name)
	if err != nil {
		l.Fatal(err)
	}
	return l.dialAddr(addr, l.config("root"))
}

// Changes made in the shell are visible in the world, and vice versa.
func TestESXiSharesTheWorld(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2})
	c := l.host("esx-01")
	if got := ok(t, c, "esxcli network firewall ruleset list -r pvrdma"); !regexp.MustCompile(`(?m)^pvrdma +false$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
	ok(t, c, "esxcli network firewall ruleset set -r pvrdma -e true; esxcli system settings advanced set -o /Net/PVRDMAVmknic -s vmk0")
	l.world.View(func(s *world.State) {
		h := s.Host("esx-01")
		if !h.Ruleset("pvrdma").Enabled || h.Option("Net.PVRDMAVmknic") != "vmk0" {
			t.Errorf("the world has %+v, %q", h.Ruleset("pvrdma"), h.Option("Net.PVRDMAVmknic"))
		}
		if s.Host("esx-02").Ruleset("pvrdma").Enabled {
			t.Error("the other host changed too")
		}
	})
	if err := l.world.SetRuleset("esx-01", "pvrdma", false); err != nil {
		t.Fatal(err)
	}
	if got := ok(t, c, "esxcli network firewall ruleset list | grep pvrdma"); !strings.Contains(got, "false") {
		t.Errorf("got %q", got)
	}
}

func TestESXiCommands(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2})
	c := l.host("esx-01")
	for command, want := range map[string]string{
		"vmware -v":                                        `^VMware ESXi 8\.0\.3 build-24022510\n$`,
		"vmware -l":                                        `^VMware ESXi 8\.0\.3 Update 3\n$`,
		"esxcli system version get":                        `(?m)^ +Version: 8\.0\.3$`,
		"esxcli network nic list":                          `(?m)^vmnic2 +0000:3b:00\.0 +nmlx5_core +Up +Up +100000 +Full +b8:59:9f:`,
		"esxcli rdma device list":                          `(?m)^vmrdma0 +nmlx5_rdma +Active +\d+ +100 Gbps +vmnic2 +`,
		"esxcli rdma device stats get -d vmrdma0":          `(?m)^ +Packets sent: 0`,
		"esxcli network ip interface list":                 `(?m)^ +Portset: vSwitch0|^ *vmk0`,
		"esxcli vm process list":                           `(?m)^ +Display Name: vm-01$`,
		"vmkping -I vmk0 -c 2 10.10.0.12":                  `2 packets transmitted, 2 packets received, 0% packet loss`,
		"hostname; uname":                                  `^esx-01\nVMkernel\n$`,
		"esxcli --formatter=csv rdma device protocol list": `^Device,RoCEv1,RoCEv2,iWARP,\nvmrdma0,true,true,false,\n`,
		"which esxcli":                                     `^/bin/esxcli\n$`,
	} {
		if got := ok(t, c, command); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %s is not in\n%s", command, want, got)
		}
	}
}

func TestESXiRefusals(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2})
	c := l.host("esx-01")
	for _, tc := range []struct {
		command, text string
		status        int
	}{
		{"esxcli network frob", "Error: Unknown command or namespace network frob", 1},
		{"esxcli network firewall ruleset set -r nothing -e true", "Unable to find ruleset nothing", 1},
		{"esxcli network firewall ruleset set -e true", "Missing required parameter -r|--ruleset-id", 1},
		{"esxcli rdma device stats get -d vmrdma9", "vmrdma9", 1},
		{"esxcli system settings advanced set -o /Net/Nothing -s x", "", 1},
		{"vmkping -I vmk9 10.10.0.12", "Unknown interface 'vmk9'", 1},
		{"vmkping -I vmk0 -d -s 8972 10.10.0.12", "Message too long", 1},
		{"vmkping -c 1 10.10.9.9", "100% packet loss", 1},
		{"mst status", "not found", 127},
		{"apt-get update", "not found", 127},
	} {
		r := run(t, c, tc.command, "")
		if r.status != tc.status || !strings.Contains(r.out+r.err, tc.text) {
			t.Errorf("%s: %+v", tc.command, r)
		}
	}
}

func TestESXiLetsNobodyInWithoutItsService(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	addr, err := l.servers.Host("esx-01")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := ssh.Dial("tcp", addr, l.config("root")); err == nil {
		_ = c.Close()
		t.Fatal("SSH is off and answers")
	}
	c := l.host("esx-01")
	gone := make(chan error, 1)
	go func() { gone <- c.Wait() }()
	if err := l.world.SetService("esx-01", "TSM-SSH", false); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Error("the connection outlived the service")
	}
	if err := l.world.SetService("esx-01", "TSM-SSH", true); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		user, password string
		in             bool
	}{{"root", l.world.Secrets.ESXi, true}, {"root", "guess", false}, {"admin", l.world.Secrets.ESXi, false}} {
		c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: tc.user, Auth: []ssh.AuthMethod{ssh.Password(tc.password)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		if err == nil {
			_ = c.Close()
		}
		if (err == nil) != tc.in {
			t.Errorf("%s with %q: %v", tc.user, tc.password, err)
		}
	}
	err = l.world.Update(func(s *world.State) ([]world.Event, error) {
		s.Host("esx-01").Lockdown = "lockdownNormal"
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := ssh.Dial("tcp", addr, l.config("root")); err == nil {
		_ = c.Close()
		t.Error("lockdown mode let root in")
	}
}

func TestESXiFaults(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1, Faults: []string{"host=esx-01,command=esxcli rdma,do=fail:Internal error", "host=esx-01,command=vmware,do=drop"}})
	c := l.host("esx-01")
	if r := run(t, c, "esxcli rdma device list", ""); r != (result{"", "Internal error\n", 1}) {
		t.Errorf("got %+v", r)
	}
	if r := run(t, c, "vmware -v", ""); r.status != lost {
		t.Errorf("got %+v", r)
	}
}

func TestESXiReboot(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1, Timing: world.Timing{HostReboot: 50 * time.Millisecond}})
	c := l.host("esx-01")
	guest := l.dial("vm-01", "ubuntu")
	ok(t, c, "reboot")
	_ = c.Wait()
	_ = guest.Wait()
	addr, err := l.servers.Host("esx-01")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the host is back", func() bool {
		c, err := ssh.Dial("tcp", addr, l.config("root"))
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
	if n := len(l.world.Log.Outages()); n != 1 {
		t.Errorf("%d outages", n)
	}
}
