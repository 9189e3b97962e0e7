package answers

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A VMKNic names the vmknic of each host for PVRDMA's control traffic. If it is the same on all hosts it is written as just the
// name: vmk0.
type VMKNic struct {
	Name  string            `yaml:"name" json:"name"`
	Names map[string]string `yaml:"names" json:"names,omitempty"` // by host, for exceptions

	Create *VMKCreate `yaml:"create" json:"create,omitempty"` // instead of Name, for hosts that are not in Names
}

// Of returns the vmknic of a host, "" if it is created and has no name yet.
func (k VMKNic) Of(host string) string {
	if name := k.Names[host]; name != "" || k.Create != nil {
		return name
	}
	return k.Name
}

// String names them for display.
func (k VMKNic) String() string {
	var others []string
	for _, host := range sorted(k.Names) {
		others = append(others, k.Names[host]+" on "+host)
	}
	all := k.Name
	if k.Create != nil {
		all = fmt.Sprintf("created on %s, from %s", k.Create.PortGroup, k.Create.Start)
	}
	if len(others) == 0 {
		return all
	}
	return fmt.Sprintf("%s (%s)", all, strings.Join(others, ", "))
}

// short returns the part that a file can contain instead of the complete struct.
func (k *VMKNic) short() (value *string, alone bool) {
	return &k.Name, len(k.Names) == 0 && k.Create == nil
}

// MarshalJSON writes only the name if it is the same on every host.
func (k VMKNic) MarshalJSON() ([]byte, error) {
	if len(k.Names) == 0 && k.Create == nil {
		return json.Marshal(k.Name)
	}
	type fields VMKNic
	return json.Marshal(fields(k))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (k *VMKNic) UnmarshalJSON(b []byte) error {
	*k = VMKNic{}
	if json.Unmarshal(b, &k.Name) == nil {
		return nil
	}
	type fields VMKNic
	return json.Unmarshal(b, (*fields)(k))
}

func (c *checker) vmknic(k VMKNic, s Switch) {
	if k.Create == nil {
		c.vmk(k.Name, "pvrdma.vmknic")
	} else {
		if k.Name != "" {
			c.bad("pvrdma.vmknic.name", "remove one of both", "%q cannot be combined with create, which replaces it", clip(k.Name))
		}
		c.vmkCreate(*k.Create, s)
	}
	for _, host := range sorted(k.Names) {
		c.vmk(k.Names[host], "pvrdma.vmknic.names{"+host+"}")
	}
}

func (c *checker) vmk(k, path string) {
	if vmk.MatchString(k) {
		return
	}
	hint := ""
	if bare := strings.Trim(k, `"' `); vmk.MatchString(bare) {
		hint = "the quotes in the guides' screens are not part of the value: write " + bare
	} else if strings.EqualFold(bare, "vmko") {
		hint = "write vmk0 with the digit zero"
	}
	c.bad(path, hint, "%q is not a vmknic", clip(k))
}

// A VMKCreate says how to create a vmknic for PVRDMA's control traffic on each host. Hosts get the addresses of Network from
// Start on, sorted by name; used addresses are skipped.
type VMKCreate struct {
	PortGroup string       `yaml:"portgroup" json:"portgroup"` // of a distributed switch; created on the RDMA switch if it does not exist
	VLAN      int          `yaml:"vlan" json:"vlan"`
	Network   netip.Prefix `yaml:"network" json:"network"`
	Start     netip.Addr   `yaml:"start" json:"start"`
}

// Range returns the address range of these vmknics; the zero range if none are created.
func (k VMKNic) Range() backends.VMKRange {
	if k.Create == nil {
		return backends.VMKRange{}
	}
	return backends.VMKRange{PortGroup: k.Create.PortGroup, Network: k.Create.Network, Start: k.Create.Start}
}

// Creates reports whether the vmknic of a host should be created.
func (k VMKNic) Creates(host string) bool { return k.Create != nil && k.Names[host] == "" }

// noMachines are the networks whose addresses no machine can have: this network, loopback, link-local, multicast and reserved
// addresses (IANA, "IPv4 Special-Purpose Address Registry").
var noMachines = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3")}

func (c *checker) vmkCreate(k VMKCreate, s Switch) {
	const path = "pvrdma.vmknic.create"
	c.objectName(k.PortGroup, path+".portgroup")
	if k.PortGroup == s.Name && k.PortGroup != "" {
		c.bad(path+".portgroup", "give it a name of its own", "%q is also the name of the switch", clip(k.PortGroup))
	}
	if k.VLAN < 0 || k.VLAN > 4094 {
		c.bad(path+".vlan", "", "%d is not between 0 and 4094", k.VLAN)
	}
	switch {
	case !k.Network.IsValid():
		c.bad(path+".network", "", "is missing")
		return
	case !k.Network.Addr().Is4() || k.Network.Bits() > 30:
		c.bad(path+".network", "", "%s is not an IPv4 network with room for hosts", k.Network)
		return
	case slices.ContainsFunc(noMachines, k.Network.Overlaps):
		c.bad(path+".network", "", "%s has addresses that no machine can have", k.Network)
		return
	case k.Network != k.Network.Masked():
		c.bad(path+".network", "write "+k.Network.Masked().String(), "%s has bits set after its prefix", k.Network)
		return
	}
	switch {
	case !k.Start.IsValid():
		c.bad(path+".start", "", "is missing")
	case !k.Network.Contains(k.Start):
		c.bad(path+".start", "write an address of "+k.Network.String(), "%s is not in %s", k.Start, k.Network)
	case k.Start == k.Network.Addr():
		c.bad(path+".start", "write "+k.Start.Next().String(), "%s is the network's own address", k.Start)
	case k.Start == broadcast(k.Network):
		c.bad(path+".start", "write an earlier address", "%s is the broadcast address of the network", k.Start)
	}
}

// NoHCA reports whether hosts without an RDMA card are accepted.
func (a *Answers) NoHCA() bool { return a.Mode == PVRDMA && a.PVRDMA.AllowNoHCA }

// MayLackHCA reports whether pvrdma.allow_no_hca can be set: in mode pvrdma, with one rail.
func (a *Answers) MayLackHCA() bool { return a.Mode == PVRDMA && !a.Several() }
