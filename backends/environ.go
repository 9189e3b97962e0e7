package backends

import (
	"os"
	"slices"
	"strings"
)

// Environ is the environment for programs that this one starts: its own, without the passwords that were handed to it and
// the address of the vCenter, which may hold one.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		ours := strings.HasPrefix(name, "RDMA_SETUP_") || strings.HasPrefix(name, "GOVC_")
		return ours && (strings.HasSuffix(name, "PASSWORD") || strings.HasSuffix(name, "_URL"))
	})
}
