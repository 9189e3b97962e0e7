package answers

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// A Problem is one error in the answers. Line and Column count from 1; 0: unknown (answers that were not read from a file).
type Problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Path   string `json:"path"` // "vms[2].ip", "" for the file itself
	What   string `json:"what"`
	Hint   string `json:"hint,omitempty"`
}

func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, "%d:", p.Column)
		}
	}
	if b.Len() > 0 {
		b.WriteString(" ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.What)
	return b.String()
}

// Problems is the error of invalid answers: all errors, in the order of the file.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
		if p.Hint != "" {
			lines[i] += " (" + p.Hint + ")"
		}
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Nearest returns the name that was probably meant, "" if none is similar.
func Nearest(name string, names []string) string {
	best, least := "", 1+max(1, len(name)/3)
	for _, n := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance returns the optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return 64
	}
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}

const secretHint = "remove it and change the secret; secrets come from a prompt, RDMA_SETUP_PASSWORD, --password-file or --password-stdin"

var (
	secretName = regexp.MustCompile(
		`(?i)(pass(word|wd|phrase)?$|^pw$|pwd$|secret|token|private[-_ ]?key|api[-_ ]?key|access[-_ ]?key|credential|ssh[-_ ]?key$)`)
	userInfo = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://[^/\s@]*:[^/\s@]*@`)
)

func secretKey(key string) bool { return secretName.MatchString(key) }

// secretText reports whether a value looks like a secret: PEM text, or a URL with user info.
func secretText(s string) bool {
	return strings.Contains(s, "-----BEGIN ") || userInfo.MatchString(s)
}

func (d *decoder) secrets(n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, c := range n.Content {
			d.secrets(c, path)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			kn, vn := n.Content[i], n.Content[i+1]
			switch {
			case secretText(kn.Value):
				d.report(kn, path, secretHint, "secrets are not allowed in this file")
			case kn.Kind == yaml.ScalarNode && secretKey(kn.Value):
				d.report(kn, join(path, clip(kn.Value)), secretHint, "secrets are not allowed in this file")
			default:
				d.secrets(vn, join(path, clip(kn.Value)))
			}
		}
	case yaml.ScalarNode:
		switch {
		case strings.Contains(n.Value, "-----BEGIN "):
			d.report(n, path, secretHint, "holds a key or certificate")
		case userInfo.MatchString(n.Value):
			d.report(n, path, "remove user and password from the URL, and write the user under vcenter.username", "the URL holds a password")
		}
	}
}
