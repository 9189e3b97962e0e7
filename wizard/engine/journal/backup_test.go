package journal_test

import (
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
)

// TestBackupNamesDoNotCollide: a/b and a_b are two hosts, and have separate files.
func TestBackupNamesDoNotCollide(t *testing.T) {
	root := t.TempDir()
	run := journal.NewRun(time.Now(), "pvrdma")
	j, err := journal.Create(root, journal.Header{Run: run, Made: time.Now(), Mode: "pvrdma"}, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	files := map[string]string{}
	for _, name := range []string{"host-a/b.tgz", "host-a_b.tgz", "host-a:b.tgz", "../host-a"} {
		file, err := journal.WriteBackup(root, run, name, []byte(name))
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := files[file]; taken {
			t.Errorf("%s and %s share %s", name, other, file)
		}
		files[file] = name
		if got, saved := journal.Backup(root, run, name); string(saved) != name || got != file {
			t.Errorf("%s is saved as %s, found as %s: %q", name, file, got, saved)
		}
	}
}
