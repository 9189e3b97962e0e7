package answers

import (
	"net/netip"
	"slices"
	"testing"
)

// Adapters get tables of their own if they share a subnet, and none if each has its own.
func TestTable(t *testing.T) {
	for name, c := range map[string]struct {
		ips  []string
		want []int
	}{
		"one":             {[]string{"10.0.0.1/24"}, []int{0}},
		"own subnets":     {[]string{"10.0.0.1/24", "10.0.1.1/24"}, []int{0, 0}},
		"one subnet":      {[]string{"10.0.0.1/24", "10.0.0.2/24"}, []int{5001, 5002}},
		"two of three":    {[]string{"10.0.0.1/24", "10.0.1.1/24", "10.0.0.2/24"}, []int{5001, 0, 5003}},
		"DHCP beside one": {[]string{"10.0.0.1/24", ""}, []int{0, 0}},
	} {
		var all []Adapter
		for _, ip := range c.ips {
			a := Adapter{PortGroup: ip}
			if a.IP.DHCP = ip == ""; ip != "" {
				a.IP.Prefix = netip.MustParsePrefix(ip)
			}
			all = append(all, a)
		}
		var got []int
		for _, a := range all {
			got = append(got, Table(all, a))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
