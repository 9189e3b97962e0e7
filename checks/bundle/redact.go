package bundle

import (
	"errors"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Redacted replaces user names in a bundle.
const Redacted = "redacted"

// redacted returns a copy of a bundle without user names. root is kept, because rows judge it.
func redacted(b *Bundle) *Bundle {
	r := redactor{}
	for _, inv := range []*backends.Inventory{b.Facts.Inventory, b.Facts.Baseline} {
		r.users(inv)
	}
	if b.Answers != nil {
		r.know(b.Answers.VCenter.Username)
		r.know(b.Answers.ESXi.User)
		for _, v := range b.Answers.VMs {
			r.know(v.Guest.User)
		}
	}
	// The longest first, because one name may be the prefix of another.
	slices.SortFunc(r.names, func(x, y string) int { return len(y) - len(x) })
	out := *b
	out.Answers, out.Facts = r.answers(b.Answers), r.facts(b.Facts)
	return &out
}

// A redactor contains the user names to remove.
type redactor struct{ names []string }

func (r *redactor) know(name string) {
	if name != "" && name != "root" && !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
}

func (r *redactor) users(inv *backends.Inventory) {
	if inv == nil {
		return
	}
	r.know(inv.VCenter.User)
	for _, g := range inv.Guests {
		r.know(g.User)
	}
}

// user returns the replacement of a user name.
func (r *redactor) user(name string) string {
	if name == "" || name == "root" {
		return name
	}
	return Redacted
}

// text removes user names from the output of a machine, only as whole words: ubuntu is a user and a system.
func (r *redactor) text(s string) string {
	for _, name := range r.names {
		s = replaceWord(s, name, Redacted)
	}
	return s
}

func (r *redactor) err(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(r.text(err.Error()))
}

func (r *redactor) answers(a *answers.Answers) *answers.Answers {
	if a == nil {
		return nil
	}
	out := *a
	out.VCenter.Username, out.ESXi.User = r.user(a.VCenter.Username), r.user(a.ESXi.User)
	out.VMs = slices.Clone(a.VMs)
	for i := range out.VMs {
		out.VMs[i].Guest.User = r.user(out.VMs[i].Guest.User)
	}
	return &out
}

func (r *redactor) facts(f *checks.Facts) *checks.Facts {
	out := *f
	out.Inventory, out.Baseline, out.LacksErr = r.inventory(f.Inventory), r.inventory(f.Baseline), r.err(f.LacksErr)
	out.Pairs = slices.Clone(f.Pairs)
	for i := range out.Pairs {
		p := &out.Pairs[i]
		p.GPUErr = r.text(p.GPUErr)
		p.Measured = slices.Clone(p.Measured)
		for k := range p.Measured {
			p.Measured[k].Error = r.text(p.Measured[k].Error)
		}
	}
	return &out
}

func (r *redactor) inventory(inv *backends.Inventory) *backends.Inventory {
	if inv == nil {
		return nil
	}
	out := *inv
	out.VCenter.User = r.user(inv.VCenter.User)
	out.Gaps = slices.Clone(inv.Gaps)
	for i := range out.Gaps {
		out.Gaps[i].Why = r.text(out.Gaps[i].Why)
	}
	out.Guests = slices.Clone(inv.Guests)
	for i := range out.Guests {
		g := &out.Guests[i]
		g.User, g.Error, g.Hint, g.SudoError = r.user(g.User), r.text(g.Error), r.text(g.Hint), r.text(g.SudoError)
		g.KernelLog = r.lines(g.KernelLog)
	}
	out.Hosts = slices.Clone(inv.Hosts)
	for i := range out.Hosts {
		h := &out.Hosts[i]
		h.RecentTasks = r.lines(h.RecentTasks)
		if h.System != nil {
			h.System = h.System.Reworded(r.text)
			h.System.Exceptions.Value = slices.Clone(h.System.Exceptions.Value)
			for i, user := range h.System.Exceptions.Value {
				h.System.Exceptions.Value[i] = r.user(user)
			}
		}
	}
	return &out
}

func (r *redactor) lines(all []string) []string {
	out := slices.Clone(all)
	for i := range out {
		out[i] = r.text(out[i])
	}
	return out
}

// replaceWord replaces a word that is not adjacent to letters or digits.
func replaceWord(s, word, by string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, word)
		if i < 0 {
			return b.String() + s
		}
		end := i + len(word)
		if (i == 0 || !wordByte(s[i-1])) && (end == len(s) || !wordByte(s[end])) {
			b.WriteString(s[:i] + by)
		} else {
			b.WriteString(s[:end])
		}
		s = s[end:]
	}
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
