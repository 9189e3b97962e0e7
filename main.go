// Command rdma-setup sets up RDMA over Converged Ethernet on vSphere: it finds the NICs, plans and makes the changes on hosts and
// guests, and proves that RDMA works.
package main

import (
	"os"

	"github.com/rdma-setup/rdma-setup/ui/cmd"
)

func main() { os.Exit(cmd.Main()) }
