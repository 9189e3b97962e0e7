package journal_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// disk counts the written bytes and those that a Sync has stored. If Sync has to be released, it waits; it fails with bad.
type disk struct {
	journal.File
	leave chan struct{}
	bad   error

	mu              sync.Mutex
	written, synced int
}

func (d *disk) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written += len(b)
	return d.File.Write(b)
}

func (d *disk) Sync() error {
	d.mu.Lock()
	n := d.written
	d.mu.Unlock()
	if d.leave != nil {
		<-d.leave
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced = n
	return d.bad
}

func (d *disk) state() (written, synced int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written, d.synced
}

// A record survives a loss of power once Append has returned: its bytes were synced before, also those of records that share a
// sync.
func TestAppendAnswersAfterTheSyncOfItsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		j := create(t, t.TempDir(), journal.WithFile(func(f journal.File) journal.File { d.File = f; return d }))
		if written, synced := d.state(); written == 0 || synced != written {
			t.Errorf("Create returned with %d of %d bytes synced", synced, written)
		}
		d.leave = make(chan struct{})
		answered := make(chan error, 3)
		for _, node := range []string{"a", "b", "c"} {
			go func() {
				answered <- j.Append(intent(node, nil, 1))
			}()
			synctest.Wait()
		}
		if len(answered) > 0 {
			t.Fatal("Append answered while the sync of its bytes was under way")
		}
		close(d.leave)
		for range 3 {
			if err := <-answered; err != nil {
				t.Error(err)
			}
		}
		if written, synced := d.state(); synced != written {
			t.Errorf("all is answered, with %d of %d bytes synced", synced, written)
		}
		_ = j.Close() // inside the bubble
	})
}

func TestAppendFailsWithItsSync(t *testing.T) {
	d := &disk{}
	j := create(t, t.TempDir(), journal.WithFile(func(f journal.File) journal.File { d.File = f; return d }))
	d.bad = errors.New("no such disk")
	if err := j.Append(intent("a", nil, 1)); !errors.Is(err, d.bad) {
		t.Errorf("Append: %v", err)
	}
	d.bad = nil
	if err := j.Append(intent("b", nil, 1)); err == nil {
		t.Error("a journal with records of which nobody knows whether they are on the disk takes more")
	}
}
