package shell_test

import (
	"bufio"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// The guest returns the same errors as a real one, with the same text.
func TestRefusalsOfUbuntu(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 2})
	user, ops, none, root := l.dial("vm-01", "ubuntu"), l.dial("vm-01", "ops"), l.dial("vm-01", "nosudo"), l.dial("vm-01", "root")
	secret := l.world.Secrets.Sudo
	const kernel = "5.15.0-112-generic"
	for _, tc := range []struct {
		name        string
		as          *ssh.Client
		command, in string
		out, err    string
		status      int
	}{
		{"sudo -n without password", ops, "sudo -n id", "", "", "sudo: a password is required\n", 1},
		{"sudo -n with NOPASSWD", user, "sudo -n id -u", "", "0\n", "", 0},
		{"sudo, wrong password, then nothing", ops, "sudo -S id", "bad\n", "",
			"[sudo] password for ops: Sorry, try again.\n[sudo] password for ops: \nsudo: no password was provided\nsudo: 1 incorrect " +
				"password attempt\n", 1},
		{"sudo, right password", ops, "sudo -S -p '' id -u", secret + "\n", "0\n", "", 0},
		{"sudo leaves the rest of the input to the command", ops, "sudo -S -p '' cat", secret + "\nrest\n", "rest\n", "", 0},
		{"sudo -S with empty input", ops, "sudo -S id </dev/null", "", "",
			"[sudo] password for ops: \nsudo: no password was provided\nsudo: a password is required\n", 1},
		{"sudo without terminal", ops, "sudo id", "", "",
			"sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass " +
				"helper\nsudo: a password is required\n", 1},
		{"not in sudoers", none, "sudo -S -p '' id", secret + "\n", "", "nosudo is not in the sudoers file.\n", 1},
		{"sudo, unknown command", user, "sudo frobnicate", "", "", "sudo: frobnicate: command not found\n", 1},
		{"a user's PATH lacks modprobe", user, "modprobe ib_umad", "", "", "bash: line 1: modprobe: command not found\n", 127},
		{"modules are root's", user, "/usr/sbin/modprobe ib_umad", "", "",
			"modprobe: ERROR: could not insert 'ib_umad': Operation not permitted\n", 1},
		{"unknown module", root, "modprobe no_such", "", "", "modprobe: FATAL: Module no_such not found in directory /lib/modules/" + kernel +
			"\n", 1},
		{"unknown module, remove", root, "modprobe -r no_such", "", "", "modprobe: FATAL: Module no_such not found.\n", 1},
		{"remove what is not loaded", root, "modprobe -r mlx4_ib", "", "", "", 0},
		{"rmmod what is not loaded", root, "rmmod mlx4_ib", "", "", "rmmod: ERROR: Module mlx4_ib is not currently loaded\n", 1},
		{"module in use", root, "modprobe rdma_ucm; modprobe -r ib_core", "", "", "modprobe: FATAL: Module ib_core is in use.\n", 1},
		{"no RDMA device", root, "apt-get install -qq -y ibverbs-utils ibverbs-providers >/dev/null; ibv_devinfo", "", "",
			"No IB devices found\n", 255},
		{"wrong RDMA device", root, "ibv_devinfo -d nope", "", "", "IB device 'nope' wasn't found\n", 255},
		{"wrong link", root, "rdma link show nope/1", "", "", "Wrong device name\n", 1},
		{"no soft RoCE here", root, "rdma link add rxe0 type rxe netdev ens192", "", "", "error: Invalid argument\n", 1},
		{"addresses are root's", user, "ip addr add 192.0.2.1/24 dev ens192", "", "", "RTNETLINK answers: Operation not permitted\n", 2},
		{"address twice", root, "ip addr add 192.0.2.1/24 dev ens192; ip addr add 192.0.2.1/24 dev ens192", "", "",
			"RTNETLINK answers: File exists\n", 2},
		{"address that is not there", root, "ip addr del 192.0.2.9/24 dev ens192", "", "", "RTNETLINK answers: Cannot assign requested address\n",
			2},
		// The texts are those of Debian 12 (iproute2 6.1, Linux 6.1).
		{"rule twice", root, "ip rule add from 1.2.3.4 table 5001 priority 5001; ip rule add from 1.2.3.4 table 5001 priority 5001", "", "",
			"RTNETLINK answers: File exists\n", 2},
		{"rule that is not there", root, "ip rule del from 1.2.3.9 table 5001", "", "", "RTNETLINK answers: No such file or directory\n", 2},
		{"rules are root's", user, "ip rule add from 1.2.3.4 table 5001", "", "", "RTNETLINK answers: Operation not permitted\n", 2},
		{"rule from no address", root, "ip rule add from bogus table 5001", "", "",
			"Error: any valid prefix is expected rather than \"bogus\".\n", 1},
		{"rule without its table", root, "ip rule add from 1.2.3.4 table", "", "", "Command line is not complete. Try option \"help\"\n", 255},
		{"rule to no table", root, "ip rule add table 99999999999", "", "", "Error: argument \"99999999999\" is wrong: invalid table ID\n\n",
			255},
		{"table that is not there", root, "ip route show table 5009", "", "", "Error: ipv4: FIB table does not exist.\nDump terminated\n", 2},
		{"route by an interface that is down", root,
			"ip link set ens192 down; ip route add 9.9.9.0/24 dev ens192 table 5002; s=$?; ip link set ens192 up; exit $s", "", "",
			"Error: Device for nexthop is not up.\n", 2},
		{"route from somebody else's address", root, "ip route add 9.9.9.0/24 dev ens192 src 1.1.1.1 table 5002", "", "",
			"Error: Invalid prefsrc address.\n", 2},
		{"route that is not there", root, "ip route del 9.9.9.0/24 table 5002", "", "", "RTNETLINK answers: No such process\n", 2},
		{"arp_ignore is a number", root,
			"echo 9 >/proc/sys/net/ipv4/conf/ens192/arp_ignore && cat /proc/sys/net/ipv4/conf/ens192/arp_ignore; echo 0 " +
				">/proc/sys/net/ipv4/conf/ens192/arp_ignore", "", "9\n", "", 0},
		{"MTU above vmxnet3's", root, "ip link set ens192 mtu 9001", "", "", "Error: mtu greater than device maximum.\n", 2},
		{"unknown interface", root, "ip link set eth7 up", "", "", "Cannot find device \"eth7\"\n", 1},
		{"unknown package", root, "apt-get install -y libmlx9", "",
			"Reading package lists...\nBuilding dependency tree...\nReading state information...\n", "E: Unable to locate package libmlx9\n", 100},
		{"packages are root's", user, "apt-get update", "", "",
			"E: Could not open lock file /var/lib/apt/lists/lock - open (13: Permission denied)\nE: Unable to lock directory /var/lib/apt/lists/\n",
			100},
		{"package that is not installed", user, "dpkg-query -W -f '${Version}' perftest", "", "",
			"dpkg-query: no packages found matching perftest\n", 1},
		{"unit that is not there", root, "systemctl start nothing", "", "", "Failed to start nothing.service: Unit nothing.service not found.\n",
			5},
		{"units are root's", user, "systemctl daemon-reload", "", "",
			"Failed to daemon-reload : Interactive authentication required.\nSee system logs and 'systemctl status ' for details.\n", 1},
		{"kernel files cannot be written", root, "echo 1 >/proc/sys/kernel/osrelease", "", "",
			"bash: line 1: /proc/sys/kernel/osrelease: Permission denied\n", 1},
		{"no python", user, "python3 -c 1", "", "", "bash: line 1: python3: command not found\n", 127},
		{"no dnf", user, "dnf list", "", "", "bash: line 1: dnf: command not found\n", 127},
		{"ping, too long", user, "ping -M do -c 1 -s 8972 10.20.0.12 | head -2", "",
			"PING 10.20.0.12 (10.20.0.12) 8972(9000) bytes of data.\nping: local error: message too long, mtu=1500\n", "", 0},
		{"firewall is root's", user, "/usr/sbin/ufw status", "", "", "ERROR: You need to be root to run this script\n", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := run(t, tc.as, tc.command, tc.in)
			if want := (result{tc.out, tc.err, tc.status}); r != want {
				t.Errorf("got  %+v\nwant %+v", r, want)
			}
		})
	}
}

func TestNetplan(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1, Scenario: "done"})
	c := l.dial("vm-01", "root")
	write := func(text string) {
		run(t, c, "umask 077; cat >/etc/netplan/70-test.yaml; chmod 600 /etc/netplan/70-test.yaml", text)
	}
	for _, tc := range []struct{ name, yaml, err string }{
		{"tab", "network:\n\tversion: 2\n", "Invalid YAML"},
		{"unknown key", "network:\n  version: 2\n  ethernets:\n    ens224f0:\n      adresses: []\n",
			"70-test.yaml:5:7: Error in network definition: unknown key 'adresses'"},
		{"address without prefix", "network:\n  version: 2\n  ethernets:\n    ens224f0:\n      addresses: [10.0.0.1]\n",
			"address '10.0.0.1' is missing /prefixlength"},
		{"malformed address", "network:\n  version: 2\n  ethernets:\n    ens224f0:\n      addresses: [10.0.0.300/24]\n",
			"malformed address '10.0.0.300/24'"},
		{"bad MAC", "network:\n  version: 2\n  ethernets:\n    x:\n      match: {macaddress: 00-50}\n", "Invalid MAC address '00-50'"},
		{"bad boolean", "network:\n  version: 2\n  ethernets:\n    x: {dhcp4: maybe}\n", "invalid boolean value 'maybe'"},
		{"not a mapping", "network: 7\n", "expected mapping"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			write(tc.yaml)
			if r := run(t, c, "netplan generate", ""); r.status != 1 || !strings.Contains(r.err, tc.err) {
				t.Errorf("generate: %+v", r)
			}
			before := ok(t, c, "ip -br addr")
			if r := run(t, c, "netplan apply", ""); r.status != 78 || ok(t, c, "ip -br addr") != before {
				t.Errorf("apply: %+v", r)
			}
		})
	}
	mac := strings.TrimSpace(ok(t, c, "cat /sys/class/net/ens224f0/address"))
	write("network:\n  version: 2\n  ethernets:\n    rdma:\n      match:\n        macaddress: " + mac +
		"\n      addresses: [10.7.7.7/24]\n      mtu: 4200\n")
	ok(t, c, "rm /etc/netplan/60-*; netplan apply")
	if got := ok(t, c, "ip -br addr show ens224f0; cat /sys/class/net/ens224f0/mtu"); !strings.Contains(got, " 10.7.7.7/24 ") ||
		!strings.HasSuffix(got, "\n4200\n") {
		t.Errorf("got %q", got)
	}
	l.world.View(func(s *world.State) {
		nics := s.VM("vm-01").Guest.NICs
		if len(nics) != 2 || nics[1].MTU != 4200 || nics[1].Addrs[0] != "10.7.7.7/24" {
			t.Errorf("Tools report %+v", nics)
		}
	})
	ok(t, c, "chmod 644 /etc/netplan/70-test.yaml")
	if r := run(t, c, "netplan apply", ""); !strings.Contains(r.err, "Permissions for /etc/netplan/70-test.yaml are too open") {
		t.Errorf("no warning: %+v", r)
	}
}

// TestNothingOutlivesTheMachine reboots a guest while a service, a transient unit and a session's command are running. None of
// them may continue after the reboot. Those of the second boot must end with the lab, which goleak verifies.
func TestNothingOutlivesTheMachine(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	begin := func(c *ssh.Client) {
		ok(t, c,
			"printf '[Service]\\nExecStart=/usr/bin/sleep 3600\\n' >/etc/systemd/system/t.service; systemctl daemon-reload; systemctl start t; "+
				"systemd-run -q --unit u sleep 7200")
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if _, err := s.StdinPipe(); err != nil { // stdin stays open
			t.Fatal(err)
		}
		out, err := s.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start("echo begun; cat"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		// systemctl start of the lab returns a moment before the process is listed.
		const working = "n=0; until [ $(ps ax | grep -cE 'sleep (3600|7200)$|[0-9] cat$') = 3 ] || [ $n = 50 ]; do sleep 0.1; n=$((n + " +
			"1)); done; "
		if got := ok(t, c, working+"ps ax | grep -cE 'sleep (3600|7200)$|[0-9] cat$'"); got != "3\n" {
			t.Fatalf("%s at work:\n%s", got, ok(t, c, "ps ax"))
		}
	}
	c := l.dial("vm-01", "root")
	id := ok(t, c, "cat /proc/sys/kernel/random/boot_id")
	begin(c)
	ok(t, c, "reboot")
	again := l.reconnect("vm-01", "root", id)
	if got := ok(t, again, "ps ax | grep -cE 'sleep (3600|7200)$|[0-9] cat$' || :; systemctl is-active t || :"); got != "0\ninactive\n" {
		t.Errorf("after the reboot: %q", got)
	}
	begin(again)
}

// systemctl stop returns after the process of a transient unit has ended, and SIGTERM is a clean exit (systemd.service(5)).
func TestStoppedTransientUnitHasEnded(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "root")
	ok(t, c, "printf 'sleep 7200; touch /tmp/later' >/tmp/u.sh; systemd-run -q --unit u /bin/sh /tmp/u.sh; systemctl is-active u")
	if got := ok(t, c,
		"systemctl stop u; ps ax | grep -c 'sleep 7200$' || :; systemctl list-units --failed --no-legend | grep -c '^ *u[.]' || :; systemctl "+
			"is-active u || :"); got != "0\n0\ninactive\n" {
		t.Errorf("after the stop: %q", got)
	}
	if r := run(t, c, "systemd-run -q --wait --unit own /bin/sh -c 'systemctl stop own; sleep 1'", ""); r.status != 0 && r.status != 143 {
		t.Errorf("a unit that stops itself: %+v", r)
	}
}

func TestRebootKeepsFilesAndLosesTheRest(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "root")
	id := ok(t, c, "cat /proc/sys/kernel/random/boot_id")
	ok(t, c,
		"echo keep >/srv/keep; echo lose >/tmp/lose; modprobe mlx4_ib; ip addr add 192.0.2.7/24 dev ens192; echo ib_umad "+
			">/etc/modules-load.d/t.conf; apt-get install -y perftest >/dev/null; reboot")
	again := l.reconnect("vm-01", "root", id)
	if got := ok(t, again,
		"cat /srv/keep; ls /tmp; lsmod | grep -c mlx4; lsmod | grep -c ib_umad; ip -br addr | grep -c 192.0.2.7; command -v ib_send_bw || :"); got != "keep\n0\n2\n0\n/usr/bin/ib_send_bw\n" {
		t.Errorf("got %q", got)
	}
}

// reconnect waits until the guest has rebooted and logs in again.
func (l *lab) reconnect(vm, user, bootID string) *ssh.Client {
	l.Helper()
	addr, err := l.servers.Guest(vm)
	if err != nil {
		l.Fatal(err)
	}
	var c *ssh.Client
	eventually(l.T, "a new boot of "+vm, func() bool {
		c, err = ssh.Dial("tcp", addr, l.config(user))
		if err != nil {
			return false
		}
		if r := run(l.T, c, "cat /proc/sys/kernel/random/boot_id", ""); r.status == 0 && r.out != bootID {
			return true
		}
		_ = c.Close()
		return false
	})
	l.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRebootThatNeverEnds(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1, Faults: []string{"vm=vm-01,do=reboot-never"}})
	c := l.dial("vm-01", "ubuntu")
	ok(t, c, "sudo systemctl reboot")
	eventually(t, "the guest is down", func() bool {
		up := true
		l.world.View(func(s *world.State) { up = s.VM("vm-01").Guest.Up })
		return !up
	})
	addr, err := l.servers.Guest("vm-01")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	l.world.After(20*l.world.Timing.VMBoot, func() { close(done) })
	<-done
	if c, err := ssh.Dial("tcp", addr, l.config("ubuntu")); err == nil {
		_ = c.Close()
		t.Error("it came back")
	}
}

func TestUnits(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "root")
	write := func(text string) { run(t, c, "cat >/etc/systemd/system/t.service", text) }
	install := "[Install]\nWantedBy=multi-user.target\n"
	write(
		"[Unit]\nDescription=test\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/touch " +
			"/srv/a\nExecStart=/usr/bin/touch /srv/b\n" + install)
	if r := run(t, c, "systemctl is-enabled t", ""); r.out != "disabled\n" || r.status != 1 {
		t.Errorf("got %+v", r)
	}
	if r := run(t, c, "systemctl enable --now t", ""); r.status != 0 ||
		!strings.HasPrefix(r.err, "Created symlink /etc/systemd/system/multi-user.target.wants/t.service") {
		t.Errorf("got %+v", r)
	}
	if got := ok(t, c, "ls /srv; systemctl is-active t; systemctl is-enabled t"); got != "a\nb\nactive\nenabled\n" {
		t.Errorf("got %q", got)
	}
	write("[Service]\nExecStart=/bin/true\nExecStart=/bin/true\n" + install)
	if r := run(t, c, "systemctl restart t", ""); r.status != 0 || !strings.Contains(r.err, "changed on disk. Run 'systemctl daemon-reload'") {
		t.Errorf("the old unit is not in force: %+v", r)
	}
	ok(t, c, "systemctl stop t; rm -f /etc/systemd/system/multi-user.target.wants/t.service")
	if r := run(t, c, "systemctl daemon-reload; systemctl enable t", ""); r.status == 0 ||
		!strings.Contains(r.err, "only allowed for Type=oneshot") {
		t.Errorf("two commands of a simple service: %+v", r)
	}
	write("[Service]\nType=oneshot\nExecStart=/bin/false\n" + install)
	if r := run(t, c, "systemctl daemon-reload; systemctl start t; echo $?; systemctl is-active t", ""); !strings.HasPrefix(r.out,
		"1\nfailed\n") {
		t.Errorf("got %+v", r)
	}
	write("[Service]\nType=oneshot\nExecStart=/usr/bin/touch /srv/c\n" + install)
	if r := run(t, c, "systemctl enable t && systemctl restart t && rm /srv/c", ""); r.status != 0 ||
		strings.Contains(r.err, "daemon-reload") {
		t.Errorf("enable has not put the new unit in force: %+v", r)
	}
	write("[Service]\nType=oneshot\nExecStart=/bin/echo x > /srv/d\n" + install)
	ok(t, c, "systemctl daemon-reload; systemctl start t")
	if got := ok(t, c, "ls /srv | tr '\\n' ' '"); got != "a b " {
		t.Errorf("a unit's line went through a shell: %q", got)
	}
}

func TestMemlock(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "ubuntu")
	ok(t, c, "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' | sudo sh -c 'cat >/etc/security/limits.d/t.conf'")
	if before, after := ok(t, c, "ulimit -l"), ok(t, l.dial("vm-01", "ubuntu"), "ulimit -l"); after != "unlimited\n" || before == "" {
		t.Errorf("before %q, after %q", before, after)
	}
}

func TestPackages(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 2})
	c := l.dial("vm-01", "root")
	sim := ok(t, c, "apt-get install -s -y libmlx4-1 perftest")
	for _, want := range []string{"Note, selecting 'ibverbs-providers' instead of 'libmlx4-1'", "Inst libibverbs1 (39.0-1",
		"Inst ibverbs-providers ", "Inst perftest "} {
		if !strings.Contains(sim, want) {
			t.Errorf("%q is not in\n%s", want, sim)
		}
	}
	if r := run(t, c, "apt-get install perftest </dev/null", ""); r.status != 1 || !strings.Contains(r.out, "Abort.") {
		t.Errorf("without -y: %+v", r)
	}
	ok(t, c, "apt-get install -y libmlx4-1 perftest")
	if got := ok(t, c,
		"dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}\\n' ibverbs-providers"); got != "ii |ibverbs-providers|39.0-1\n" {
		t.Errorf("got %q", got)
	}
	gone := ok(t, c, "apt-get remove -y -s libibverbs1")
	for _, want := range []string{"Remv ibverbs-providers [", "Remv libibverbs1 [", "Remv perftest ["} {
		if !strings.Contains(gone, want) {
			t.Errorf("%q is not in\n%s", want, gone)
		}
	}
	ok(t, c, "apt-get purge -y perftest")
	if r := run(t, c, "ib_send_bw", ""); r.status != 127 {
		t.Errorf("the program is still there: %+v", r)
	}
	if r := run(t, l.dial("vm-01", "ubuntu"), "apt-cache madison ibutils", ""); r.out != "" ||
		!strings.Contains(r.err, "Unable to locate package ibutils") {
		t.Errorf("22.04 has no ibutils: %+v", r)
	}
	if got := ok(t, l.dial("vm-02", "ubuntu"), "apt-cache madison ibutils"); !strings.Contains(got, "| 1.5.7") {
		t.Errorf("20.04 has ibutils: %q", got)
	}
}

func TestEnterpriseLinux(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 2, Scenario: "centos"})
	c := l.dial("vm-01", "root")
	if got := ok(t, c, ". /etc/os-release; echo $ID $VERSION_ID; command -v apt-get netplan || echo none"); got != "rhel 8.8\nnone\n" {
		t.Errorf("got %q", got)
	}
	if r := run(t, c, "dnf install -y rdma-core no-such", ""); r.status != 1 ||
		r.err != "No match for argument: no-such\nError: Unable to find a match: no-such\n" {
		t.Errorf("got %+v", r)
	}
	ok(t, c, "yum install -y rdma-core libibverbs libibverbs-utils infiniband-diags perftest")
	if got := ok(t, c, "rpm -q --qf '%{NAME}|%{VERSION}-%{RELEASE}\\n' rdma-core"); got != "rdma-core|44.0-2.el8.1\n" {
		t.Errorf("got %q", got)
	}
	if r := run(t, c, "rpm -q nothing", ""); r.status != 1 || r.out != "package nothing is not installed\n" {
		t.Errorf("got %+v", r)
	}
	profile(t, c, "t", "ens192", "10.9.9.9/24")
	ok(t, c, "nmcli con up t ifname ens192")
	if got := ok(t, c, "ip -br addr show ens192; nmcli -g ipv4.addresses con show t"); !strings.Contains(got, "10.9.9.9/24") ||
		!strings.HasSuffix(got, "\n10.9.9.9/24\n") {
		t.Errorf("got %q", got)
	}
	if r := run(t, c, "nmcli con up nothing", ""); r.status != 10 || !strings.Contains(r.err, "unknown connection 'nothing'") {
		t.Errorf("got %+v", r)
	}
	id := ok(t, c, "cat /proc/sys/kernel/random/boot_id")
	ok(t, c, "reboot")
	again := l.reconnect("vm-01", "root", strings.Split(id, "\n")[0]+"\n")
	if got := ok(t, again, "ip -br addr show ens192; nmcli -t -f NAME,DEVICE con show --active"); !strings.Contains(got, "10.9.9.9/24") ||
		!strings.HasSuffix(got, "t:ens192\n") {
		t.Errorf("the profile did not come back: %q", got)
	}
}

// profile writes a profile of NetworkManager and makes it read its files.
func profile(t *testing.T, c *ssh.Client, name, nic, address string) {
	t.Helper()
	run(t, c, "umask 077; cat >/etc/NetworkManager/system-connections/"+name+".nmconnection; nmcli con reload",
		"[connection]\nid="+name+"\ntype=ethernet\ninterface-name="+nic+
			"\nautoconnect-priority=9\n[ethernet]\nmtu=9000\n[ipv4]\nmethod=manual\naddress1="+address+"\n")
}

func TestHotAddedAdapter(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 1, VMs: 1})
	c := l.dial("vm-01", "root")
	ok(t, c, "true")
	err := l.world.Update(func(s *world.State) ([]world.Event, error) {
		v := s.VM("vm-01")
		v.Adapters = append(v.Adapters, &world.Adapter{Type: world.PVRDMA, MAC: "00:50:56:0a:0b:0c", Slot: 224, Protocol: "rocev2",
			Connected: true})
		return []world.Event{{What: world.VMDevices, VM: "vm-01"}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ok(t, c, "ip -br link show ens224f0; rdma link"); !strings.HasPrefix(got, "ens224f0         DOWN") ||
		!strings.Contains(got, "link vmw_pvrdma0/1 state DOWN") {
		t.Errorf("got %q", got)
	}
}

// These kernels are built without the driver, regardless of their version.
func TestKernelsWithoutTheDriver(t *testing.T) {
	for os, kernel := range map[string]string{"debian-12": "6.1.0-26-amd64", "rhel-10": "6.12.0-55.9.1.el10_0.x86_64"} {
		t.Run(os, func(t *testing.T) {
			l := bare(t, "", 1)
			if err := l.world.Update(func(s *world.State) ([]world.Event, error) { s.VM("vm-01").Guest.OS = os; return nil, nil }); err != nil {
				t.Fatal(err)
			}
			c := l.dial("vm-01", "root")
			if r := run(t, c, "modprobe vmw_pvrdma", ""); r.err != "modprobe: FATAL: Module vmw_pvrdma not found in directory /lib/modules/"+kernel+
				"\n" {
				t.Errorf("got %+v", r)
			}
			if r := run(t, c, "modinfo vmw_pvrdma", ""); r.status != 1 || r.err != "modinfo: ERROR: Module vmw_pvrdma not found.\n" {
				t.Errorf("got %+v", r)
			}
			if r := run(t, l.dial("vm-01", "ubuntu"), "dmesg", ""); os == "debian-12" && r.status != 1 {
				t.Errorf("a user reads the kernel log: %+v", r)
			}
		})
	}
}
