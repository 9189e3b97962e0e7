package sh

import (
	"io"
	"os"
	"syscall"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// Input opens an operand for reading; "-" and /dev/stdin are standard input.
func (p *Proc) Input(name string) (io.Reader, error) {
	if name == "-" || name == "/dev/stdin" {
		return p.Stdin, nil
	}
	f, err := p.Sys.FS.Open(p.User.Cred(), p.Path(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if i, err := f.Stat(); err != nil || i.IsDir() {
		return nil, syscall.EISDIR
	}
	return f, nil
}

// EachInput calls do for each operand, or for standard input if there are no operands. It prints an error for each file that
// cannot be read, and returns the largest exit status.
func (p *Proc) EachInput(names []string, do func(name string, r io.Reader) int) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	status := 0
	for _, name := range names {
		r, err := p.Input(name)
		if err != nil {
			status = max(status, p.Errorf("%s: %s", name, vfs.Reason(err)))
			continue
		}
		status = max(status, do(name, r))
	}
	return status
}
