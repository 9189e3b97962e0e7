package bundle

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// Redacted replaces user names in a bundle.
const Redacted = "redacted"

// spoken are the keys of what machines say; user names are replaced in it as whole words: ubuntu is a user and a system.
var spoken = []string{"why", "error", "hint", "sudo_error", "shell_error", "kernel_log", "log", "recent_tasks", "GPUErr", "LacksErr"}

// A redactor holds the user names to replace. root is kept, because rows judge it.
type redactor struct{ names []string }

func (r *redactor) know(name string) {
	if name != "" && name != "root" && !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
}

// user returns the replacement of a user name.
func (r *redactor) user(name string) string {
	if name == "" || name == "root" {
		return name
	}
	return Redacted
}

// value returns the replacement of a value in a document.
func (r *redactor) value(around, key, s string) string {
	switch {
	case key == "user", around == "lockdown_exceptions" && key == "value":
		return r.user(s)
	case slices.Contains(spoken, key):
		for _, name := range r.names {
			s = replaceWord(s, name, Redacted)
		}
	}
	return s
}

// answers returns a copy without user names.
func (r *redactor) answers(a *answers.Answers) *answers.Answers {
	out := *a
	out.VCenter.Username, out.ESXi.User = r.user(a.VCenter.Username), r.user(a.ESXi.User)
	out.VMs = slices.Clone(a.VMs)
	for i := range out.VMs {
		out.VMs[i].Guest.User = r.user(out.VMs[i].Guest.User)
	}
	return &out
}

// redact removes the user names from documents; a are the answers, which may be nil.
func redact(members []member, a *answers.Answers) ([]member, *answers.Answers, error) {
	r := redactor{}
	if a != nil {
		for _, v := range a.VMs {
			r.know(v.Guest.User)
		}
		r.know(a.VCenter.Username)
		r.know(a.ESXi.User)
		a = r.answers(a)
	}
	trees := make([]any, len(members))
	for i, m := range members {
		d := json.NewDecoder(bytes.NewReader(m.text))
		d.UseNumber()
		if err := d.Decode(&trees[i]); err != nil {
			return nil, nil, err
		}
		walk(trees[i], "", "", func(_, key, s string) string {
			if key == "user" {
				r.know(s)
			}
			return s
		})
	}
	// The longest first, because one name may be the prefix of another.
	slices.SortFunc(r.names, func(x, y string) int { return len(y) - len(x) })
	out := slices.Clone(members)
	for i := range trees {
		var err error
		if out[i].text, err = document(walk(trees[i], "", "", r.value)); err != nil {
			return nil, nil, err
		}
	}
	return out, a, nil
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
