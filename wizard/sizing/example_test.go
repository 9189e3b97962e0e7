package sizing_test

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Four A100 with 80 GB: Broadcom's rule results in 1024 GB, as in the guide's own example.
func ExampleMMIO() {
	w, err := sizing.MMIO([]sizing.GPUCount{{Model: "a100-80g", Count: 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("pciPassthru.64bitMMIOSizeGB:", w.KB, "needed:", w.Needed)
	// Output: pciPassthru.64bitMMIOSizeGB: 1024 needed: true
}

// DSCP 26 falls into priority 3, which PFC protects by bit 3; with ECN a guest marks its packets with 106.
func ExampleTrafficClass() {
	const priority = 26 / 8
	mask, _ := sizing.PFCMask(priority)
	fmt.Printf("priority %d, pfctx 0x%02x, traffic class %d\n", priority, mask, sizing.TrafficClass(26, true))
	// Output: priority 3, pfctx 0x08, traffic class 106
}

// The same port, with and without jumbo frames on the path to its peer.
func ExampleGoodput() {
	for _, ethernet := range []int{9000, 1500} {
		ib := sizing.IBMTU(ethernet)
		fmt.Printf("MTU %d: IB MTU %d, %.1f %% of the link\n", ethernet, ib, 100*sizing.Goodput(ib, false))
	}
	// Output:
	// MTU 9000: IB MTU 4096, 98.0 % of the link
	// MTU 1500: IB MTU 1024, 92.6 % of the link
}
