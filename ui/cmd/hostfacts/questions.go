package hostfacts

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// hostQuestions asks one host by esxcli, and keeps what it said. A host that does not answer the first questions says
// why; a question that it does not know (an older ESXi) leaves its fact unread.
type hostQuestions struct {
	vc    *vsphere.Client
	host  backends.Host
	mode  answers.Mode
	facts checks.HostFacts
	boot  string // what ESXi booted from, "" where nobody asked
}

// ask asks everything; between is done in the time that passes between the two looks at the counters.
func (q *hostQuestions) ask(ctx context.Context, between func()) checks.HostFacts {
	q.facts = checks.HostFacts{Modules: map[string]map[string]string{}, Pause: map[string]checks.Pause{}}
	began := time.Now()
	first, pfc := q.counters(ctx)
	for _, must := range []func(context.Context) error{q.modules, q.pause, q.vibs} {
		if err := must(ctx); err != nil {
			return checks.HostFacts{Err: err}
		}
	}
	q.neighbours(ctx)
	if q.mode == answers.SRIOV {
		q.virtualFunctions(ctx)
		q.acceptance(ctx)
	}
	if q.mode != answers.PVRDMA {
		q.resync(ctx)
	}
	if q.mode == answers.GPUDirect {
		q.bootDevice(ctx)
	}
	between()
	again, pfcAgain := q.counters(ctx)
	q.grown(first, again, pfc, pfcAgain, time.Since(began))
	q.shell()
	return q.facts
}

// rows asks one question; no rows where the host does not know it.
func (q *hostQuestions) rows(ctx context.Context, words ...string) []map[string]string {
	rows, err := q.vc.Esxcli(ctx, q.host.Name, words...)
	if err != nil {
		return nil
	}
	return rows
}

func (q *hostQuestions) modules(ctx context.Context) error {
	for _, module := range rdmaModules(q.host) {
		rows, err := q.vc.Esxcli(ctx, q.host.Name, "system", "module", "parameters", "list", "-m", module)
		if err != nil {
			return err
		}
		params := map[string]string{}
		for _, r := range rows {
			params[r["Name"]] = r["Value"]
		}
		q.facts.Modules[module] = params
	}
	return nil
}

func (q *hostQuestions) pause(ctx context.Context) error {
	rows, err := q.vc.Esxcli(ctx, q.host.Name, "network", "nic", "pauseParams", "list")
	for _, r := range rows {
		q.facts.Pause[r["NIC"]] = checks.Pause{Rx: r["PauseRX"] == "true", Tx: r["PauseTX"] == "true"}
	}
	return err
}

func (q *hostQuestions) vibs(ctx context.Context) error {
	rows, err := q.vc.Esxcli(ctx, q.host.Name, "software", "vib", "list")
	for _, r := range rows {
		q.facts.VIBs = append(q.facts.VIBs, checks.VIB{Name: r["Name"], Version: r["Version"], Acceptance: r["AcceptanceLevel"]})
	}
	return err
}

func (q *hostQuestions) neighbours(ctx context.Context) {
	heard, err := q.vc.Neighbours(ctx, q.host.Name)
	if err != nil {
		return
	}
	q.facts.Neighbours = map[string]checks.Neighbour{}
	for device, n := range heard {
		q.facts.Neighbours[device] = checks.Neighbour{Switch: n.Switch, Port: n.Port}
	}
}

func (q *hostQuestions) virtualFunctions(ctx context.Context) {
	q.facts.VFs = map[string][]checks.VF{}
	for _, nic := range q.rows(ctx, "network", "sriovnic", "list") {
		list := []checks.VF{}
		for _, r := range q.rows(ctx, "network", "sriovnic", "vf", "list", "-n", nic["Name"]) {
			id, err := strconv.Atoi(r["VFID"])
			if err == nil {
				list = append(list, checks.VF{ID: id, Active: r["Active"] == "true"})
			}
		}
		q.facts.VFs[nic["Name"]] = list
	}
}

// acceptance spells the level without blanks, as VIBs have it.
func (q *hostQuestions) acceptance(ctx context.Context) {
	if rows := q.rows(ctx, "software", "acceptance", "get"); len(rows) > 0 {
		q.facts.Acceptance = strings.ReplaceAll(strings.TrimSpace(rows[0]["output"]), " ", "")
	}
}

// resync asks hosts that carry vSAN what it still moves.
func (q *hostQuestions) resync(ctx context.Context) {
	if !slices.ContainsFunc(q.host.VMKs, func(v backends.VMKernelNIC) bool { return slices.Contains(v.Roles, "vsan") }) {
		return
	}
	if rows := q.rows(ctx, "vsan", "debug", "resync", "summary", "get"); len(rows) > 0 {
		if n, err := strconv.ParseInt(field(rows[0], "Total Bytes Left To Resync"), 10, 64); err == nil {
			q.facts.Resync = &n
		}
	}
}

// bootDevice asks hosts that pass a USB controller through what ESXi booted from.
func (q *hostQuestions) bootDevice(ctx context.Context) {
	if !slices.ContainsFunc(q.host.PCI, func(d backends.PCIDevice) bool { return d.Enabled && strings.HasPrefix(d.Class, "0c03") }) {
		return
	}
	rows := q.rows(ctx, "storage", "core", "device", "list")
	for _, r := range rows {
		if field(r, "Is Boot Device") != "true" {
			continue
		}
		q.boot = "disk"
		if field(r, "Is USB") == "true" { // SD cards too sit behind a USB reader
			q.boot = "usb"
		}
		return
	}
	if len(rows) > 0 {
		q.boot = "network"
	}
}

// counters reads the counters of the RDMA pNICs, and how many PFC frames they sent and received.
func (q *hostQuestions) counters(ctx context.Context) (stats map[string]map[string]string, pfc map[string]int64) {
	stats, pfc = map[string]map[string]string{}, map[string]int64{}
	for _, n := range q.host.NICs {
		if n.RDMADevice == "" {
			continue
		}
		if rows := q.rows(ctx, "network", "nic", "stats", "get", "-n", n.Device); len(rows) > 0 {
			stats[n.Device] = rows[0]
		}
		rows := q.rows(ctx, "network", "nic", "dcb", "status", "get", "-n", n.Device)
		if len(rows) == 0 {
			continue
		}
		if q.facts.DCB == nil {
			q.facts.DCB = map[string]checks.DCB{}
		}
		q.facts.DCB[n.Device] = dcb(rows[0])
		for _, way := range []string{"Sent PFC Frames", "Received PFC Frames"} {
			for _, text := range strings.Fields(field(rows[0], way)) {
				frames, _ := strconv.ParseInt(text, 10, 64)
				pfc[n.Device] += frames
			}
		}
	}
	return stats, pfc
}

func dcb(row map[string]string) checks.DCB {
	d := checks.DCB{Supported: field(row, "Priority Flow Control") != "false" && field(row, "Mode") != ""}
	for i, bit := range strings.Fields(field(row, "PFC Configuration")) {
		if i < len(d.PFC) {
			d.PFC[i] = bit == "1"
		}
	}
	return d
}

// grown is what the counters moved by between the two looks. One that went back was reset, and tells nothing.
func (q *hostQuestions) grown(first, again map[string]map[string]string, pfc, pfcAgain map[string]int64, over time.Duration) {
	for device, now := range again {
		before, known := first[device]
		if !known {
			continue
		}
		moved := func(labels ...string) (sum int64) {
			for _, label := range labels {
				a, errA := strconv.ParseInt(field(before, label), 10, 64)
				b, errB := strconv.ParseInt(field(now, label), 10, 64)
				if errA == nil && errB == nil {
					sum += max(0, b-a)
				}
			}
			return sum
		}
		if q.facts.Stats == nil {
			q.facts.Stats = map[string]checks.Stats{}
		}
		q.facts.Stats[device] = checks.Stats{
			Packets: moved("Packets received", "Packets sent"), Errors: moved("Total receive errors", "Total transmit errors"),
			Dropped: moved("Receive packets dropped", "Transmit packets dropped"), Pause: max(0, pfcAgain[device]-pfc[device]), Over: over,
		}
	}
}

// shell takes over what the ESXi shell told of the cards, where a run has asked it.
func (q *hostQuestions) shell() {
	sys := q.host.System
	if sys == nil || sys.Firmware == nil {
		return
	}
	q.facts.Firmware = Cards(sys.Firmware)
}

// field finds a value by esxcli's label: builds differ in what letters they make capitals when they drop the blanks.
func field(row map[string]string, label string) string {
	label = strings.ReplaceAll(label, " ", "")
	if v, ok := row[label]; ok {
		return v
	}
	for name, v := range row {
		if strings.EqualFold(name, label) {
			return v
		}
	}
	return ""
}

// Cards are the facts of the firmware that a shell told of, by PCI address.
func Cards(all map[string]backends.Firmware) map[string]checks.CardFirmware {
	out := map[string]checks.CardFirmware{}
	for address, fw := range all {
		out[address] = checks.CardFirmware{PSID: fw.PSID, Current: fw.Current, Next: fw.Next}
	}
	return out
}
