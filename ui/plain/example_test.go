package plain_test

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// Consecutive names are combined.
func ExampleNames() {
	fmt.Println(plain.Names([]string{"esx-01", "esx-02", "esx-03", "esx-04", "esx-07"}))
	// Output: esx-01 to esx-04, esx-07
}
