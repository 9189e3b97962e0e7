// Package coreutils holds the programs that every Unix has: files, text, processes. They know the options that
// scripts use; an option that they do not know is refused, never ignored.
package coreutils

import (
	"maps"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/textutils"
)

// Programs returns the programs by name.
func Programs() map[string]sh.Program {
	all := map[string]sh.Program{}
	for _, group := range []map[string]sh.Program{filePrograms(), listPrograms(), textutils.Programs(), processPrograms(), miscPrograms()} {
		maps.Copy(all, group)
	}
	return all
}
