package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/fault"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
	"github.com/rdma-setup/rdma-setup/checks/bundle"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// longest is the longest duration of an operation that rehearse accepts.
const longest = 30 * 24 * time.Hour

// check refuses flags that cannot be right, before anything is read. Names of hosts and VMs are checked when the site is known.
func (f *rehearseFlags) check() error {
	for flag, value := range map[string]string{"bundle": f.bundle, "scenario": f.scenario} {
		if f.given(flag) && value == "" {
			return console.Usage("give it a value, or leave it out; a variable of the shell may be unset", "--%s is empty", flag)
		}
	}
	s := f.stated
	for _, d := range []struct {
		flag string
		time time.Duration
	}{{"reboot", s.Reboot}, {"evacuate", s.Evacuate}, {"shutdown", s.Shutdown}, {"boot", s.Boot}, {"install", s.Install}, {"other", s.Other}} {
		if d.time < 0 || d.time > longest {
			return console.Usage("use a duration from 0s to 720h (30 days), such as 90s or 12m", "--%s %s is not valid", d.flag, d.time)
		}
	}
	if err := breakable(f.scenario); err != nil {
		return err
	}
	var err error
	f.rules, err = faultRules(f.faults)
	return err
}

// breakable refuses scenarios that break nothing at another site; name may be "".
func breakable(name string) error {
	const list = "rdma-setup lab --scenario help lists them"
	switch {
	case name == "", slices.Contains(scenario.Broken(), name):
		return nil
	case slices.Contains(scenario.Fabric(), name):
		return console.Usage("try it in a lab: rdma-setup lab --scenario "+name,
			"scenario %s is about the physical network or the speed of a card, which only a measurement shows: measurements in a rehearsal say "+
				"nothing about the site", name)
	case slices.Contains(lab.Scenarios(), name):
		return console.Usage("use a broken-... scenario: "+list, "scenario %s is a data centre of its own: it breaks nothing at the site", name)
	}
	return console.Usage(console.Meant(name, scenario.Broken(), "%s? "+list, "use a broken-... scenario: "+list), "unknown scenario %q", name)
}

// knownTargets refuses fault rules about hosts and VMs that the site does not have.
func (f *rehearseFlags) knownTargets(b *bundle.Bundle) error {
	var hosts, vms []string
	for _, h := range b.Facts.Inventory.Hosts {
		hosts = append(hosts, h.Name)
	}
	for _, v := range b.Facts.Inventory.VMs {
		vms = append(vms, v.Name)
	}
	return knownTargets(f.rules, hosts, vms)
}

// unused returns a warning for each fault rule that was applied to no call.
func unused(rules []fault.Unused) []string {
	out := []string{}
	for _, r := range rules {
		text := fmt.Sprintf("the fault %s matched no call: the rehearsal ran without it", r.Rule.Rule)
		switch {
		case r.Matched >= max(r.Nth, 1):
			text = fmt.Sprintf("the fault %s was not applied: an earlier rule applied to each call that it matches", r.Rule.Rule)
		case r.Matched > 0:
			text = fmt.Sprintf("the fault %s is for call number %d, and only %d matched: the rehearsal ran without it", r.Rule.Rule, r.Nth,
				r.Matched)
		}
		out = append(out, text)
	}
	return out
}

func twinDir() (string, error) {
	dir, err := os.MkdirTemp("", "rdma-setup-rehearse-")
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	if err != nil {
		return "", backends.Permanentf("", "set TMPDIR to a directory that you can write to",
			"the twin needs a temporary directory, and none can be created in %s: %w", os.TempDir(), err)
	}
	return dir, nil
}
