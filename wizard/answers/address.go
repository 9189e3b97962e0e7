package answers

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// An Address is the IPv4 address of an RDMA interface with its prefix length, or the word dhcp: then the prefix is invalid, and
// the guest gets its address from the DHCP server of the RDMA network.
type Address struct {
	netip.Prefix
	DHCP bool
}

// Given reports whether the answers say how the interface gets its address.
func (a Address) Given() bool { return a.DHCP || a.IsValid() }

// Of returns the address of the interface: the one in the answers, or with dhcp the first IPv4 address of i, which may be nil.
// The result is invalid if there is none.
func (a Address) Of(i *backends.Interface) netip.Prefix {
	if !a.DHCP || i == nil || !i.DHCP {
		return a.Prefix
	}
	for _, text := range i.Addresses {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
			return p
		}
	}
	return a.Prefix
}

// String returns the address in the form of the file.
func (a Address) String() string {
	if a.DHCP {
		return backends.DHCP
	}
	return a.Prefix.String()
}

// MarshalText writes the address in the form of the file, nothing if there is none.
func (a Address) MarshalText() ([]byte, error) {
	if a.DHCP {
		return []byte(backends.DHCP), nil
	}
	return a.Prefix.MarshalText()
}

// UnmarshalText parses 192.168.50.11/24 or dhcp.
func (a *Address) UnmarshalText(b []byte) error {
	if text := strings.TrimSpace(string(b)); strings.EqualFold(text, backends.DHCP) {
		*a = Address{DHCP: true}
		return nil
	}
	var p netip.Prefix
	if err := p.UnmarshalText(b); err != nil {
		return fmt.Errorf("answers: %w", err)
	}
	*a = Address{Prefix: p}
	return nil
}
