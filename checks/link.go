package checks

// A Link is one link of the chain of RDMA's prerequisites, as the findings show it.
type Link struct {
	Name  LinkName       `json:"name"`
	Worst Status         `json:"status"`          // Unknown also if no row was evaluated
	First *Finding       `json:"first,omitempty"` // the first of the worst findings, nil if all passed
	Count map[Status]int `json:"count"`
}

// A LinkName is the place of a row in the chain.
type LinkName string

// The links, first to last.
const (
	InBIOS     LinkName = "BIOS" // the machine: BIOS, slots, cards
	InFirmware LinkName = "firmware"
	InDriver   LinkName = "driver"
	InHost     LinkName = "host" // ESXi, and the host's state in vCenter and the cluster
	InSwitch   LinkName = "switch"
	InVM       LinkName = "VM"
	InGuest    LinkName = "guest"
	InPair     LinkName = "pair"
)

// Links returns the chain in order.
func Links() []LinkName {
	return []LinkName{InBIOS, InFirmware, InDriver, InHost, InSwitch, InVM, InGuest, InPair}
}
