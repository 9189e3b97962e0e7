package backends

import (
	"os"
	"slices"
	"strings"
)

// Environ returns the environment for child processes: the environment of this process without the passwords that were passed in
// it and without the address of vCenter, which may contain a password.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		ours := strings.HasPrefix(name, "RDMA_SETUP_") || strings.HasPrefix(name, "GOVC_")
		return ours && (strings.HasSuffix(name, "PASSWORD") || strings.HasSuffix(name, "_URL"))
	})
}
