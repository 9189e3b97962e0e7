package world

import (
	"slices"
	"sync"
	"time"
)

// The kinds of events. An event names the host, VM or switch that it concerns.
const (
	HostOption      = "host.option"      // an advanced option was set; Detail "KEY=VALUE"
	HostFirewall    = "host.firewall"    // a ruleset was enabled or disabled; Detail "KEY=true"
	HostService     = "host.service"     // a service was started or stopped; Detail "KEY=true"
	HostModule      = "host.module"      // parameters of a kernel module were set; Detail "MODULE PARAMETERS"
	HostNetwork     = "host.network"     // links, switches or vmknics changed
	HostMaintenance = "host.maintenance" // Detail "true" or "false"
	HostLogin       = "host.login"       // a root login to the host's shell with a password; Detail "accepted", "refused" or "locked"
	HostClock       = "host.clock"       // NTP servers changed
	HostVMs         = "host.vms"         // VMs were added or removed
	HostHardware    = "host.hardware"    // SR-IOV, passthrough, power policy or firmware was set
	HostImage       = "host.image"       // VIBs were installed or removed; Detail the VIBs
	HostDown        = "host.down"        // the host stopped responding; Detail is the reason
	HostUp          = "host.up"          // the host responds again
	VMPower         = "vm.power"         // Detail "on" or "off"
	VMShutdown      = "vm.shutdown"      // a guest shutdown was requested; Detail is the account
	VMGuest         = "vm.guest"         // the guest started or stopped, or its addresses changed
	VMAdded         = "vm.added"         // the VM was imported
	VMRemoved       = "vm.removed"       // the VM was removed
	VMDevices       = "vm.devices"       // hardware or memory settings changed
	Inventory       = "inventory"        // folders were created, removed or renamed; the cluster was reconfigured
	SwitchChanged   = "switch"           // a DVS, its port groups or its members changed
	Call            = "call"             // a vCenter API method was called; Detail is the method
	Process         = "process"          // a program was run in a guest or an ESXi shell; Detail is its arguments
	FaultApplied    = "fault"            // a fault rule was applied; Detail is the rule
)

// An Event is one thing that happened in the lab.
type Event struct {
	Time   time.Time `json:"time"`
	What   string    `json:"what"`
	Host   string    `json:"host,omitempty"`
	VM     string    `json:"vm,omitempty"`
	Switch string    `json:"switch,omitempty"`
	Detail string    `json:"detail,omitempty"`
}

// A Log stores events and counts the calls of the vCenter API. It is safe for concurrent use. Events that change the world are
// always kept. Programs and calls grow without limit in a long-running lab, so only the last keep of them are kept, or fewer if
// keepText is reached.
type Log struct {
	mu      sync.Mutex
	events  []Event
	calls   map[string]int
	passing int               // number of events that are programs or calls
	texts   map[string]string // one copy of each argument list, because each round of checks repeats them
	size    int               // bytes in texts

	unlogged bool // programs and calls are not stored
}

// keep is the minimum number of programs and calls that a log keeps. keepText is the maximum number of bytes of different
// argument lists: beyond it, the older half is dropped.
const (
	keep     = 50_000
	keepText = 48 << 20
)

func (l *Log) add(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.What == Process || e.What == Call {
		l.passing++
		if text, known := l.texts[e.Detail]; known {
			e.Detail = text
		} else {
			if l.texts == nil {
				l.texts = map[string]string{}
			}
			l.texts[e.Detail] = e.Detail
			l.size += len(e.Detail)
		}
	}
	l.events = append(l.events, e)
	if l.passing >= 2*keep || l.size > keepText {
		l.forget()
	}
}

// forget removes the older half of the programs and calls.
func (l *Log) forget() {
	drop := max(l.passing-keep, l.passing/2)
	l.passing -= drop
	l.texts, l.size = map[string]string{}, 0
	l.events = slices.DeleteFunc(l.events, func(e Event) bool {
		passes := e.What == Process || e.What == Call
		if passes && drop > 0 {
			drop--
			return true
		}
		if _, known := l.texts[e.Detail]; passes && !known {
			l.texts[e.Detail] = e.Detail
			l.size += len(e.Detail)
		}
		return false
	})
}

// Note adds an event that does not change the world. The lab's own servers use it.
func (l *Log) Note(e Event) {
	if !l.unlogged || e.What != Process && e.What != Call {
		l.add(e)
	}
}

// Unlogged reports whether the log stores no programs and calls.
func (l *Log) Unlogged() bool { return l.unlogged }

// CountCall counts one call of a vCenter method.
func (l *Log) CountCall(method string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[string]int{}
	}
	l.calls[method]++
}

// Calls returns the number of vCenter calls by method.
func (l *Log) Calls() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := make(map[string]int, len(l.calls))
	for m, n := range l.calls {
		calls[m] = n
	}
	return calls
}

// Events returns a copy of all events so far, oldest first.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// An Outage is a period in which a host did not respond. To is zero while the outage lasts.
type Outage struct {
	Host     string
	From, To time.Time
}

// Outages returns the outages of all hosts, in the order in which they began.
func (l *Log) Outages() []Outage {
	var out []Outage
	open := map[string]int{}
	for _, e := range l.Events() {
		switch e.What {
		case HostDown:
			if _, down := open[e.Host]; !down {
				open[e.Host] = len(out)
				out = append(out, Outage{Host: e.Host, From: e.Time})
			}
		case HostUp:
			if i, down := open[e.Host]; down {
				out[i].To = e.Time
				delete(open, e.Host)
			}
		}
	}
	return out
}

// MaxDown returns the largest number of hosts that were down at the same time.
func (l *Log) MaxDown() int {
	down, most := map[string]bool{}, 0
	for _, e := range l.Events() {
		switch e.What {
		case HostDown:
			down[e.Host] = true
		case HostUp:
			delete(down, e.Host)
		}
		most = max(most, len(down))
	}
	return most
}
