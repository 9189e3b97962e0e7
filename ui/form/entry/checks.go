package entry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/sizing"
)

// NotEmpty requires some text; what is its name with an article.
func NotEmpty(what string) func(string) error {
	return func(s string) error {
		if strings.TrimSpace(s) == "" {
			return errors.New("give " + what)
		}
		return nil
	}
}

// VCenter requires a vCenter address that is valid in the answers.
func VCenter(s string) error {
	if err := NotEmpty("an address")(s); err != nil {
		return err
	}
	u, err := backends.VCenterAddress(s)
	switch {
	case err != nil:
		return err
	case u.Scheme != "https":
		return errors.New("use https://; otherwise the password is sent unencrypted")
	case u.User != nil:
		return errors.New("enter the account in the field below")
	}
	return nil
}

// VCenterURL returns an address that VCenter accepts as a full URL, as in the answers; other text is returned unchanged.
func VCenterURL(s string) string {
	if VCenter(s) != nil {
		return s
	}
	u, _ := backends.VCenterAddress(s)
	return u.String()
}

// OneOf requires one of the words.
func OneOf(words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, strings.TrimSpace(s)) {
			return errors.New("write " + strings.Join(words, " or "))
		}
		return nil
	}
}

// VMKNic checks that every chosen host has the vmknic.
func VMKNic(inv *backends.Inventory, a *answers.Answers) func(string) error {
	return func(s string) error {
		var without []string
		member := Members(a)
		for _, h := range inv.Hosts {
			if named := a.PVRDMA.VMKNic.Names[h.Name]; member[h.Name] && h.VMK(cmp.Or(named, s)) == nil {
				without = append(without, h.Name)
			}
		}
		switch {
		case s == "":
			return errors.New("enter a vmknic, for example vmk0")
		case len(without) > 0:
			return fmt.Errorf("no vmknic %q on %s", backends.Clean(s), plain.Names(without))
		}
		return nil
	}
}

// SwitchMTU checks the MTU of a switch that is to be created; the plan refuses the same.
func SwitchMTU(inv *backends.Inventory, name string, mtu int) error {
	if inv.Switch(name) == nil && mtu > sizing.NewSwitchMTU {
		return fmt.Errorf("a new switch gets at most %d bytes, which every version supports", sizing.NewSwitchMTU)
	}
	return nil
}

// CardLeft returns a function that says why a VM cannot be selected in addition to the others of its host, "" if it can: a whole
// card can be assigned to one VM only, and there is one for each rail. host is by VM.
func CardLeft(a *answers.Answers, host map[string]string, chosen func(id string) bool) func(id string) string {
	return func(id string) string {
		if !a.WholeCard() {
			return ""
		}
		var have []string
		for other, h := range host {
			if other != id && h == host[id] && chosen(other) {
				have = append(have, other)
			}
		}
		if len(have) < len(a.AllRails()) {
			return ""
		}
		slices.SortFunc(have, plain.Natural)
		return fmt.Sprintf("%s on %s %s assigned to %s; a whole card can be assigned to one VM only", counted(len(have), "the card", "the %d cards"), host[id],
			counted(len(have), "is", "are"), plain.Names(have))
	}
}

// counted returns one text for one and another, with or without the number, for several.
func counted(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return strings.ReplaceAll(several, "%d", fmt.Sprint(n))
}
