//go:build !linux

package cmd

import (
	"net"
	"os"
	"path/filepath"
)

// socketPath returns the path of the socket in an open directory: at most 104 bytes on macOS (unix(4)), or the run has no socket.
func socketPath(dir *os.File) string { return filepath.Join(dir.Name(), controlSocket) }

// peer returns who is at the other end of a connection. Package syscall returns the process and its user on Linux only.
func peer(*net.UnixConn) string { return "attach" }
