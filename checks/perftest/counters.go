package perftest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
)

// Counters are the increases of the counters of one side during a test, by name: those of the RDMA device and of the interface in
// the guest by the kernel's names, those of the host's pNIC with the prefix "pnic_".
type Counters map[string]int64

// Sides are the counters of both ends of a test.
type Sides struct {
	From Counters `json:"from"`
	To   Counters `json:"to"`
}

// The counters of the RDMA device that indicate lost packets, by the side that sees them. mlx5 has the first six (NVIDIA, "RDMA
// counters"; drivers/infiniband/hw/mlx5/counters.c), soft-RoCE the others (drivers/infiniband/sw/rxe/rxe_hw_counters.c).
var lossCounters = []string{
	"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "implied_nak_seq_err", "roce_adp_retrans", "roce_slow_restart",
	"out_of_seq_request", "rcvd_seq_err", "completer_retry_err", "retry_exceeded_err",
}

// discardCounters count packets that an interface or a pNIC dropped (kernel mlx5 counters.rst; esxcli network nic stats).
var discardCounters = regexp.MustCompile(
	`^(rx_discards_phy|tx_discards_phy|[rt]x_prio[0-7]_(discards|cong_discard|buf_discard)|pnic_[rt]x_dropped)$`)

// otherCounters are recorded too: receivers that were not ready, the congestion control of RoCE v2, and what the
// device carried.
var otherCounters = []string{
	"rnr_nak_retry_err", "out_of_buffer", "duplicate_request", "rcvd_rnr_err", "send_rnr_err",
	"np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored", "np_ecn_marked_roce_packets", "port_xmit_data", "port_rcv_data",
}

// perPriority matches the counters of a port for each priority; mlx5 shows them to the owner of the port, never to a VF: kernel
// mlx5 counters.rst, "Physical port counters are not exposed to virtual machines".
var perPriority = regexp.MustCompile(`^(pnic_)?([rt]x)_prio([0-7])_(bytes|packets|pause)$|^pnic_pfc_(sent|received)_prio([0-7])$`)

func kept(name string) bool {
	return slices.Contains(lossCounters, name) || slices.Contains(otherCounters, name) || discardCounters.MatchString(name) ||
		perPriority.MatchString(name)
}

// readCounters reads the current counters of a guest, and of the host if a channel to it exists. Unreadable ones are left out; the
// error says why.
func (r *Runner) readCounters(ctx context.Context, n Node) (Counters, error) {
	out := Counters{}
	var failed error
	if r.Loss {
		line := "set -- " + quote(n.Device) + "\n" + assets.Script("rdma-counters.sh")
		said, err := r.Shell.Exec(ctx, n.VM, Command{Line: line})
		failed = err
		for _, l := range strings.Split(said.Stdout, "\n") {
			name, value, _ := strings.Cut(strings.TrimSpace(l), " ")
			if v, bad := strconv.ParseInt(value, 10, 64); err == nil && bad == nil && kept(name) {
				out[name] = v
			}
		}
	}
	if r.HostCounters != nil && n.Host != "" && n.Port != "" {
		host, err := r.HostCounters(ctx, n.Host, n.Port)
		if err != nil {
			return out, errors.Join(failed, err)
		}
		for name, v := range host {
			out["pnic_"+name] = v
		}
	}
	return out, failed
}

// both reads the counters of both ends at the same time. After one test of a pair they are those before the next, unless one of
// them could not be read.
func (r *Runner) both(ctx context.Context, p Pair) Sides {
	s, _ := backends.Again(ctx, "counters", func() (s Sides, err error) {
		var other error
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.To, other = r.readCounters(ctx, p.Server)
		}()
		s.From, err = r.readCounters(ctx, p.Client)
		<-done
		return s, errors.Join(err, other)
	})
	return s
}

// since returns the increases since an earlier reading. A counter that only one of the two has is left out, and so is one that
// decreased, because it was reset. Priorities that did not change are left out as well, except for the pause frames of the class:
// zero differs from unread.
func (c Counters) since(before Counters, class *Class) Counters {
	out := Counters{}
	for name, now := range c {
		was, ok := before[name]
		still := now == was && perPriority.MatchString(name) && (class == nil || !slices.Contains(pauseNames(class.Priority), name))
		if !ok || now < was || still {
			continue
		}
		out[name] = now - was
	}
	return out
}

// known reports whether any counter was read.
func (s *Sides) known() bool { return s != nil && len(s.From)+len(s.To) > 0 }

// Lost returns how many lost or repeated packets a side saw, and the counter with the highest value; ok is false if no such
// counter was read.
func (c Counters) Lost() (n int64, counter string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if !slices.Contains(lossCounters, name) && !discardCounters.MatchString(name) {
			continue
		}
		ok = ok || slices.Contains(lossCounters, name)
		if v := c[name]; v > 0 {
			n += v
			if counter == "" || v > c[counter] {
				counter = name
			}
		}
	}
	return n, counter, ok
}

// Lost adds up both sides and names the highest counter: "out_of_sequence +12 on vm-02".
func (m *Measurement) Lost() (n int64, where string, ok bool) {
	if m.Counters == nil {
		return 0, "", false
	}
	if m.Load != "" {
		n, counter, ok := m.senderLost()
		if n > 0 {
			where = fmt.Sprintf("%s +%d on %s", counter, n, m.From)
		}
		return n, where, ok
	}
	most := int64(0)
	for _, side := range []struct {
		vm string
		c  Counters
	}{{m.From, m.Counters.From}, {m.To, m.Counters.To}} {
		lost, counter, known := side.c.Lost()
		n, ok = n+lost, ok || known
		if counter != "" && side.c[counter] > most {
			most, where = side.c[counter], fmt.Sprintf("%s +%d on %s", counter, side.c[counter], side.vm)
		}
	}
	return n, where, ok || n > 0
}

// lostIn reports whether RDMA itself missed packets, or a port dropped some of a priority. Ports are shared, and most drop
// counters cover all priorities.
func (m *Measurement) lostIn(priority int) bool {
	if m.Counters == nil {
		return false
	}
	prefix := fmt.Sprintf("x_prio%d_", priority)
	for _, side := range []Counters{m.Counters.From, m.Counters.To} {
		for name, n := range side {
			if n > 0 && (slices.Contains(lossCounters, name) || discardCounters.MatchString(name) && strings.Contains(name, prefix)) {
				return true
			}
		}
	}
	return false
}

// lossReadAtBothEnds reports whether counters that indicate loss were read on both sides.
func (m *Measurement) lossReadAtBothEnds() bool {
	if m.Counters == nil {
		return false
	}
	_, _, from := m.Counters.From.Lost()
	_, _, to := m.Counters.To.Lost()
	return from && to
}

// sum adds up a counter over both sides.
func (s *Sides) sum(name string) int64 {
	if s == nil {
		return 0
	}
	return s.From[name] + s.To[name]
}

// CNPs returns how many congestion notifications were sent during the test.
func (m *Measurement) CNPs() int64 { return m.Counters.sum("np_cnp_sent") }

// Shares of lost packets above which a measurement is bad if no class is lossless; chosen by this project.
const (
	lossWarn = 1e-6
	lossFail = 1e-4
)

// sent returns how many packets and bytes a test sent in one direction.
func (m *Measurement) sent() (packets, bytes int64) {
	mtu := int64(max(m.MTU, 256))
	for _, r := range m.Rows {
		packets += r.Iterations * ((r.Bytes + mtu - 1) / mtu)
		bytes += r.Iterations * r.Bytes
	}
	times := int64(max(1, m.Repeats))
	return packets * times, bytes * times
}

// judgeLoss lowers a verdict if packets were lost. A lossless class must not lose any.
func (m *Measurement) judgeLoss() {
	lost, where, ok := m.Lost()
	if !ok || lost == 0 || m.Verdict == VerdictNotApplicable || m.Error != "" {
		return
	}
	packets, _ := m.sent()
	share := float64(lost) / float64(max(packets, 1))
	if m.Class != nil && m.Lossless != nil && m.Lossless.Verdict == VerdictUnknown { // not in the class, as far as is known
		if m.Verdict == VerdictPass {
			m.Verdict, m.Hint = VerdictWarn, m.Lossless.Evidence
		}
		return
	}
	verdict := VerdictWarn
	switch {
	case share >= lossFail:
		verdict = VerdictFail
	case share < lossWarn && m.Class == nil:
		return
	}
	if m.Verdict == VerdictFail && verdict == VerdictWarn {
		return
	}
	m.Verdict = verdict
	m.Hint = fmt.Sprintf(
		"packets were lost and retransmitted: %s, %.2g %% of the packets; check PFC and ECN of the configured priority on every hop, "+
			"discards of the switch ports, and cables", where, 100*share)
}
