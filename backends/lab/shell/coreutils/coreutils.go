// Package coreutils implements common Unix programs for files, text and processes. They support the options that scripts use;
// an unsupported option is an error and is never ignored.
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
