package checks

// A Link is one link of the chain that RDMA hangs on, as the findings show it.
type Link struct {
	Name  LinkName       `json:"name"`
	Worst Status         `json:"status"`          // Unknown also where no row looked
	First *Finding       `json:"first,omitempty"` // the first of the worst, nil where all passed
	Count map[Status]int `json:"count"`
}

// A LinkName is the place of a row in the chain.
type LinkName string

// The links, first to last.
const (
	InBIOS     LinkName = "BIOS" // the machine: BIOS, slots, cards
	InFirmware LinkName = "firmware"
	InDriver   LinkName = "driver"
	InHost     LinkName = "host" // ESXi, and what vCenter and the cluster say of it
	InSwitch   LinkName = "switch"
	InVM       LinkName = "VM"
	InGuest    LinkName = "guest"
	InPair     LinkName = "pair"
)

// Links returns the chain in its order.
func Links() []LinkName {
	return []LinkName{InBIOS, InFirmware, InDriver, InHost, InSwitch, InVM, InGuest, InPair}
}
