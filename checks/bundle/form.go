package bundle

import (
	"errors"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
)

// facts is checks.Facts as it is written: the parts that have a file of their own left out, errors as their texts.
type facts struct {
	checks.Facts

	Answers   any `json:"Answers,omitempty"`
	Inventory any `json:"Inventory,omitempty"`
	HostFacts any `json:"HostFacts,omitempty"`
	Pairs     any `json:"Pairs,omitempty"`
	LacksErr  said
}

// host is checks.HostFacts with errors as their texts.
type host struct {
	checks.HostFacts

	Err, ShellErr said
}

// said is the text of an error, "" without one.
type said string

func textOf(err error) said {
	if err == nil {
		return ""
	}
	return said(err.Error())
}

func (s said) err() error {
	if s == "" {
		return nil
	}
	return errors.New(string(s))
}

func hostsOf(all map[string]checks.HostFacts) map[string]host {
	if all == nil {
		return nil
	}
	out := make(map[string]host, len(all))
	for name, h := range all {
		w := host{HostFacts: h, Err: textOf(h.Err), ShellErr: textOf(h.ShellErr)}
		w.HostFacts.Err, w.HostFacts.ShellErr = nil, nil
		out[name] = w
	}
	return out
}

func hostFacts(all map[string]host) map[string]checks.HostFacts {
	if all == nil {
		return nil
	}
	out := make(map[string]checks.HostFacts, len(all))
	for name, w := range all {
		h := w.HostFacts
		h.Err, h.ShellErr = w.Err.err(), w.ShellErr.err()
		out[name] = h
	}
	return out
}

// split takes facts apart into what the files hold.
func split(f *checks.Facts) (facts, backends.Inventory, []backends.Guest) {
	inv := *f.Inventory
	guests := inv.Guests
	inv.Guests = nil
	w := facts{Facts: *f, LacksErr: textOf(f.LacksErr)}
	w.Facts.LacksErr = nil
	return w, inv, guests
}
