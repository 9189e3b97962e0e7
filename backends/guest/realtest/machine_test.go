//go:build e2e

package realtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// bootTime is how long a guest may take to answer over SSH: without KVM it takes about 30 s on two idle cores.
const bootTime = 20 * time.Minute

// A machine is a guest in QEMU.
type machine struct {
	t      *testing.T
	name   string
	dir    string // its own: disk, console, sockets
	port   int    // of its sshd on 127.0.0.1
	mac    string // of the RDMA adapter
	rail2  string // MAC of a second one, in the same network; "" for none
	host   key    // of its sshd
	login  key    // accepted for every user
	peer   string // directory of the other end of the wire
	pvrdma bool   // QEMU's pvrdma device instead of soft-RoCE, with the packages installed
	image  string
	cmd    *exec.Cmd
	ended  chan struct{}
	mu     sync.Mutex
	client *ssh.Client // root's: a login takes an emulated processor more than a second
}

// start creates a fresh disk and starts QEMU with it. The guest has two NICs: one for SSH, without a route to other networks, and
// one on a private wire to its peer.
func (m *machine) start() error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"hostkey": m.host.private, "key": m.login.authorized} {
		if err := os.WriteFile(m.at(name), content, 0o600); err != nil {
			return err
		}
	}
	root := "root.ext4"
	if m.pvrdma || m.rail2 != "" {
		root = "rdma.ext4"
	}
	disk := exec.Command("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", filepath.Join(m.image, root), m.at("disk"))
	if out, err := disk.CombinedOutput(); err != nil {
		return fmt.Errorf("qemu-img: %w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	m.port = port
	return m.power()
}

// power starts QEMU.
func (m *machine) power() error {
	log, err := os.OpenFile(m.at("qemu.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// An emulated processor uses all available CPU time: the test program and other tests have priority, then the guests with
	// soft-RoCE, which have the most to do.
	command := []string{"-n", "5", "env"}
	if m.pvrdma {
		command = []string{"-n", "10", "env"}
		command = append(command, "LD_PRELOAD="+filepath.Join(m.image, "verbs.so"), "VERBS_MAD="+m.at("mad"))
	}
	m.cmd = exec.Command("nice", append(append(command, "qemu-system-x86_64"), m.args()...)...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	// If a test is killed, its guests are killed too.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	m.ended = make(chan struct{})
	go func() {
		_ = m.cmd.Wait()
		close(m.ended)
	}()
	return nil
}

// nic returns the name of the RDMA interface.
func (m *machine) nic() string {
	if m.pvrdma {
		return "ens192f0"
	}
	return "ens192"
}

func (m *machine) at(name string) string { return filepath.Join(m.dir, name) }

// stop ends QEMU and removes the disk.
func (m *machine) stop() {
	if m.client != nil {
		m.client.Close()
	}
	if m.cmd == nil || m.cmd.Process == nil {
		return
	}
	_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL)
	<-m.ended
	for _, name := range []string{"disk", "wire", "qmp", "mad"} {
		_ = os.Remove(m.at(name))
	}
}

// diagnose returns the console output of the machine before it failed.
func (m *machine) diagnose() string {
	console, _ := os.ReadFile(m.at("console"))
	log, _ := os.ReadFile(m.at("qemu.log"))
	// Slirp prints a line for every packet that it could not deliver, for example to a guest that reboots.
	said := slices.DeleteFunc(strings.Split(string(log), "\n"),
		func(line string) bool { return strings.Contains(line, "Slirp: Failed to send") })
	return fmt.Sprintf("%s: console:\n%s\nqemu: %s", m.name, lastPart(string(console), 60), lastPart(strings.Join(said, "\n"), 10))
}

func lastPart(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// dial logs in as root and accepts only the host key that was put into the guest.
func (m *machine) dial(ctx context.Context) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	addr := fmt.Sprintf("127.0.0.1:%d", m.port)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	end, _ := ctx.Deadline()
	_ = conn.SetDeadline(end)
	c, chans, reqs, err := ssh.NewClientConn(conn, addr, &ssh.ClientConfig{User: "root",
		Auth: []ssh.AuthMethod{ssh.PublicKeys(m.login.signer)}, HostKeyCallback: ssh.FixedHostKey(m.host.signer.PublicKey())})
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return ssh.NewClient(c, chans, reqs), nil
}

// try runs a script as root, for 25 minutes at most: two emulated guests take ten to install Docker on two idle cores.
func (m *machine) try(script string) (string, error) { return m.within(25*time.Minute, script) }

// within is try with a limit of its own: the connection does not end with a guest whose lease ends before its sshd.
func (m *machine) within(limit time.Duration, script string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, cancel := context.WithTimeout(m.t.Context(), limit)
	defer cancel()
	s, err := m.session(ctx)
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.name, err)
	}
	defer s.Close()
	c := m.client
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	var out, errs bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader(script), &out, &errs
	if err := s.Run("sh"); err != nil {
		return out.String(), fmt.Errorf("%s: %q: %w: %s", m.name, script, err, errs.String())
	}
	return out.String(), nil
}

// session returns a session of the existing connection, or of a new one if the guest was unreachable in between.
func (m *machine) session(ctx context.Context) (*ssh.Session, error) {
	if old := m.client; old != nil {
		stop := time.AfterFunc(30*time.Second, func() { old.Close() })
		s, err := old.NewSession()
		if stop.Stop() && err == nil {
			return s, nil
		}
		old.Close()
	}
	c, err := m.dial(ctx)
	if err != nil {
		return nil, err
	}
	m.client = c
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	return c.NewSession()
}

// run runs a script as root that must succeed.
func (m *machine) run(script string) string {
	m.t.Helper()
	out, err := m.try(script)
	if err != nil {
		m.t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(out)
}

// up waits until the guest answers with a boot id other than before.
func (m *machine) up(ctx context.Context, before string) error {
	ctx, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	last := errors.New("nobody answered")
	for {
		id, err := m.within(2*time.Minute, "cat /proc/sys/kernel/random/boot_id")
		if err == nil && id != before {
			return nil
		}
		if err != nil {
			last = err
		}
		select {
		case <-m.ended:
			return fmt.Errorf("QEMU ended; %s", m.diagnose())
		case <-ctx.Done():
			return fmt.Errorf("no login within %s: %w; %s", bootTime, last, m.diagnose())
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// reboot restarts the guest and waits for it.
func (m *machine) reboot() {
	before, err := m.try("cat /proc/sys/kernel/random/boot_id")
	if err == nil {
		_, _ = m.within(time.Minute, "systemctl reboot") // the connection ends with the guest, or is left
		err = m.up(m.t.Context(), before)
	}
	if err != nil {
		m.t.Error(err)
	}
}
