//go:build e2e

package realtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"
)

// A server is one of the 64: a real sshd, or a listener that misbehaves.
type server struct {
	name  string
	says  string                                             // pattern of the evidence; "" for a guest that answers
	serve func(ctx context.Context, c net.Conn, real string) // nil: a real sshd
	none  bool                                               // nothing listens
}

func hung(ctx context.Context, c net.Conn, _ string) { <-ctx.Done() }

func reset(_ context.Context, c net.Conn, _ string) { _ = c.(*net.TCPConn).SetLinger(0) }

func banner(ctx context.Context, c net.Conn, _ string) {
	fmt.Fprint(c, "SSH-2.0-OpenSSH_9.2p1\r\n")
	<-ctx.Done()
}

// slow relays everything to a real sshd, one piece every 50 ms.
func slow(ctx context.Context, c net.Conn, real string) {
	behind, err := net.Dial("tcp", real)
	if err != nil {
		return
	}
	defer behind.Close()
	go func() {
		_, _ = io.Copy(behind, c)
		behind.Close()
	}()
	piece := make([]byte, 4096)
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		n, err := behind.Read(piece)
		if _, broken := c.Write(piece[:n]); err != nil || broken != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// TestE2EFanOut connects to 64 SSH servers at once, some of which hang, reset or respond very slowly: each gets its own verdict,
// and none delays the others.
func TestE2EFanOut(t *testing.T) {
	t.Parallel()
	const total = 64
	bad := map[int]server{
		7:  {name: "accepts and says nothing", serve: hung, says: "no SSH login at .* within"},
		15: {name: "resets", serve: reset, says: "closed the connection before the login"},
		23: {name: "greets and says nothing more", serve: banner, says: "no SSH login at .* within"},
		31: {name: "does not listen", none: true, says: "refused the connection"},
		39: {name: "is slow", serve: slow},
		47: {name: "accepts and says nothing, again", serve: hung, says: "no SSH login at .* within"},
		55: {name: "resets, again", serve: reset, says: "closed the connection before the login"},
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := lab(t, "--hosts", "8", "--vms", fmt.Sprint(total), "--scenario", "done")
	login := readKey(t, s.read("id_ed25519"))
	s.write("authorized", string(login.authorized))
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	known := string(s.read("known_hosts"))
	for i := range total {
		address := fmt.Sprintf("127.9.0.%d", i+1)
		host := newKey(t)
		known += knownhosts.Line([]string{fmt.Sprintf("%s:%d", address, port)}, host.signer.PublicKey()) + "\n"
		switch b := bad[i]; {
		case b.none:
		case b.serve != nil:
			real := fmt.Sprintf("127.9.1.%d", i+1)
			s.sshd(real, port, host)
			listen(ctx, t, fmt.Sprintf("%s:%d", address, port), fmt.Sprintf("%s:%d", real, port), b.serve)
		default:
			s.sshd(address, port, host)
		}
	}
	s.write("known_hosts", known)
	i := 0
	answers := labGuest.ReplaceAllStringFunc(string(s.read("answers-pvrdma.yaml")), func(string) string {
		i++
		return fmt.Sprintf("guest: {address: 127.9.0.%d, port: %d, user: %s}", i, port, me.Username)
	})
	file := s.write("answers-fanout.yaml", answers)
	started := time.Now()
	out, errs, _ := s.run("check", "-f", file, "--only", "GST-SUDO-002", "-o", "json")
	took := time.Since(started).Round(100 * time.Millisecond)
	t.Logf("64 servers were asked in %s", took)
	// Three of them take 45 s each, a quarter of the limit for guests, if one waits for the other.
	if took > 2*time.Minute {
		t.Errorf("servers that hang held up the others: %s", took)
	}
	var doc struct{ Results []finding }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v in %s%s", err, out, errs)
	}
	found := map[string]finding{}
	for _, f := range doc.Results {
		if f.ID == "GST-SUDO-002" {
			found[f.Target] = f
		}
	}
	for i := range total {
		vm := fmt.Sprintf("guest/vm-%02d", i+1)
		b, f := bad[i], found[vm]
		if b.says == "" && f.Status != "pass" || b.says != "" && f.Status != "unknown" {
			t.Errorf("%s (%s): %+v", vm, b.name, f)
		}
		if b.says != "" {
			s.says(f.Evidence, b.says)
			t.Logf("%s, which %s: %s", vm, b.name, f.Evidence)
		}
	}
}

// sshd runs a real sshd on a loopback address. The home of the user is empty: this test does not cover what the profile of the user
// who runs it does at every login, sixty times at once.
func (s *site) sshd(address string, port int, host key) {
	s.t.Helper()
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	config := s.write("sshd-"+address, fmt.Sprintf(`ListenAddress %s:%d
HostKey %s
PidFile none
AuthorizedKeysFile %s
UsePAM no
PasswordAuthentication no
StrictModes no
UseDNS no
SetEnv HOME=%s
`, address, port, s.write("hostkey-"+address, string(host.private)), filepath.Join(s.dir, "authorized"), s.state))
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-E", s.write("log-"+address, ""), "-f", config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for end := time.Now().Add(20 * time.Second); ; {
		c, err := net.Dial("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("sshd on %s: %v", address, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// listen serves connections incorrectly until ctx ends.
func listen(ctx context.Context, t *testing.T, address, real string, serve func(context.Context, net.Conn, string)) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(ctx, c, real)
			}()
		}
	}()
}
