package mlx5

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

func (s mft) Cards(ctx context.Context) (map[string]backends.Firmware, error) {
	list, err := s.devices(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]backends.Firmware{}
	for _, d := range list {
		if out[d.pci], err = s.card(ctx, d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// card reads the identity, the configuration and the PCIe link of one card.
func (s mft) card(ctx context.Context, d device) (backends.Firmware, error) {
	f, err := s.config(ctx, d)
	if err != nil {
		return f, err
	}
	text, failed, err := s.tool(ctx, "flint", "-d", d.name, "query")
	if err != nil {
		return f, err
	}
	if image := transcript.Flint(text); !failed && image.PSID != nil {
		f.PSID = *image.PSID
		f.Slot, err = s.slot(ctx, d)
		return f, err
	}
	// Some cards block flint but still answer mlxfwmanager.
	if text, failed, err = s.tool(ctx, "mlxfwmanager", "-d", d.name); err != nil {
		return f, err
	}
	list := transcript.MLXFWManager(text)
	if failed || list.Failed() || len(list.Devices) == 0 {
		return f, s.fail("query the firmware of "+d.pci, list.Errors, text)
	}
	if id := list.Devices[0].PSID; id != nil {
		f.PSID = *id
	}
	f.Slot, err = s.slot(ctx, d)
	return f, err
}

// slot reads the PCIe link of a card (NVIDIA, MFT documentation: mlxlink Utility). It stays unread if the card or the MFT release
// does not report it. That every MFT release for ESXi contains mlxlink is unverified.
func (s mft) slot(ctx context.Context, d device) (backends.Slot, error) {
	text, failed, err := s.tool(ctx, "mlxlink", "-d", d.name, "--port_type", "PCIE")
	switch {
	case errors.Is(err, backends.ErrNoFirmwareTools):
		return backends.Slot{}, nil
	case err != nil || failed:
		return backends.Slot{}, err
	}
	gen, lanes := transcript.PCIeLink(text)
	return backends.Slot{Gen: gen, Lanes: lanes}, nil
}

// config reads those of FirmwareRules.Keys that a card has. The tool prints the current values only with -e; without it every
// column is for the next boot.
func (s mft) config(ctx context.Context, d device) (backends.Firmware, error) {
	f := backends.Firmware{Current: map[string]string{}, Next: map[string]string{}}
	text, failed, err := s.tool(ctx, "mlxconfig", "-d", d.name, "-e", "query")
	if err != nil {
		return f, err
	}
	c := transcript.MLXConfig(text)
	if failed || c.Failed() || len(c.Params) == 0 {
		return f, s.fail("query the configuration of "+d.pci, c.Errors, text)
	}
	for _, p := range c.Params {
		if !known(p.Name) {
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

// known reports whether this program reads and may write a key.
func known(key string) bool { return slices.Contains(Family{}.Firmware().Keys, key) }

// words maps values that some releases print without their number.
var words = map[string]string{"false": "0", "true": "1", "ib": "1", "eth": "2", "vpi": "3"}

// number parses "True(1)", "ETH(2)", "16" and "ETH".
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

func isNumber(word string) bool {
	_, ok := number(&word)
	return ok
}

// Config reads the keys that a card has, current and as of the next boot.
func (s mft) Config(ctx context.Context, pci string) (backends.Firmware, error) {
	d, err := s.device(ctx, pci)
	if err != nil {
		return backends.Firmware{}, err
	}
	return s.config(ctx, d)
}

// SetConfig writes the keys that differ from the next boot's configuration, and reads them back.
func (s mft) SetConfig(ctx context.Context, pci string, want map[string]string, progress backends.Progress) error {
	what := "set the firmware of " + pci
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value := want[key]; !known(key) || !isNumber(value) {
			return backends.Refusedf(s.Host(), "", "%s: this program does not set %s=%q", what, key, value)
		}
	}
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
			return backends.Refusedf(s.Host(), remedies[transcript.CodeUnknownParameter], "%s: the card has no key %s", what,
				key)
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
	if c := transcript.MLXConfig(text); failed || c.Failed() || !c.Applied {
		return s.fail(what, c.Errors, text)
	}
	progress.Report(50)
	after, err := s.config(ctx, d)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if after.Next[key] != want[key] {
			return backends.Conflictf(s.Host(), "look at: "+tools+"mlxconfig -d "+d.name+" -e query on the host",
				"%s: %s was accepted, but reads back as %s instead of %s", what, key, after.Next[key], want[key])
		}
	}
	progress.Report(100)
	return nil
}
