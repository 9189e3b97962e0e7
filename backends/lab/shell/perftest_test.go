package shell_test

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

// pair runs a test with the server on b and the client on a, and returns both outputs.
func pair(t *testing.T, l *lab, a, b, ip, command string) (client, server result) {
	t.Helper()
	sc, cc := l.dial(b, "root"), l.dial(a, "root")
	var wg sync.WaitGroup
	wg.Go(func() { server = run(t, sc, "timeout 60 "+command, "") })
	waiting(t, l, b)
	client = run(t, cc, "timeout 50 "+command+" "+ip, "")
	wg.Wait()
	return client, server
}

func waiting(t *testing.T, l *lab, vm string) {
	t.Helper()
	c := l.dial(vm, "root")
	defer c.Close()
	eventually(t, "a server on "+vm, func() bool { return run(t, c, "ss -ltn | grep -q :18515", "").status == 0 })
}

// gbps returns the average bandwidth by message size.
func gbps(out string) map[int]float64 {
	rows := map[int]float64{}
	for _, line := range strings.Split(out, "\n") {
		f := strings.Fields(line)
		if len(f) != 5 {
			continue
		}
		size, err := strconv.Atoi(f[0])
		avg, err2 := strconv.ParseFloat(f[3], 64)
		if err == nil && err2 == nil {
			rows[size] = avg
		}
	}
	return rows
}

const bw = "ib_send_bw -a -F --report_gbits -d rocep19s0f1 -x 1"

func TestBandwidthOfASoundFabric(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: "done"})
	client, server := pair(t, l, "vm-01", "vm-02", "192.168.50.12", bw)
	if client.status != 0 || server.status != 0 {
		t.Fatalf("client %+v\nserver %+v", client, server)
	}
	rows := gbps(client.out)
	if len(rows) != 23 {
		t.Errorf("%d rows", len(rows))
	}
	for size, want := range map[int][2]float64{64: {2, 3.5}, 1024: {35, 48}, 4096: {82, 92}, 65536: {95, 98}, 8 << 20: {95, 98}} {
		if got := rows[size]; got < want[0] || got > want[1] {
			t.Errorf("%d bytes: %.2f Gb/s, want %v", size, got, want)
		}
	}
	moved := func(host string) world.Counters {
		var c world.Counters
		l.world.View(func(s *world.State) { c = s.Host(host).PNIC("vmnic2").RDMA.Stats })
		return c
	}
	if a, b := moved("esx-01"), moved("esx-02"); a.BytesSent < 16e9 || a.BytesSent != b.BytesReceived || a.QueuePairs == 0 {
		t.Errorf("counters: %+v and %+v", a, b)
	}
	lat, _ := pair(t, l, "vm-01", "vm-02", "192.168.50.12", "ib_send_lat -a -F -d rocep19s0f1 -x 1")
	m := regexp.MustCompile(`(?m)^ 2 +1000 +(\S+) +\S+ +(\S+)`).FindStringSubmatch(lat.out)
	if m == nil {
		t.Fatalf("no row of 2 bytes in\n%s", lat.out)
	}
	if us, _ := strconv.ParseFloat(m[2], 64); us < 2 || us > 8 {
		t.Errorf("latency %s", m[2])
	}
}

// The output has the layout of perftest 6, including tabs and spaces.
func TestLayout(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: "done"})
	client, server := pair(t, l, "vm-01", "vm-02", "192.168.50.12", "ib_send_bw -s 65536 -n 50 -F --report_gbits -x 1")
	head := "---------------------------------------------------------------------------------------\n" +
		"                    Send BW Test\n Dual-port       : OFF\t\tDevice         : rocep19s0f1\n Number of qps   : 1\t\tTransport " +
		"type : IB\n" +
		" Connection type : RC\t\tUsing SRQ      : OFF\n PCIe relax order: ON\n ibv_wr* API     : OFF\n TX depth        : 50\n CQ " +
		"Moderation   : 1\n" +
		" Mtu             : 4096[B]\n Link type       : Ethernet\n GID index       : 1\n Max inline data : 0[B]\n rdma_cm QPs\t : OFF\n Data " +
		"ex. method : Ethernet\n" +
		"---------------------------------------------------------------------------------------\n local address: LID 0000 QPN 0x"
	if !strings.HasPrefix(client.out, head) {
		t.Errorf("got\n%s", client.out)
	}
	for _, want := range []string{
		` local address: LID 0000 QPN 0x[0-9a-f]{4} PSN 0x[0-9a-f]+\n GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:168:50:11\n`,
		` remote address: LID 0000 QPN 0x[0-9a-f]{4} PSN 0x[0-9a-f]+\n GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:168:50:12\n`,
		` #bytes     #iterations    BW peak\[Gb/sec\]    BW average\[Gb/sec\]   MsgRate\[Mpps\]\n`,
		` 65536      50               9\d\.\d\d              9\d\.\d\d  \t\t   0\.\d{6}\n-{87}\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(client.out) {
			t.Errorf("%s is not in\n%s", want, client.out)
		}
	}
	if want := "\n************************************\n* Waiting for client to connect... *\n************************************\n---"; !strings.HasPrefix(server.out, want) {
		t.Errorf("the server begins with\n%s", server.out)
	}
	if !strings.Contains(server.out, " RX depth        : 50\n") || !regexp.MustCompile(`(?m)^ 65536      50 +0\.00 `).MatchString(server.out) {
		t.Errorf("the server says\n%s", server.out)
	}
}

// A configuration error of one host or guest is visible in the measurement. What makes traffic fall back to TCP is proven in package
// fabric.
func TestWrongConfigurationShows(t *testing.T) {
	host := func(f func(h *world.Host)) func(*testing.T, *lab) {
		return func(t *testing.T, l *lab) {
			t.Helper()
			if err := l.world.Update(func(s *world.State) ([]world.Event, error) { f(s.Host("esx-02")); return nil, nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	guest := func(command string) func(*testing.T, *lab) {
		return func(t *testing.T, l *lab) { t.Helper(); ok(t, l.dial("vm-02", "root"), command) }
	}
	sw := func(f func(d *world.DVS)) func(*testing.T, *lab) {
		return func(t *testing.T, l *lab) {
			t.Helper()
			if err := l.world.Update(func(s *world.State) ([]world.Event, error) { f(s.Switch("RDMA-DVS")); return nil, nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	fallback := func(t *testing.T, l *lab, c, _ result) {
		rows := gbps(c.out)
		if c.status != 0 || rows[65536] < 10 || rows[65536] > 30 {
			t.Errorf("no TCP fallback: %d, %v", c.status, rows[65536])
		}
		l.world.View(func(s *world.State) {
			for _, h := range s.Hosts {
				if n := h.PNIC("vmnic2").RDMA; n != nil && n.Stats.BytesSent+n.Stats.BytesReceived > 0 {
					t.Errorf("%s counted RDMA traffic", h.Name)
				}
			}
		})
	}
	for _, tc := range []struct {
		name   string
		change func(*testing.T, *lab)
		check  func(t *testing.T, l *lab, client, server result)
	}{
		{"firewall forgotten on one host", host(func(h *world.Host) { h.Ruleset("pvrdma").Enabled = false }), fallback},
		{"25G uplink", host(func(h *world.Host) { h.PNIC("vmnic2").SpeedMbps = 25000 }), func(t *testing.T, _ *lab, c, _ result) {
			if got := gbps(c.out)[65536]; got < 23 || got > 25 {
				t.Errorf("%.2f Gb/s: %+v", got, c)
			}
		}},
		{"guest MTU 1500", guest("ip link set ens224f0 mtu 1500"), func(t *testing.T, _ *lab, c, _ result) {
			if got := gbps(c.out)[65536]; !strings.Contains(c.out, " Mtu             : 1024[B]\n") || got < 90 || got > 92.7 {
				t.Errorf("%.2f Gb/s\n%s", got, c.out)
			}
		}},
		{"switch MTU 1500: small messages pass, large ones die", sw(func(d *world.DVS) { d.MTU = 1500 }),
			func(t *testing.T, _ *lab, c, _ result) {
				if c.status == 0 || !strings.Contains(c.err, "Failed status 12: wr_id 0 syndrom 0x81") || gbps(c.out)[1024] == 0 ||
					gbps(c.out)[4096] != 0 {
					t.Errorf("%+v", c)
				}
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: "done"})
			l.dial("vm-02", "root")
			tc.change(t, l)
			c, s := pair(t, l, "vm-01", "vm-02", "192.168.50.12", "timeout 1 "+bw)
			tc.check(t, l, c, s)
		})
	}
}

func TestTestsThatShareAPortAreSlower(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 4, Scenario: "done"})
	const test = "ib_send_bw -s 65536 -F --report_gbits -x 1 -D "
	alone, _ := pair(t, l, "vm-01", "vm-02", "192.168.50.12", test+"2")
	var long result
	var wg sync.WaitGroup
	wg.Go(func() { long, _ = pair(t, l, "vm-01", "vm-02", "192.168.50.12", test+"40") })
	watch := l.dial("vm-01", "root")
	eventually(t, "the long test runs", func() bool { return run(t, watch, "pgrep -f '^ib_send_bw.*192.168.50.12'", "").status == 0 })
	second, _ := pair(t, l, "vm-03", "vm-04", "192.168.50.14", test+"2")
	wg.Wait()
	a, b, c := gbps(alone.out)[65536], gbps(second.out)[65536], gbps(long.out)[65536]
	if a < 95 || b > 55 || b < 45 || c < 50 || c >= a {
		t.Errorf("alone %.1f, beside a longer one %.1f, the longer one %.1f Gb/s", a, b, c)
	}
	same, _ := pair(t, l, "vm-01", "vm-03", "192.168.50.13", test+"2")
	if got := gbps(same.out)[65536]; got < 55 || got > 75 {
		t.Errorf("on the same host %.1f Gb/s: that is memory, not the link", got)
	}
}

func TestPerftestFailures(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: "done"})
	c := l.dial("vm-01", "root")
	const socket = "Unable to open file descriptor for socket connection Unable to init the socket connection\n"
	for _, tc := range []struct {
		command, err string
		status       int
	}{
		{"ib_send_bw -F 192.168.50.12", "Couldn't connect to 192.168.50.12:18515\n" + socket, 1},
		{"ib_send_bw -F -p 18777 192.168.50.12", "Couldn't connect to 192.168.50.12:18777\n" + socket, 1},
		{"ib_send_bw -F 192.168.50.77", "Couldn't connect to 192.168.50.77:18515\n" + socket, 1},
		{"ib_send_bw -F no-such-host",
			"Temporary failure in name resolution for no-such-host:18515\nProblem in resolving basic address and port\n" + socket, 1},
		{"ib_send_bw -d mlx5_0 192.168.50.12", "IB device mlx5_0 not found\n Unable to find the Infiniband/RoCE device\n", 1},
		{"ib_send_bw -i 2 192.168.50.12",
			" Unable to query port 2 attributes\n Couldn't set the link layer\n Couldn't get context for the device\n", 1},
		{"ib_send_bw -c UD 192.168.50.12", "Unable to create QP.\nFailed to create QP.\n Couldn't create IB resources\n", 1},
		{"ib_send_bw -a -D 5 192.168.50.12",
			"ib_send_bw: Duration mode currently doesn't support running on all sizes.\n Invalid Command or flag.\n Please check command line and " +
				"run again.\n\n", 1},
		{"ip link set ens224f0 down; ib_send_bw 192.168.50.12; x=$?; ip link set ens224f0 up; exit $x",
			" Port number 1 state is Down\n Couldn't set the link layer\n Couldn't get context for the device\n", 1},
	} {
		if r := run(t, c, tc.command, ""); r.err != tc.err || r.status != tc.status || r.out != "" {
			t.Errorf("%s: %+v", tc.command, r)
		}
	}
	if r := run(t, c, "ib_send_bw --version", ""); r != (result{"Version: 5.96\n", "", 1}) {
		t.Errorf("got %+v", r)
	}
	user := l.dial("vm-01", "ubuntu")
	if r := run(t, user, "ulimit -l 64; ib_send_bw 192.168.50.12", ""); r.status != 1 || !strings.Contains(r.err, "Couldn't allocate MR") {
		t.Errorf("little locked memory: %+v", r)
	}
	if client, _ := pair(t, l, "vm-01", "vm-02", "192.168.50.12", "ib_send_bw -F -x 0"); client.status != 0 {
		t.Errorf("link-local to link-local: %+v", client)
	}
}

// Without a terminal, a server's output is buffered, and it is lost if the server is killed.
func TestHangsAndBuffers(t *testing.T) {
	l := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: "done"})
	c := l.dial("vm-01", "root")
	if r := run(t, c, "timeout 0.2 ib_send_bw -F", ""); r != (result{"", "", 124}) {
		t.Errorf("got %+v", r)
	}
	if r := run(t, c, "timeout 0.2 stdbuf -oL ib_send_bw -F", ""); r.status != 124 || !strings.Contains(r.out, "Waiting for client") {
		t.Errorf("got %+v", r)
	}
	var wg sync.WaitGroup
	var first result
	wg.Go(func() { first = run(t, c, "timeout 2 ib_send_bw -F", "") })
	waiting(t, l, "vm-01")
	if r := run(t, l.dial("vm-01", "root"), "ib_send_bw -F", ""); r.status != 1 || !strings.Contains(r.err, "Couldn't listen to port 18515") {
		t.Errorf("a second server on one port: %+v", r)
	}
	ok(t, l.dial("vm-01", "root"), "pkill ib_send_bw")
	wg.Wait()
	if first.status != 143 {
		t.Errorf("got %+v", first)
	}
	// If the peer is killed during the test, the client waits forever.
	sc := l.dial("vm-02", "root")
	wg.Go(func() { run(t, sc, "ib_send_bw -D 600 -F", "") })
	waiting(t, l, "vm-02")
	var client result
	cc, err := ssh.Dial("tcp", mustGuest(t, l, "vm-01"), l.config("root"))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	wg.Go(func() { client = run(t, cc, "timeout 1.5 ib_send_bw -D 600 -F 192.168.50.12", "") })
	peer := l.dial("vm-02", "root")
	eventually(t, "the server has its client", func() bool { return run(t, peer, "ss -ltn | grep -q :18515", "").status == 1 })
	if err := l.world.PowerOff("vm-02"); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if client.status != 124 {
		t.Errorf("the client ended by itself: %+v", client)
	}
}

func mustGuest(t *testing.T, l *lab, vm string) string {
	t.Helper()
	addr, err := l.servers.Guest(vm)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// From version 5.70 on, perftest rejects older versions, as client and as server. Two older versions work with each other.
func TestReleasesThatRefuseEachOther(t *testing.T) {
	const refused = "Current implementation is not compatible with versions older than 5.70\n"
	for name, tc := range map[string]struct {
		old            []string
		client, server string // output
		status         int
	}{
		"the client is older": {[]string{"vm-01"}, "Failed to exchange data between server and clients\n", refused, 1},
		"the server is older": {[]string{"vm-02"}, refused, "Failed to exchange data between server and clients\n", 1},
		"both are older":      {[]string{"vm-01", "vm-02"}, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, scenario.Spec{Hosts: 2, VMs: 2, Scenario: "done"})
			l.world.View(func(s *world.State) {
				for _, vm := range tc.old {
					s.VM(vm).Guest.Defects = append(s.VM(vm).Guest.Defects, world.OldPerftest)
				}
			})
			client, server := pair(t, l, "vm-01", "vm-02", "192.168.50.12", "ib_send_bw -F --report_gbits -s 65536 -d rocep19s0f1 -x 1")
			if client.status != tc.status || server.status != tc.status || !strings.HasSuffix(client.err, tc.client) ||
				!strings.HasSuffix(server.err, tc.server) {
				t.Errorf("client %+v\nserver %+v", client, server)
			}
		})
	}
}
