package perftest

import (
	"fmt"
	"io"
	"strings"
)

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
	fmt.Fprintf(w, " Mtu             : %d[B]\n Link type       : Ethernet\n GID index       : %d\n Max inline data : 0[B]\n rdma_cm QPs\t : %s\n Data ex. method : Ethernet\n%s\n",
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
		fmt.Fprintf(w, " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   99.9%% percentile[usec] \n")
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
