package lab_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25/types"
	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// held contains the number of resources that a lab uses.
type held struct{ files, goroutines, filters int }

func holds(t *testing.T, l *lab.Lab) held {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return held{len(files), runtime.NumGoroutine(), l.Filters()}
}

// TestNothingGrows repeats the steps of check --watch: it logs in, watches, runs a command in a guest and disconnects. Garbage
// collection is disabled, because it would close files that were left open.
func TestNothingGrows(t *testing.T) {
	l := start(t, lab.Options{Hosts: 1, VMs: 1, Dir: t.TempDir()})
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	round := func() {
		c := login(t, l)
		ctx := t.Context()
		if _, err := property.DefaultCollector(c).CreateFilter(ctx, types.CreateFilter{Spec: types.PropertyFilterSpec{
			ObjectSet: []types.ObjectSpec{{Obj: c.ServiceContent.RootFolder}},
			PropSet:   []types.PropertySpec{{Type: "Folder", PathSet: []string{"name"}}},
		}}); err != nil {
			t.Fatal(err)
		}
		if err := session.NewManager(c).Logout(context.WithoutCancel(ctx)); err != nil {
			t.Fatal(err)
		}
		c.CloseIdleConnections()
		ask(t, l)
	}
	for range 3 {
		round()
	}
	before := holds(t, l)
	const rounds = 25
	for range rounds {
		round()
	}
	// A side notices a moment later that the other side has closed a connection.
	const some = 8
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); ; <-tick.C {
		now := holds(t, l)
		if now.files <= before.files+some && now.goroutines <= before.goroutines+some && now.filters <= before.filters {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d rounds: from %+v to %+v", rounds, before, now)
		}
	}
}

// A killed client does not log out. Its filters are removed after the idle timeout of its session.
func TestIdleSessionsLoseTheirFilters(t *testing.T) {
	l := start(t, lab.Options{Hosts: 1, VMs: 1, Dir: t.TempDir(), Idle: 300 * time.Millisecond})
	c := login(t, l)
	if _, err := property.DefaultCollector(c).CreateFilter(t.Context(), types.CreateFilter{Spec: types.PropertyFilterSpec{
		ObjectSet: []types.ObjectSpec{{Obj: c.ServiceContent.RootFolder}},
		PropSet:   []types.PropertySpec{{Type: "Folder", PathSet: []string{"name"}}},
	}}); err != nil {
		t.Fatal(err)
	}
	if n := l.Filters(); n != 1 {
		t.Fatalf("%d filters, want 1", n)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); l.Filters() > 0; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("the filter of a session that is over is still there")
		}
		login(t, l)
		_, _ = session.NewManager(login(t, l)).UserSession(t.Context()) // a call with a new session cookie
	}
}

// ask runs a script in the guest that reads files and writes to pipes.
func ask(t *testing.T, l *lab.Lab) {
	t.Helper()
	addr := ""
	l.World().View(func(s *world.State) {
		addr = net.JoinHostPort(s.VMs[0].Guest.Address, strconv.Itoa(s.VMs[0].Guest.Port))
	})
	pem, err := os.ReadFile(filepath.Join(l.Dir(), "id_ed25519"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: "ubuntu", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if out, err := s.CombinedOutput(
		"read -r name < /etc/hostname; while read -r l; do echo $l; done < /etc/hosts | head -n 1; cat < /etc/passwd >/dev/null\ncat " +
			"<<EOF\n$name\nEOF"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
