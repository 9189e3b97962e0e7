package perftest

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// A Path is the result of small and large pings from the client to the server, before any load.
type Path struct {
	Loss    float64 `json:"loss"`              // percent of small pings without an answer
	Payload int     `json:"payload,omitempty"` // largest ping payload in bytes that arrived unfragmented; 0: none
	PeerMAC string  `json:"peer_mac,omitempty"`
}

const (
	pings   = 5
	roceMTU = 4200 // the smallest Ethernet MTU that carries an RDMA MTU of 4096
)

var (
	pingSent  = regexp.MustCompile(`(\d+) packets transmitted, (\d+) (?:packets )?received`)
	pingSize  = regexp.MustCompile(`(?m)^payload (\d+)$`)
	neighbour = regexp.MustCompile(`(?m)^(\S+) .*\blladdr ([0-9a-fA-F:]{17})`)
)

// path pings the server from the client's guest; nil if there is no result, as in a guest without ping.
func (r *Runner) path(ctx context.Context, p Pair) *Path {
	if p.Server.IP == "" {
		return nil
	}
	line := "set -- " + strconv.Itoa(pings) + " " + quote(p.Server.IP) + " " + strings.Join(r.payloads(p), " ") + "\n" +
		assets.Script("ping.sh")
	out, err := r.Shell.Exec(ctx, p.Client.VM, Command{Line: line})
	if err != nil {
		return nil
	}
	m := pingSent.FindStringSubmatch(out.Stdout)
	if m == nil {
		return nil
	}
	sent, got := number(m[1]), number(m[2])
	if sent == 0 {
		return nil
	}
	path := &Path{Loss: 100 * float64(sent-got) / float64(sent)}
	if m := pingSize.FindStringSubmatch(out.Stdout); m != nil {
		path.Payload = number(m[1])
	}
	for _, m := range neighbour.FindAllStringSubmatch(out.Stdout, -1) {
		if m[1] == p.Server.IP {
			path.PeerMAC = strings.ToLower(m[2])
		}
	}
	return path
}

// smallFrames names the MTU of a hop as the cause of a test whose packets were not acknowledged, if pings of that size are lost
// and small ones are not.
func (m *Measurement) smallFrames(way *Path, p Pair) {
	const overhead = roceMTU - 4096 // bytes of a frame in addition to the RDMA payload, with a margin
	if !strings.HasPrefix(m.Hint, lostPackets) || way == nil || way.Loss >= 100 || m.MTU <= 0 ||
		way.Payload >= sizing.PingPayload(m.MTU+overhead, false) {
		return
	}
	large := "messages"
	if len(m.Rows) > 0 {
		large = fmt.Sprintf("messages of more than %d bytes", m.Rows[len(m.Rows)-1].Bytes)
	}
	pinged := "large pings too"
	if way.Payload > 0 {
		pinged = fmt.Sprintf("pings of more than %d bytes too", way.Payload)
	}
	m.Hint = fmt.Sprintf(
		"%s are lost, and %s: a hop between %s and %s allows only smaller frames than an RDMA MTU of %d needs; raise the MTU of every switch "+
			"port on the way",
		large, pinged, p.Client.Host, p.Server.Host, m.MTU)
}

// payloads returns the sizes of large pings, largest first: for the requested MTU, for an RDMA MTU of 4096, and for 1500.
func (r *Runner) payloads(p Pair) []string {
	want := cmp.Or(p.Client.FrameMTU, r.EthernetMTU)
	if want <= 0 {
		want = 9000
	}
	var out []string
	for _, mtu := range []int{want, roceMTU, 1500} {
		if s := strconv.Itoa(sizing.PingPayload(mtu, false)); mtu <= want && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// number parses digits; an overflow is 0.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
