package plan

import (
	"fmt"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
)

// Resolve returns the value that a change sets once its current value has been read: To, or for a Late change what follows from
// both (firmware: nic.MergeFirmware and nic.Burn).
func Resolve(c Change, now backends.Value) (backends.Value, error) {
	if c.Late.IsAbsent() {
		return c.To, nil
	}
	if c.Kind == backends.KindFirmwareImage {
		return resolveImage(c, now)
	}
	var want, have map[string]string
	if err := c.Late.Decode(&want); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	if err := now.Decode(&have); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	set, err := nic.MergeFirmware(c.Target.Name, c.Name, want, have)
	if err != nil {
		return c.To, err
	}
	return backends.ValueOf(set), nil
}

func resolveImage(c Change, now backends.Value) (backends.Value, error) {
	var want nic.Burn
	var has backends.FirmwareImage
	if err := c.Late.Decode(&want); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	if err := now.Decode(&has); err != nil {
		return c.To, fmt.Errorf("%s: %w", c.ID(), err)
	}
	to, err := want.Resolve(c.Target.Name, c.Name, has)
	if err != nil {
		return c.To, err
	}
	return backends.ValueOf(to), nil
}
