// Package plain shows plans, events and findings as lines: for pipes, dumb terminals and logs. It draws nothing and
// moves no cursor.
package plain

import "github.com/rdma-setup/rdma-setup/backends"

// Clean is backends.Clean: nothing that comes from a machine is printed without it.
func Clean(s string) string { return backends.Clean(s) }
