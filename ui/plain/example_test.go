package plain_test

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/ui/plain"
)

// Names that follow one another are told as one.
func ExampleNames() {
	fmt.Println(plain.Names([]string{"esx-01", "esx-02", "esx-03", "esx-04", "esx-07"}))
	// Output: esx-01 to esx-04, esx-07
}
