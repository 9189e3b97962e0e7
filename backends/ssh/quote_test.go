package ssh_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a b", "it's", "$(reboot)", "`id`", "-n", "\\", "a\nb", "\xff\xfe", "'''", "!$&;|<>*?[]{}~#",
		"\u202e\u0000x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+ssh.Quote(s)).Output()
		if want := strings.ReplaceAll(s, "\x00", ""); err != nil || string(out) != want {
			t.Fatalf("%q came back as %q, %v", want, out, err)
		}
	})
}
