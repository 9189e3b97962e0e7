package backends_test

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends"
)

// An error says what failed, where and why; what to do next stays apart, also when callers wrap it. Its kind decides the
// exit code.
func ExampleErrorf() {
	err := backends.Errorf(backends.KindPermission, "esx-03", "grant Host.Config.NetService to the account",
		"the firewall ruleset pvrdma could not be enabled: permission denied")
	err = fmt.Errorf("apply: %w", err)
	fmt.Println("error:", err)
	fmt.Println("hint: ", backends.HintOf(err))
	fmt.Println("kind: ", backends.KindOf(err))
	// Output:
	// error: apply: esx-03: the firewall ruleset pvrdma could not be enabled: permission denied
	// hint:  grant Host.Config.NetService to the account
	// kind:  permission
}
