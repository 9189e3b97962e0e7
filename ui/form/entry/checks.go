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
			return fmt.Errorf("no vmknic %q on %s", s, plain.Names(without))
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
		cards, are := "the card", "is"
		if n := len(have); n > 1 {
			cards, are = fmt.Sprintf("the %d cards", n), "are"
		}
		return fmt.Sprintf("%s on %s %s assigned to %s; a whole card can be assigned to one VM only", cards, host[id], are, plain.Names(have))
	}
}

// mark is the prefix of a line that describes an error in the next one.
const mark = "# error: "

// Marked returns a text of answers with the errors above each line.
func Marked(text string, wrong answers.Problems) string {
	lines := strings.Split(text, "\n")
	for _, p := range slices.Backward(wrong) {
		at := min(max(0, p.Line-1), len(lines))
		what := p.What
		if p.Hint != "" {
			what += " (" + p.Hint + ")"
		}
		lines = slices.Insert(lines, at, mark+strings.ReplaceAll(what, "\n", " "))
	}
	return strings.Join(lines, "\n")
}

// Unmarked removes these lines.
func Unmarked(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, mark) }), "\n")
}

// Missing returns the hosts and VMs of edited answers that the vCenter does not have: a page could not show them.
func Missing(a *answers.Answers, inv *backends.Inventory, text string) answers.Problems {
	var wrong answers.Problems
	lines := strings.Split(text, "\n")
	missing := func(path, what, name string) {
		line := slices.IndexFunc(lines, func(l string) bool { return slices.Contains(strings.FieldsFunc(l, between), name) })
		wrong = append(wrong, answers.Problem{Line: line + 1, Path: path, What: "the vCenter has no " + what + " " + name})
	}
	for _, name := range a.Hosts.Names {
		if inv.Host(name) == nil {
			missing("hosts.names", "host", name)
		}
	}
	for _, v := range a.VMs {
		if inv.VM(v.Name) == nil {
			missing("vms", "VM", v.Name)
		}
	}
	return wrong
}

// between reports whether a character separates words in YAML.
func between(r rune) bool { return strings.ContainsRune(" \t,[]{}\"'", r) }
