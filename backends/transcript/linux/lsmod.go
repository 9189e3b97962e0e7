package linux

import (
	"path"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// ModulesResult is the text of lsmod, of /proc/modules or of modprobe.
type ModulesResult struct {
	scan.Envelope
	Modules []Module `json:"modules"`
}

// Module is one loaded kernel module.
type Module struct {
	Name      string   `json:"name"`
	SizeBytes int64    `json:"size_bytes"`
	Refcount  *int64   `json:"refcount"`
	UsedBy    []string `json:"used_by"`
}

// Modules parses the text of lsmod. A row is a name and two numbers; the users may continue on the next line.
func Modules(text string) ModulesResult {
	r := ModulesResult{Modules: []Module{}}
	r.Envelope, text = scan.Begin("lsmod", text)
	understood := false
	var open *Module // whose list of users is cut by the end of the line
	for line := range scan.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "Module" && len(words) >= 3 && words[1] == "Size" {
			understood, open = true, nil
			words = words[min(4, len(words)):]
		}
		if module, reason, ok := loadFailure(line); ok {
			r.Fail("module_load_failed", line, map[string]any{"module": module, "reason": reason})
			continue
		}
		open = r.words(words, open)
	}
	r.NotUnderstood(understood || len(r.Modules) > 0, text)
	return r
}

// words reads the rows of one line and returns the module whose users continue.
func (r *ModulesResult) words(words []string, open *Module) *Module {
	for i := 0; i < len(words); {
		if m, ok := moduleAt(words[i:]); ok {
			r.Modules = append(r.Modules, m)
			open = &r.Modules[len(r.Modules)-1]
			i += 3
			continue
		}
		if open == nil {
			return nil
		}
		w := words[i]
		if !strings.HasPrefix(w, "[") && w != "-" {
			for user := range strings.SplitSeq(w, ",") {
				if !isModuleName(user) {
					if user != "" {
						return nil
					}
					continue
				}
				open.UsedBy = append(open.UsedBy, user)
			}
		}
		i++
		if strings.HasSuffix(w, ",") && (i == len(words) || isModuleName(strings.Trim(words[i], ","))) && !isLive(words, i) {
			continue
		}
		if i < len(words) {
			if _, ok := moduleAt(words[i:]); ok {
				continue
			}
		}
		return nil
	}
	if open != nil && len(open.UsedBy) == 0 && (open.Refcount == nil || *open.Refcount <= 0) {
		return nil
	}
	return open
}

// isLive recognizes the state word that follows the users in /proc/modules.
func isLive(words []string, i int) bool {
	return i < len(words) && (words[i] == "Live" || words[i] == "Loading" || words[i] == "Unloading")
}

func moduleAt(words []string) (Module, bool) {
	if len(words) < 3 || !isModuleName(words[0]) {
		return Module{}, false
	}
	size, refs := scan.Int(words[1]), scan.Int(words[2])
	if size == nil || refs == nil && words[2] != "-" {
		return Module{}, false
	}
	return Module{Name: words[0], SizeBytes: *size, Refcount: refs, UsedBy: []string{}}, true
}

func isModuleName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	letters := false
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
		letters = letters || letter
	}
	return letters
}

// loadFailure reads "modprobe: ERROR: could not insert 'M': R", the same of insmod, and modprobe's "FATAL: Module M not
// found in directory D".
func loadFailure(line string) (module, reason string, ok bool) {
	if rest, found := scan.After(line, "could not insert "); found {
		rest = strings.TrimPrefix(rest, "module ")
		module, reason, _ = strings.Cut(rest, ":")
		module = strings.TrimSuffix(path.Base(scan.Unquote(module)), ".ko")
		return module, strings.TrimSpace(reason), true
	}
	if rest, found := scan.After(line, "FATAL: Module "); found {
		module, reason, ok = strings.Cut(rest, " ")
		return scan.Unquote(module), strings.TrimRight(reason, "."), ok && strings.HasPrefix(reason, "not found")
	}
	return "", "", false
}
