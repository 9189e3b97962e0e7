package esxi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
	"github.com/rdma-setup/rdma-setup/backends/transcript/firmware"
)

// Cards asks all cards of a host, by PCI address of function 0. SSH must be open on the host.
func (h *Hosts) Cards(ctx context.Context, host string) (map[string]backends.Firmware, error) {
	out := map[string]backends.Firmware{}
	err := h.with(ctx, host, func(s *shell) error {
		list, err := s.devices(ctx)
		if err != nil {
			return err
		}
		for _, d := range list {
			if out[d.pci], err = s.card(ctx, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// card asks one card for its identity and its configuration.
func (s *shell) card(ctx context.Context, d device) (backends.Firmware, error) {
	f, err := s.config(ctx, d)
	if err != nil {
		return f, err
	}
	text, failed, err := s.tool(ctx, "flint", "-d", d.name, "query")
	if err != nil {
		return f, err
	}
	if image := firmware.Flint(text); !failed && image.PSID != nil {
		f.PSID = *image.PSID
		f.Version = text0(image.FWVersion)
		return f, nil
	}
	// Some cards keep flint out and still answer the other tool.
	if text, failed, err = s.tool(ctx, "mlxfwmanager", "-d", d.name); err != nil {
		return f, err
	}
	list := firmware.MLXFWManager(text)
	if failed || list.Failed() || len(list.Devices) == 0 {
		return f, s.fail("query the firmware of "+d.pci, list.Errors, text)
	}
	f.PSID, f.Version = text0(list.Devices[0].PSID), text0(list.Devices[0].FWCurrent)
	return f, nil
}

func text0(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// config reads the keys of FirmwareKeys that a card has. Only with -e the tool tells what is in force now; without it
// every column is the next boot's.
func (s *shell) config(ctx context.Context, d device) (backends.Firmware, error) {
	f := backends.Firmware{Device: d.name, Current: map[string]string{}, Next: map[string]string{}}
	text, failed, err := s.tool(ctx, "mlxconfig", "-d", d.name, "-e", "query")
	if err != nil {
		return f, err
	}
	c := firmware.MLXConfig(text)
	if failed || c.Failed() || len(c.Params) == 0 {
		return f, s.fail("query the configuration of "+d.pci, c.Errors, text)
	}
	for _, p := range c.Params {
		if !slices.Contains(backends.FirmwareKeys, p.Name) {
			continue
		}
		if v, ok := number(p.Current); ok {
			f.Current[p.Name] = v
		}
		if v, ok := number(p.NextBoot); ok {
			f.Next[p.Name] = v
		}
	}
	return f, nil
}

// words are values that some releases print without their number.
var words = map[string]string{"false": "0", "true": "1", "ib": "1", "eth": "2", "vpi": "3"}

// number reads "True(1)", "ETH(2)", "16" and "ETH".
func number(value *string) (string, bool) {
	if value == nil {
		return "", false
	}
	word := strings.TrimSpace(*value)
	if open := strings.LastIndexByte(word, '('); open >= 0 && strings.HasSuffix(word, ")") {
		word = word[open+1 : len(word)-1]
	}
	if n, ok := words[strings.ToLower(word)]; ok {
		return n, true
	}
	n, err := strconv.ParseUint(word, 0, 32)
	if err != nil {
		return "", false
	}
	return strconv.FormatUint(n, 10), true
}

// firmwareSetter sets the firmware configuration of one card. It acts from the next boot on.
type firmwareSetter struct{ *Hosts }

// tries bounds how often a configuration is written again after the connection broke.
const tries = 3

// Read returns the keys that the card has, as the next boot will have them.
func (f firmwareSetter) Read(ctx context.Context, t backends.Setting) (backends.Value, error) {
	var got backends.Firmware
	err := f.with(ctx, t.Target.Name, func(s *shell) error {
		d, err := s.device(ctx, t.Name)
		if err == nil {
			got, err = s.config(ctx, d)
		}
		return err
	})
	if err != nil {
		return backends.Absent, err
	}
	return backends.ValueOf(got.Next), nil
}

// Set writes the keys that differ and reads them back.
func (f firmwareSetter) Set(ctx context.Context, t backends.Setting, to backends.Value, progress backends.Progress) error {
	var want map[string]string
	if err := to.Decode(&want); err != nil {
		return backends.Errorf(backends.KindPermanent, t.Target.Name, "", "set the firmware of %s: %w", t.Name, err)
	}
	for key, value := range want {
		if _, ok := number(&value); !ok || !slices.Contains(backends.FirmwareKeys, key) {
			return backends.Errorf(backends.KindRefused, t.Target.Name, "", "set the firmware of %s: %s=%q is none of what this program sets", t.Name, key, value)
		}
	}
	for try := 1; ; try++ {
		err := f.with(ctx, t.Target.Name, func(s *shell) error { return s.write(ctx, t.Name, want, progress) })
		if !errors.Is(err, ssh.ErrConnectionLost) || try == tries {
			return err
		}
	}
}

// write sets what differs from the next boot's configuration.
func (s *shell) write(ctx context.Context, pci string, want map[string]string, progress backends.Progress) error {
	what := "set the firmware of " + pci
	d, err := s.device(ctx, pci)
	if err != nil {
		return err
	}
	before, err := s.config(ctx, d)
	if err != nil {
		return err
	}
	args := []string{"-d", d.name, "-y", "set"}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch has, ok := before.Next[key]; {
		case !ok:
			return backends.Errorf(backends.KindRefused, s.host, remedies[firmware.CodeUnknownParameter], "%s: the card has no key %s", what, key)
		case has != want[key]:
			args = append(args, key+"="+want[key])
		}
	}
	if len(args) == 4 {
		return nil
	}
	text, failed, err := s.tool(ctx, "mlxconfig", args...)
	if err != nil {
		return err
	}
	if c := firmware.MLXConfig(text); failed || c.Failed() || !c.Applied {
		return s.fail(what, c.Errors, text)
	}
	progress.Report(50)
	after, err := s.config(ctx, d)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if after.Next[key] != want[key] {
			return backends.Errorf(backends.KindConflict, s.host, "look at: "+tools+"mlxconfig -d "+d.name+" -e query on the host",
				"%s: %s was accepted, but reads %s, not %s", what, key, after.Next[key], want[key])
		}
	}
	progress.Report(100)
	return nil
}
