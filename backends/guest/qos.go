package guest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// portQoS sets how a port that the guest owns treats the class of RDMA: KindPortQoS. The port of a VF belongs to the host.
type portQoS struct{ g *Guests }

// qosUnit runs qos.sh.
var qosUnit = portUnit{prefix: unitPrefix + "qos-", script: "/usr/local/sbin/rdma-setup-qos"}

const priorities = 8

// QoSScript returns the script that the units run; see assets/scripts/qos.sh.
func QoSScript() string {
	return "#!/bin/sh\n" + ours + "# Use: rdma-setup-qos MAC TRUST PFC DSCP PRIORITY ECN\n" + assets.Script("qos.sh")
}

// qosArgs returns the arguments of qos.sh: trust, PFC, DSCP, priority (negative: not listed), ECN (PRIORITY:0, PRIORITY:1 or -).
func qosArgs(trust string, pfc []int, dscp, priority int, ecn string) []string {
	bits, prio := make([]string, priorities), "-"
	for i := range bits {
		bits[i] = "0"
		if slices.Contains(pfc, i) {
			bits[i] = "1"
		}
	}
	if priority >= 0 {
		prio = strconv.Itoa(priority)
	}
	return []string{trust, strings.Join(bits, ","), strconv.Itoa(dscp), prio, ecn}
}

func argsOf(s backends.QoSSpec) []string {
	ecn := "-"
	if s.ECN {
		ecn = strconv.Itoa(s.Priority) + ":1"
	}
	return qosArgs("dscp", []int{s.Priority}, s.DSCP, s.Priority, ecn)
}

// QoSUnit returns the name and the text of the systemd unit that sets a port again after each boot.
func QoSUnit(mac string, s backends.QoSSpec) (name, text string) {
	return qosUnit.name(mac), qosUnit.text("PFC and trust of DSCP for the RDMA traffic of "+mac,
		"After=systemd-modules-load.service systemd-udev-settle.service", append([]string{mac}, argsOf(s)...)...)
}

// qosFacts returns a script that prints the state of the ports, the units of this program and whether their script exists.
func qosFacts() string {
	return section("qos", script("qos-show.sh")) + section("qos-units", qosUnit.facts())
}

var qosCommand = regexp.MustCompile(`(?m)^ExecStart=/bin/sh ` + regexp.QuoteMeta(qosUnit.script) +
	` ([0-9a-f:]{17}) dscp [01,]{15} ([0-9]{1,2}) ([0-7]) ([0-7]:1|-)$`)

// qosOf returns the current and the persistent state of the port with a MAC; nil if nothing can be read and nothing of this
// program exists.
func (f facts) qosOf(mac string) *backends.PortQoS {
	q := readQoS(f["qos"])[mac]
	var kept *backends.QoSSpec
	for _, c := range qosCommand.FindAllStringSubmatch(f["qos-units"], -1) {
		if c[1] == mac {
			dscp, _ := strconv.Atoi(c[2])
			prio, _ := strconv.Atoi(c[3])
			kept = &backends.QoSSpec{Priority: prio, DSCP: dscp, ECN: c[4] != "-"}
		}
	}
	left := qosUnit.left(f["qos-units"], mac)
	if q == nil && !left {
		return nil
	}
	out := backends.PortQoS{Kept: kept}
	if q != nil {
		out = *q
		out.Kept = kept
	}
	out.Partly = left && (kept == nil || !out.Meets(*kept) || !slices.Contains(strings.Split(f["qos-units"], "\n"), "script"))
	return &out
}

func (p portQoS) state(ctx context.Context, vm, mac string) (now *backends.PortQoS, others bool, err error) {
	f, err := p.g.facts(ctx, vm, ssh.Command{Script: qosFacts(), Sudo: true, What: "read PFC and trust"})
	if err != nil {
		return nil, false, err
	}
	return f.qosOf(mac), qosUnit.others(f["qos-units"], mac), nil
}

// Read returns the configuration that is active and persistent, Partial if it is only one of both or an attempt has left
// something, Absent if nothing of this program exists.
func (p portQoS) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	mac, err := p.g.mac(ctx, s)
	if err != nil {
		return backends.Absent, err
	}
	now, _, err := p.state(ctx, s.Target.Name, mac)
	return now.Value(), err
}

// Set sets the port, writes the script and the unit, enables it and reads back.
func (p portQoS) Set(ctx context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	vm := s.Target.Name
	mac, err := p.g.mac(ctx, s)
	if err != nil {
		return err
	}
	now, others, err := p.state(ctx, vm, mac)
	if err != nil || now.Value() == to {
		return err
	}
	if to.IsAbsent() {
		items, err := p.g.readItems(ctx, vm, qosUnit.manifest(mac, others))
		if err != nil {
			return err
		}
		for i := range items {
			items[i].State = backends.Absent
		}
		return p.back(ctx, vm, mac, qosArgs("pcp", nil, 0, -1, "-"), backends.Kept{Items: items})
	}
	var want backends.QoSSpec
	if err := to.Decode(&want); err != nil {
		return err
	}
	if want.Priority < 0 || want.Priority >= priorities || want.DSCP < 0 || want.DSCP > 63 {
		return backends.Usagef(label(vm), "", "priority %d with DSCP %d is not a valid traffic class", want.Priority,
			want.DSCP)
	}
	if now == nil || len(now.PFC) == 0 && now.DSCP == nil {
		return backends.Refusedf(label(vm),
			"Install iproute2 5.11 or later (dcb), or MLNX_OFED (mlnx_qos). A VF has no PFC settings of its own.",
			"PFC of %s cannot be read: neither mlnx_qos nor dcb shows it", mac)
	}
	unit, text := QoSUnit(mac, want)
	if err := qosUnit.put(ctx, p.g, vm, mac, text, QoSScript()); err != nil {
		return err
	}
	run := "sh " + qosUnit.script + " " + mac + " " + strings.Join(argsOf(want), " ") + " && systemctl enable " + unit
	if _, err := p.g.root(ctx, vm, "set PFC and trust of "+mac, ssh.Command{Script: run, Limit: 2 * time.Minute}); err != nil {
		return err
	}
	if now, err := p.Read(ctx, s); err != nil || now != to {
		return backends.Permanentf(label(vm), "Compare with: mlnx_qos -i DEV, or dcb pfc show dev DEV.",
			"PFC was set, but reads back as %s: %v", now, err)
	}
	return nil
}

const itemQoS backends.ItemKind = "port-qos" // name = MAC; state: qosState

// A qosState is the part of a port that a change touches, for the DSCP and the priority of its class.
type qosState struct {
	backends.QoSSpec        // of the change
	Trust            string `json:"trust"`
	PFC              []int  `json:"pfc"`
	Before           int    `json:"before"` // previous priority of the DSCP, -1: not listed
	On               *bool  `json:"on"`     // ECN of the priority; nil: not reported, or not changed
}

func qosItem(mac string, now *backends.PortQoS, class backends.QoSSpec) backends.Item {
	i := backends.Item{Kind: itemQoS, Name: mac, Runtime: true}
	if now == nil {
		return i
	}
	st := qosState{QoSSpec: class, Trust: now.Trust, PFC: append([]int{}, now.PFC...), Before: -1}
	if prio, ok := now.DSCP[class.DSCP]; ok && now.Trust == "dscp" {
		st.Before = prio
	}
	if now.ECN != nil && class.ECN {
		st.On = new(slices.Contains(now.ECN, class.Priority))
	}
	i.State = backends.ValueOf(st)
	return i
}

func (p portQoS) Keep(ctx context.Context, s backends.Setting, to backends.Value) (backends.Kept, error) {
	mac, err := p.g.mac(ctx, s)
	if err != nil {
		return backends.Kept{}, err
	}
	class, err := wanted[backends.QoSSpec](to)
	if err != nil {
		return backends.Kept{}, err
	}
	now, others, err := p.state(ctx, s.Target.Name, mac)
	if err != nil {
		return backends.Kept{}, err
	}
	return p.g.record(ctx, s.Target.Name, qosUnit.manifest(mac, others), qosItem(mac, now, class))
}

func recordedQoS(vm string, kept backends.Kept) (mac string, st qosState, err error) {
	for _, i := range kept.Items {
		if i.Kind == itemQoS {
			mac = i.Name
			if !i.State.IsAbsent() {
				err = i.State.Decode(&st)
			}
		}
	}
	if err != nil {
		err = badKept(vm, err)
	}
	return mac, st, err
}

func (p portQoS) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	mac, st, err := recordedQoS(s.Target.Name, kept)
	if err != nil {
		return backends.Kept{}, err
	}
	now, others, err := p.state(ctx, s.Target.Name, mac)
	if err != nil {
		return backends.Kept{}, err
	}
	items, err := qosUnit.readItems(ctx, p.g, s.Target.Name, kept, others)
	return backends.Kept{Items: append(items, qosItem(mac, now, st.QoSSpec))}.Bare(), err
}

// Restore restores the port, then removes the unit.
func (p portQoS) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	vm := s.Target.Name
	mac, st, err := recordedQoS(vm, kept)
	if err != nil {
		return err
	}
	now, err := p.Observe(ctx, s, kept)
	if err != nil || len(backends.Differences(kept, now)) == 0 {
		return err
	}
	_, others, err := p.state(ctx, vm, mac)
	if err != nil {
		return err
	}
	var args []string
	if item := kept.Item(itemQoS, mac); item != nil && !item.State.IsAbsent() {
		ecn := "-"
		if st.On != nil {
			ecn = fmt.Sprintf("%d:%d", st.Priority, map[bool]int{true: 1}[*st.On])
		}
		args = qosArgs(st.Trust, st.PFC, st.DSCP, st.Before, ecn)
	}
	return p.back(ctx, vm, mac, args, qosUnit.without(kept, others))
}

// back sets the port with the arguments of qos.sh, if there are any, and restores the files.
func (p portQoS) back(ctx context.Context, vm, mac string, args []string, kept backends.Kept) error {
	if args != nil {
		_, err := p.g.root(ctx, vm, "restore PFC and trust of "+mac, ssh.Command{Script: script("qos.sh", append([]string{mac}, args...)...),
			Limit: 2 * time.Minute})
		if err != nil {
			return err
		}
	}
	return p.g.putBack(ctx, vm, kept)
}
