package perftest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/fabric"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/rdma"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// Durations of the lab's tests. They are shorter than real ones, so that tests do not wait longer than necessary.
const (
	rowTime   = 8 * time.Millisecond  // duration for one message size
	lookEvery = 20 * time.Millisecond // interval at which other traffic on the ports is checked
	speedUp   = 10                    // speedup of the duration of -D
)

// measure runs the client side of a test. If the peer or the path is lost, the test hangs, because perftest has no timeout.
func (t Tool) measure(ctx context.Context, p *sh.Proc, out io.Writer, c *call, self, peer side) int {
	o, mtu := self.opt, min(self.mtu, peer.mtu)
	salt := fmt.Sprintf("%s/%s/%s", self.end.VM, peer.end.VM, o.title())
	for _, size := range o.sizes() {
		path := t.Net.Path(self.end, peer.end)
		if !path.Reachable {
			<-ctx.Done()
			return sh.Cause(ctx).Status()
		}
		part, micros, peers := limits(self, peer)
		if !path.Carries(size, mtu) || !peers {
			select {
			case c.rows <- row{lost: true}: // the connection of c ends
			case <-c.gone:
			case <-ctx.Done():
			}
			return t.lost(p, o)
		}
		if self.belowSwitch() && peer.belowSwitch() {
			path = path.BelowSwitches()
		}
		share, slot, crowd := t.share(ctx, path, max(p.Sys.Clock.OfSleep(rowTime), time.Duration(o.seconds)*time.Second/speedUp))
		path.SlotGbps = slot
		r := t.row(path, o, size, mtu, share, part, micros, salt)
		t.count(path, self, &r, mtu, crowd)
		select {
		case c.rows <- r:
		case <-c.gone:
			<-ctx.Done()
			return sh.Cause(ctx).Status()
		case <-ctx.Done():
			return sh.Cause(ctx).Status()
		}
		result(out, t, o, r)
	}
	close(c.rows)
	fmt.Fprintf(out, "%s\n", rule)
	return 0
}

// share runs a test on the path for d. It returns the test's average share of the ports, the rate limit of the PCIe links, and
// the fraction of the time in which other senders used the same receiver.
func (t Tool) share(ctx context.Context, path fabric.Path, d time.Duration) (share, slot, crowd float64) {
	looks := max(2, int(d/lookEvery))
	defer t.Load.Start(path)()
	for range looks {
		sleep(ctx, d/time.Duration(looks))
		share, slot = share+t.Load.Share(path), slot+t.Load.Slot(path)
		if t.Load.Senders(path) > 1 {
			crowd++
		}
	}
	return share / float64(looks), slot / float64(looks), crowd / float64(looks)
}

// lost prints the hardware's error for packets that are not acknowledged: retries exceeded.
func (t Tool) lost(p *sh.Proc, o options) int {
	fmt.Fprintf(p.Stderr, " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=%d, ccnt=0\n", o.depth)
	if !t.Relaxed {
		return 1
	}
	fmt.Fprintf(p.Stderr, " Failed to complete run_iter_bw function successfully\n")
	return 17
}

// row returns the result for one message size, including the limits of GPU memory.
func (t Tool) row(path fabric.Path, o options, size, mtu int, share, part, micros float64, salt string) row {
	r := row{size: size, iters: o.iters}
	if o.latency {
		l := path.Latency(size, mtu, share, salt) + micros
		r.lat = latency{min: l * 0.965, typical: l, average: l * 1.012, deviation: l * 0.03, p99: l * 1.12, p999: l*1.3 + 2.1, max: l*1.3 + 2.1}
		if o.seconds > 0 {
			r.iters = int(float64(o.seconds) * 1e6 / l / 2)
		}
		return r
	}
	gbps := path.Gbps(size, mtu, share*part, salt)
	if o.bidir {
		gbps *= 1.9
	}
	r.bw = bandwidth{average: gbps, peak: gbps * 1.004, rate: gbps * 1000 / 8 / float64(size)}
	if o.seconds > 0 {
		r.iters = int(r.bw.rate * 1e6 * float64(o.seconds))
	}
	return r
}

// count adds the packets of a row to the counters of both ends, which are named as in mlx5 (drivers/infiniband/hw/mlx5/
// counters.c). If a packet is lost, the receiver detects a gap, and the sender gets a NAK and retransmits.
func (t Tool) count(path fabric.Path, self side, r *row, mtu int, crowd float64) {
	bytes := int64(r.size) * int64(r.iters)
	packets := max(int64(r.iters), bytes/int64(mtu))
	e := fabric.Effect{Left: 1}
	if path.RDMA && !path.SameHost {
		e = t.Net.Transmit(path, fabric.Flow{TrafficClass: self.opt.class, Bytes: bytes, Packets: packets, Crowd: crowd})
	}
	r.bw.average, r.bw.peak, r.bw.rate = r.bw.average*e.Left, r.bw.peak*e.Left, r.bw.rate*e.Left
	notified := e.Marked / 8 // one notification for several marks
	t.Verbs.Devices.Count(self.dev.Name, rdma.Counters{SentBytes: bytes, SentPackets: packets,
		Events: map[string]int64{"packet_seq_err": e.Lost, "rp_cnp_handled": notified}})
	r.counted = rdma.Counters{ReceivedBytes: bytes, ReceivedPackets: packets,
		Events: map[string]int64{"out_of_sequence": e.Lost, "np_ecn_marked_roce_packets": e.Marked, "np_cnp_sent": notified}}
}

const rule = "---------------------------------------------------------------------------------------"

type bandwidth struct{ peak, average, rate float64 } // Gb/s, Gb/s, million messages per second

type latency struct{ min, max, typical, average, deviation, p99, p999 float64 } // microseconds

// header prints the parameters of the run. mtu is the InfiniBand MTU that is used.
func header(w io.Writer, t Tool, o options, self side, mtu int) {
	fmt.Fprintf(w, "%s\n                    %s\n Dual-port       : OFF\t\tDevice         : %s\n Number of qps   : %d\t\tTransport type : IB\n"+
		" Connection type : %s\t\tUsing SRQ      : OFF\n", rule, o.title(), self.dev.Name, o.qps, o.conn)
	if t.Relaxed {
		fmt.Fprintf(w, " PCIe relax order: ON\n")
	}
	fmt.Fprintf(w, " ibv_wr* API     : OFF\n")
	switch {
	case o.server != "":
		fmt.Fprintf(w, " TX depth        : %d\n", o.depth)
	case o.verb == "Send":
		fmt.Fprintf(w, " RX depth        : %d\n", o.rxDepth)
	}
	if !o.latency {
		fmt.Fprintf(w, " CQ Moderation   : %d\n", o.moderate)
	}
	cm := "OFF"
	if o.rdmaCM {
		cm = "ON"
	}
	fmt.Fprintf(w,
		" Mtu             : %d[B]\n Link type       : Ethernet\n GID index       : %d\n Max inline data : 0[B]\n rdma_cm QPs\t : %s\n Data ex. "+
			"method : Ethernet\n%s\n",
		mtu, self.gidAt, cm, rule)
}

// address prints the address line of a side.
func address(w io.Writer, which string, s side) {
	keys := ""
	if s.opt.verb != "Send" {
		keys = fmt.Sprintf(" RKey 0x%06x VAddr 0x%014x", s.psn&0xffff, 0x7f0000000000|s.psn<<12)
	}
	var gid []string
	for _, b := range s.gid.Addr.As16() {
		gid = append(gid, fmt.Sprintf("%02d", b))
	}
	fmt.Fprintf(w, " %s address: LID 0000 QPN 0x%04x PSN 0x%x%s\n GID: %s\n", which, s.qpn, s.psn, keys, strings.Join(gid, ":"))
}

func columns(w io.Writer, o options) {
	fmt.Fprintf(w, "%s\n", rule)
	switch {
	case o.latency && o.seconds > 0:
		fmt.Fprintf(w, " #bytes        #iterations       t_avg[usec]    tps average\n")
	case o.latency:
		fmt.Fprintf(w,
			" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   99.9%% "+
				"percentile[usec] \n")
	default:
		unit := "MB/sec"
		if o.gbits {
			unit = "Gb/sec"
		}
		fmt.Fprintf(w, " #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]\n", unit, unit)
	}
}

// result prints a row. The server of a bandwidth test has no peak value.
func result(w io.Writer, t Tool, o options, r row) {
	if o.latency {
		l := r.lat
		if o.seconds > 0 {
			fmt.Fprintf(w, " %-7d       %-10d        %-7.2f        %-7.2f\n", r.size, r.iters, l.average, 1e6/l.average/2)
			return
		}
		fmt.Fprintf(w, " %-7d %-10d   %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n",
			r.size, r.iters, l.min, l.max, l.typical, l.average, l.deviation, l.p99, l.p999)
		return
	}
	peak, average := r.bw.peak, r.bw.average
	if o.server == "" || o.seconds > 0 {
		peak = 0
	}
	if !o.gbits {
		const mebibyte = 1e9 / 8 / (1 << 20)
		peak, average = peak*mebibyte, average*mebibyte
	}
	if average < 0.1 && t.Relaxed {
		fmt.Fprintf(w, " %-7d    %-10d    %-7.6f            %-7.6f            %-7.6f\n", r.size, r.iters, peak, average, r.bw.rate)
		return
	}
	fmt.Fprintf(w, " %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f\n", r.size, r.iters, peak, average, r.bw.rate)
}
