//go:build e2e

package realtest_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// A key is an SSH key as files and as an object.
type key struct {
	private, authorized []byte
	signer              ssh.Signer
}

func newKey(t *testing.T) key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return readKey(t, pem.EncodeToMemory(block))
}

func readKey(t *testing.T, private []byte) key {
	t.Helper()
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key{private, ssh.MarshalAuthorizedKey(signer.PublicKey()), signer}
}

// bootAll starts a guest for each MAC, two of them with their second NICs on one wire, and those of the MACs in second too, and
// waits until all answer. Guests that do not boot are tried once more; nothing else is retried.
func bootAll(t *testing.T, login key, macs, second []string, pvrdma bool) []*machine {
	t.Helper()
	image := guestImage(t)
	base, err := os.MkdirTemp("", "rdma-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	guests := make([]*machine, len(macs))
	for i := range guests {
		name := fmt.Sprintf("guest-%d", i+1)
		guests[i] = &machine{t: t, name: name, dir: filepath.Join(base, name), peer: filepath.Join(base, fmt.Sprintf("guest-%d", 2-i)),
			mac: macs[i], rail2: append(second, make([]string, len(macs))...)[i], host: newKey(t), login: login, pvrdma: pvrdma, image: image}
	}
	t.Cleanup(func() {
		for _, m := range guests {
			if t.Failed() {
				keepConsole(t, m)
			}
			m.stop()
		}
	})
	started := time.Now()
	err = boot(t.Context(), guests)
	if err != nil {
		t.Logf("starting once more after: %v", err)
		for _, m := range guests {
			m.stop()
		}
		err = boot(t.Context(), guests)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d guests (%s) answered after %s", len(guests), accelerator(), time.Since(started).Round(time.Second))
	return guests
}

func boot(ctx context.Context, guests []*machine) error {
	var wg sync.WaitGroup
	errs := make([]error, len(guests))
	for i, m := range guests {
		if errs[i] = m.start(); errs[i] == nil {
			wg.Go(func() { errs[i] = m.up(ctx, "") })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// keepConsole copies the console of a machine to the cache and its end to the log.
func keepConsole(t *testing.T, m *machine) {
	t.Log(m.diagnose())
	cache, err := os.UserCacheDir()
	if err != nil {
		return
	}
	dir := filepath.Join(cache, "rdma-setup-e2e", "logs")
	console, err := os.ReadFile(m.at("console"))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		file := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+"-"+m.name+".console")
		if err = os.WriteFile(file, console, 0o644); err == nil {
			t.Logf("the whole console is in %s", file)
		}
	}
}

// qmp sends QEMU one command.
func (m *machine) qmp(command string, args map[string]any) {
	m.t.Helper()
	c, err := net.Dial("unix", m.at("qmp"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	answers := bufio.NewScanner(c)
	answers.Scan() // the greeting
	for _, order := range []map[string]any{{"execute": "qmp_capabilities"}, {"execute": command, "arguments": args}} {
		if err := json.NewEncoder(c).Encode(order); err != nil {
			m.t.Fatal(err)
		}
		answered := false
		for !answered && answers.Scan() {
			var a struct {
				Return any
				Error  any
				Event  string
			}
			if err := json.Unmarshal(answers.Bytes(), &a); err != nil || a.Error != nil {
				m.t.Fatalf("%s: %s: %v", m.name, answers.Text(), err)
			}
			answered = a.Event == ""
		}
		if !answered {
			m.t.Fatalf("%s: QEMU does not answer %s: %v", m.name, order["execute"], answers.Err())
		}
	}
}

// link unplugs the cable of the RDMA adapter, or plugs it in again.
func (m *machine) link(up bool) { m.qmp("set_link", map[string]any{"name": "rdma", "up": up}) }
