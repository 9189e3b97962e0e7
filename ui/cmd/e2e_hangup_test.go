//go:build e2e

package cmd_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

// TestE2EJumpHostIsLost starts apply in a terminal on a real sshd, as on a jump host, and cuts the connection while the first host
// reboots. The run continues to its end, a resume has nothing to do, and rollback restores the start.
func TestE2EJumpHostIsLost(t *testing.T) {
	t.Parallel()
	s := serve(t, "--hosts", "2", "--vms", "2", "--reboot-time", "1s")
	file := s.lossless()
	start := s.facts()
	s.must(0, "apply", "-f", file, "--yes", "-o", "json")
	end := s.facts()
	s.must(0, "rollback", "--yes", "-o", "json")
	if err := os.RemoveAll(filepath.Join(s.state, "rdma-setup", "runs")); err != nil {
		t.Fatal(err)
	}

	said := &listener{}
	cut := s.remotely(said, "apply", "-f", file, "--yes")
	until(t, "a host reboots", func() bool {
		journal := s.journal()
		return strings.Contains(journal, `"type":"closing"`) && strings.Contains(journal, "host-reboot")
	})
	if strings.Contains(s.journal(), `"type":"result"`) {
		t.Fatalf("the run has ended before the connection was lost\n%s", tail(said.String()))
	}
	cut()
	// The result is written before the process ends; until then the run counts as running.
	var out string
	until(t, "the run ends", func() bool {
		out, _ = s.must(0, "runs", "-o", "json")
		return strings.Contains(s.journal(), `"type":"result"`) && !strings.Contains(out, `"status": "running"`)
	})
	if !strings.Contains(out, `"status": "done"`) {
		t.Errorf("runs:\n%s", out)
	}
	s.must(0, "resume", "--yes", "-o", "json")
	if diff := cmp.Diff(end, s.facts()); diff != "" {
		t.Errorf("it ended elsewhere:\n%s", diff)
	}
	s.must(0, "rollback", "--yes", "-o", "json")
	if diff := cmp.Diff(start, s.facts()); diff != "" {
		t.Errorf("rolled back to another start:\n%s", diff)
	}
}

// journal returns the text of the journals of all runs.
func (s *site) journal() string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.state, "rdma-setup", "runs", "*", "journal.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	var all bytes.Buffer
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			s.t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// remotely starts the program in a terminal of a real sshd on loopback. cut ends the connection without a message.
func (s *site) remotely(said *listener, args ...string) (cut func()) {
	s.t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		s.t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	// One key is used for both sides.
	conn := s.sshd(s.file("key", pem.EncodeToMemory(block)), s.file("authorized", ssh.MarshalAuthorizedKey(signer.PublicKey())))
	me, err := user.Current()
	if err != nil {
		s.t.Fatal(err)
	}
	c, chans, reqs, err := ssh.NewClientConn(conn, conn.RemoteAddr().String(), &ssh.ClientConfig{
		User: me.Username, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(signer.PublicKey()),
	})
	if err != nil {
		s.t.Fatalf("log in to sshd: %v", err)
	}
	client := ssh.NewClient(c, chans, reqs)
	s.t.Cleanup(func() { client.Close() })
	session, err := client.NewSession()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := session.RequestPty("xterm-256color", 30, 100, ssh.TerminalModes{}); err != nil {
		s.t.Fatal(err)
	}
	session.Stdout = said
	script := &strings.Builder{}
	for _, kv := range s.env {
		if name, value, _ := strings.Cut(kv, "="); !strings.ContainsAny(name, "%() ") {
			fmt.Fprintf(script, "export %s=%s\n", name, quoted(value))
		}
	}
	fmt.Fprintf(script, "export TERM=xterm-256color\nexec %s", quoted(s.bin))
	for _, a := range args {
		script.WriteString(" " + quoted(a))
	}
	if err := session.Start("/bin/sh " + quoted(s.file("start.sh", []byte(script.String()+"\n")))); err != nil {
		s.t.Fatal(err)
	}
	return func() {
		if tcp, is := conn.(*net.TCPConn); is {
			_ = tcp.SetLinger(0) // sends a TCP reset, without closing SSH properly
		}
		_ = conn.Close()
	}
}

func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func (s *site) file(name string, text []byte) string {
	s.t.Helper()
	path := filepath.Join(s.state, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// sshd runs a real sshd and connects to it.
func (s *site) sshd(hostKey, authorized string) net.Conn {
	s.t.Helper()
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	config := s.file("sshd_config", fmt.Appendf(nil, "ListenAddress %s\nHostKey %s\nPidFile none\nAuthorizedKeysFile %s\nUsePAM no\n"+
		"PasswordAuthentication no\nStrictModes no\nUseDNS no\n", at, hostKey, authorized))
	log := filepath.Join(s.state, "sshd.log")
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-E", log, "-f", config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if b, err := os.ReadFile(log); err == nil && s.t.Failed() {
			s.t.Logf("sshd: %s", b)
		}
	})
	var conn net.Conn
	until(s.t, "sshd listens", func() bool {
		conn, err = net.Dial("tcp", at)
		return err == nil
	})
	return conn
}
