package bundle

import (
	"errors"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
)

// facts is the stored form of checks.Facts: without the parts that have files of their own, and with errors as texts.
type facts struct {
	checks.Facts

	Answers   any `json:"Answers,omitempty"`
	Inventory any `json:"Inventory,omitempty"`
	Pairs     any `json:"Pairs,omitempty"`
	LacksErr  said
}

// said returns the text of an error, "" if there is none.
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

// split divides facts into the contents of the files.
func split(f *checks.Facts) (facts, backends.Inventory, []backends.Guest) {
	inv := *f.Inventory
	guests := inv.Guests
	inv.Guests = nil
	w := facts{Facts: *f, LacksErr: textOf(f.LacksErr)}
	w.Facts.LacksErr = nil
	return w, inv, guests
}
