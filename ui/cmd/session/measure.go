package session

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/system"
	"github.com/rdma-setup/rdma-setup/checks/perftest"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// Measure runs the tests between the guests of the answers.
func (s *Session) Measure(ctx context.Context, a *answers.Answers, pairs string, progress func(perftest.Progress)) ([]perftest.Measurement, error) {
	if !a.Measure.Bandwidth && !a.Measure.Latency || pairs == "none" {
		return nil, nil
	}
	inv, err := s.survey(ctx, a, append(planAsks(a), system.Neighbours))
	if err != nil {
		return nil, err
	}
	all := Nodes(a, inv)
	if mbps := a.Measure.LinkGbps.Mbps(); mbps > 0 {
		for i := range all {
			all[i].LinkMbps = mbps
		}
	}
	list, err := perftest.Pairs(all, pairs)
	if err != nil {
		return nil, console.Usage("give ring, all, or two VMs of the answers as VM:VM", "%v", err)
	}
	r := perftest.Runner{
		Shell: guestShell{s.Guests}, Mode: string(a.Mode), Bandwidth: a.Measure.Bandwidth, Latency: a.Measure.Latency,
		Class: class(a), Loss: true, Repeat: a.Measure.Repeat, Simulated: inv.VCenter.Simulated, Now: s.Env.Now, Progress: progress, EthernetMTU: a.Switch.MTU,
	}
	if a.Mode == answers.PVRDMA {
		r.Counters = s.rdmaPackets(inv)
	}
	if r.Class != nil {
		r.HostCounters = s.portCounters
	}
	return r.Measure(ctx, list)
}

// class is the class that the answers configure: the traffic class that the guests set, where a priority is lossless.
func class(a *answers.Answers) *perftest.Class {
	if a.QoS.Lossless != answers.LosslessPFC {
		return nil
	}
	return &perftest.Class{Priority: a.QoS.Priority, TrafficClass: sizing.TrafficClass(a.QoS.DSCP, a.QoS.ECN)}
}

// portCounters reads what the host counts at a pNIC: frames that it dropped, and PFC frames of each priority (esxcli network
// nic stats get, esxcli network nic dcb status get).
func (s *Session) portCounters(ctx context.Context, host, port string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, command := range []string{"stats", "dcb status"} {
		words := append(append([]string{"network", "nic"}, strings.Fields(command)...), "get", "-n", port)
		rows, err := s.VC.Esxcli(ctx, host, words...)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			for label, value := range row {
				label = strings.ToLower(strings.ReplaceAll(label, " ", ""))
				if name, ok := portCounter[label]; ok {
					if n, err := strconv.ParseInt(value, 10, 64); err == nil {
						out[name] = n
					}
				}
				if name, ok := portPriority[label]; ok {
					for priority, text := range strings.Fields(value) {
						if n, err := strconv.ParseInt(text, 10, 64); err == nil {
							out[name+strconv.Itoa(priority)] = n
						}
					}
				}
			}
		}
	}
	return out, nil
}

// The rows of esxcli that are counters of a port, by label without blanks.
var (
	portCounter  = map[string]string{"receivepacketsdropped": "rx_dropped", "transmitpacketsdropped": "tx_dropped"}
	portPriority = map[string]string{"sentpfcframes": "pfc_sent_prio", "receivedpfcframes": "pfc_received_prio"}
)

// guestShell runs the tests of a measurement in guests.
type guestShell struct{ guests *guest.Guests }

// Exec implements perftest.Shell.
func (g guestShell) Exec(ctx context.Context, vm string, c perftest.Command) (perftest.Output, error) {
	// The runner ends what takes too long itself: it knows how long each test runs.
	r, err := g.guests.Run(ctx, vm, ssh.Command{Script: c.Line, Sudo: c.Sudo, OnLine: c.OnLine, Limit: time.Hour})
	return perftest.Output{Stdout: r.Stdout, Stderr: r.Stderr, Exit: r.ExitCode}, err
}

// rdmaPackets reads how many packets the RDMA device behind a host's pNIC has carried.
func (s *Session) rdmaPackets(inv *backends.Inventory) func(ctx context.Context, host, port string) (int64, error) {
	return func(ctx context.Context, host, port string) (int64, error) {
		h := inv.Host(host)
		name := ""
		if h != nil {
			if n := h.NIC(port); n != nil {
				name = n.RDMADevice
			}
		}
		if name == "" {
			return 0, backends.Errorf(backends.KindPermanent, host, "", "no RDMA device behind %s", port)
		}
		rows, err := s.VC.Esxcli(ctx, host, "rdma", "device", "stats", "get", "-d", name)
		if err != nil {
			return 0, err
		}
		sum, ok := packets(rows)
		if !ok {
			return 0, backends.Errorf(backends.KindPermanent, host, "", "the counters of %s show no packets", name)
		}
		return sum, nil
	}
}

// packets adds up the packets among the counters of an RDMA device; ok is false where none, or something else, was told.
func packets(rows []map[string]string) (sum int64, ok bool) {
	for _, row := range rows {
		for key, value := range row {
			if strings.Contains(strings.ToLower(key), "packets") {
				n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				if err != nil {
					return 0, false
				}
				sum, ok = sum+n, true
			}
		}
	}
	return sum, ok
}
