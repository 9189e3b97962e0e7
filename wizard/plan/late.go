package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/wizard/plan/nmlx5"
)

// Resolve returns what a change shall set once its present value has been read: To, or for a Late change what follows from
// both. Firmware: keys that the card does not have are left out (single ports, Ethernet-only cards), keys that nobody
// asked for stay, and NUM_OF_VFS is never lowered.
func Resolve(c Change, now backends.Value) (backends.Value, error) {
	if c.Late.IsAbsent() {
		return c.To, nil
	}
	var want, have map[string]string
	if err := c.Late.Decode(&want); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	if err := now.Decode(&have); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		old, there := have[key]
		switch {
		case !there && (key == nmlx5.SRIOVOn || key == nmlx5.NumVFs):
			return c.To, backends.Errorf(backends.KindRefused, c.Target.Name, "choose a card whose firmware offers SR-IOV, or update the firmware",
				"the firmware of %s has no %s", c.Name, key)
		case !there && key == nmlx5.ATS:
			return c.To, backends.Errorf(backends.KindRefused, c.Target.Name, "set gpudirect.ats to false: ConnectX-6 and later have it (NVIDIA, ATS); relax_acs does without",
				"the firmware of %s has no %s", c.Name, key)
		case there && (key != nmlx5.NumVFs || number(old) < number(want[key])):
			have[key] = want[key]
		}
	}
	return backends.ValueOf(have), nil
}

// number reads a decimal count; what is none counts as 0.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
