package perftest

import "fmt"

// roceOverhead is what RoCE v2 adds to each packet, bytes: Ethernet 14 + FCS 4 + preamble and gap 20 + IPv4 20 + UDP 8 +
// BTH 12 + ICRC 4.
const roceOverhead = 82

// expected is the goodput that a link gives at an IB MTU, in Gb/s, and the reason in words.
func expected(linkMbps, mtu int) (float64, string) {
	if linkMbps <= 0 {
		return 0, ""
	}
	if mtu <= 0 {
		mtu = 4096
	}
	share := float64(mtu) / float64(mtu+roceOverhead)
	link := float64(linkMbps) / 1000
	return link * share, fmt.Sprintf("%.0f Gb/s link at an IB MTU of %d carries %.1f %% payload", link, mtu, 100*share)
}
