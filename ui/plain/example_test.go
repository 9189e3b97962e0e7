package plain_test

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// Consecutive names are combined.
func ExampleFewNames() {
	fmt.Println(plain.FewNames([]string{"vm-01", "vm-03", "vm-05", "vm-06", "vm-07", "vm-08", "vm-10", "vm-12"}, 3))
	// Output: vm-01, vm-03, vm-05 to vm-08, and 2 more
}

func ExampleNames() {
	fmt.Println(plain.Names([]string{"esx-01", "esx-02", "esx-03", "esx-04", "esx-07"}))
	// Output: esx-01 to esx-04, esx-07
}
