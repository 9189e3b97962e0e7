package cmd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// socketPath returns a path of the socket in an open directory that is short enough whatever the path of the directory: sun_path of
// unix(7) has 108 bytes, and proc(5) provides an open directory as /proc/self/fd/N.
func socketPath(dir *os.File) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), controlSocket)
}

// peer returns who is at the other end of a connection (SO_PEERCRED of unix(7)).
func peer(c *net.UnixConn) string {
	var cred *syscall.Ucred
	raw, err := c.SyscallConn()
	if err == nil {
		bad := raw.Control(func(fd uintptr) {
			cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		})
		err = errors.Join(err, bad)
	}
	if err != nil {
		return "attach"
	}
	return fmt.Sprintf("attach, process %d, uid %d", cred.Pid, cred.Uid)
}
