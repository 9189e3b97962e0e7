package scan_test

import (
	"regexp"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

func TestUnfold(t *testing.T) {
	starts := regexp.MustCompile(`vmnic[0-9]+ `)
	for _, c := range []struct{ name, in, want string }{
		{"one line", "Name PCI ----- --- vmnic0 a vmnic1 b", "Name PCI\n----- ---\n\nvmnic0 a \nvmnic1 b\n"},
		{"a line of a longer text", "Name\nvmnic0 a vmnic1 b\nvmnic2 c", "Name\n\nvmnic0 a \nvmnic1 b\nvmnic2 c\n"},
		{"rows stay", "Name\nrow vmnic0 a\nrow vmnic2 c", "Name\nrow vmnic0 a\nrow vmnic2 c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := scan.Unfold(c.in, starts); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
