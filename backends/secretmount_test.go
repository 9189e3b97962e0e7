package backends

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSecretsOfContainers: only root's files below /run/secrets that nobody else may write to count as secrets that a container
// runtime has mounted. A read-only mount cannot be created here without privileges.
func TestSecretsOfContainers(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		uid  uint32
		mode os.FileMode
		want bool
	}{
		{"/run/secrets/vcenter", 0, 0o444, true},
		{"/run/secrets/vcenter", 0, 0o644, true},
		{"/run/secrets/team/vcenter", 0, 0o444, true},
		{"/run/secrets/vcenter", 0, 0o666, false},
		{"/run/secrets/vcenter", 1000, 0o444, false},
		{"/run/secrets/../vcenter", 0, 0o444, false},
		{"/run/secrets", 0, 0o444, false},
		{plain, 0, 0o444, false},
	} {
		if got := containerSecret(tt.path, tt.uid, tt.mode); got != tt.want {
			t.Errorf("%s of uid %d, mode %#o: %t", tt.path, tt.uid, tt.mode, got)
		}
	}
}
