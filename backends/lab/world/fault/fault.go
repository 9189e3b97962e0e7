// Package fault implements the rules of --fault: the faults that the lab injects on request, and the output of programs with
// faults.
package fault

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The actions of a fault rule.
const (
	DoFault       = "fault"        // return the vSphere fault Arg
	DoSlow        = "slow"         // wait Arg before continuing
	DoDrop        = "drop"         // close the connection without executing the call
	DoDropAfter   = "drop-after"   // execute the call, then close the connection instead of responding
	DoHang        = "hang"         // never respond; a program ends when the rules are cleared, as if it were killed then
	DoGarbage     = "garbage"      // execute the call, then return half of an invalid response; for a command: see Garbage
	DoExpire      = "expire"       // end all sessions of the vCenter first, including this one
	DoTaskError   = "task-error"   // accept the call; its task fails with the text Arg
	DoTaskFault   = "task-fault"   // accept the call; its task fails with the vSphere fault Arg
	DoTaskCancel  = "task-cancel"  // accept the call; its task is cancelled before it takes effect
	DoTaskStay    = "task-stay"    // accept the call; its task has no effect and stays running until the rules are cleared
	DoTaskHold    = "task-hold"    // accept the call; its task takes effect when the rules are cleared (Rules.Hold)
	DoFail        = "fail"         // a command prints the text Arg and exits with status 1
	DoRebootNever = "reboot-never" // a reboot of the host or guest never completes (Rules.NeverBack)
	DoHTTP        = "http"         // return the HTTP status Arg
	DoKill        = "kill"         // SIGKILL terminates a command at its step Arg, counted from 1
	DoReset       = "reset"        // the guest is reset at step Arg of a command
	DoDisconnect  = "disconnect"   // the adapters of a VM do not connect at power-on (Rules.Disconnects)
	DoNoise       = "noise"        // a command prints Arg bytes of hostile text, then runs normally
)

// Garbage is the text that a command prints instead of running. The command exits with status 0.
const Garbage = "\x1b[2J\x00\xff\xfe}{ %s %n \"'` ^@ 18446744073709551616 -- \r\n\n"

// A Rule is one rule of --fault: KEY=VALUE pairs separated by commas. The last key is do; its value is the rest of the rule.
//
//	host=esx-02,method=EnableRuleset,nth=1,do=fault:NoPermission
//	vm=vm-01,command=modprobe,nth=2,do=fail:Module not found
//	method=RetrievePropertiesEx,do=slow:5s
//
// host and vm are names or patterns (esx-*); empty means any. method is a vCenter method, with or without the suffix _Task.
// command is a prefix of the command line or the base name of its first word. nth counts matching calls from 1; without it, the
// rule applies to every matching call.
type Rule struct {
	Rule    string // the text of the rule
	Host    string
	VM      string
	Method  string
	Command string
	Nth     int // 0: every call
	Do      string
	Arg     string
	Wait    time.Duration // delay of DoSlow
	Bytes   int64         // output size of DoNoise
	Step    int           // step of DoKill and DoReset
	over    chan struct{} // closed when the rule is removed
}

// A Target is the host and the VM that a call concerns; unknown fields are empty.
type Target struct{ Host, VM string }

// Rules stores the rules and counts the matching calls. It is safe for concurrent use.
type Rules struct {
	mu      sync.Mutex
	rules   []Rule
	seen    []int         // calls that matched each rule
	used    []int         // calls to which each rule was applied
	cleared chan struct{} // closed by Clear; nil: no waiters
}

// None reports whether there are no rules.
func (f *Rules) None() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.rules) == 0
}

// Parse parses the rules of the command line.
func Parse(rules []string) (*Rules, error) {
	f := &Rules{}
	for _, text := range rules {
		if err := f.Add(text); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Add adds a rule to the active rules.
func (f *Rules) Add(text string) error {
	r, err := parseFault(text)
	if err != nil {
		return fmt.Errorf("fault rule %q: %w", text, err)
	}
	r.over = make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, r)
	f.seen, f.used = append(f.seen, 0), append(f.used, 0)
	return nil
}

// Clear removes all rules.
func (f *Rules) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		close(r.over)
	}
	f.rules, f.seen, f.used = nil, nil, nil
	if f.cleared != nil {
		close(f.cleared)
		f.cleared = nil
	}
}

// Cleared returns a channel that is closed when the active rules are removed.
func (f *Rules) Cleared() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cleared == nil {
		f.cleared = make(chan struct{})
	}
	return f.cleared
}

// Take counts the call and returns the rule that applies to it, if any. Either method or command is set.
func (f *Rules) Take(t Target, method, command string) (Rule, bool) {
	return f.take(func(r Rule) bool { return r.Do != DoTaskHold && r.Do != DoRebootNever && r.matches(t, method, command) })
}

// NeverBack counts a reboot and returns the rule by which it never completes, if any. Either the host or the VM of the target is set.
// A rule may name the method or the command that starts the reboot, but applies however it is started: a host is also rebooted by its
// image.
func (f *Rules) NeverBack(t Target) (Rule, bool) {
	return f.take(func(r Rule) bool { return r.Do == DoRebootNever && r.about(t) && (r.Method == "" || t.Host != "") })
}

// Hold counts the task of a method. If a rule holds it, Hold returns the rule and a channel that is closed when the rules are
// removed; otherwise nil.
func (f *Rules) Hold(t Target, method string) (Rule, <-chan struct{}) {
	cleared := f.Cleared()
	rule, held := f.take(func(r Rule) bool { return r.Do == DoTaskHold && r.matches(t, method, "") })
	if !held {
		return Rule{}, nil
	}
	return rule, cleared
}

func (f *Rules) take(which func(Rule) bool) (Rule, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var hit Rule
	found := false
	for i, r := range f.rules {
		if !which(r) {
			continue
		}
		f.seen[i]++
		if !found && (r.Nth == 0 || r.Nth == f.seen[i]) {
			hit, found = r, true
			f.used[i]++
		}
	}
	return hit, found
}

// about reports whether a rule is about the host and the VM of a target.
func (r Rule) about(t Target) bool {
	return (r.Host == "" || like(r.Host, t.Host)) && (r.VM == "" || like(r.VM, t.VM))
}

func (r Rule) matches(t Target, method, command string) bool {
	if !r.about(t) {
		return false
	}
	if r.Method != "" {
		return method != "" && (r.Method == "*" || r.Method == method || r.Method+"_Task" == method)
	}
	if r.Command != "" {
		return command != "" && commandLike(r.Command, command)
	}
	if r.Do == DoDisconnect {
		return false
	}
	// A rule without method or command applies to everything.
	return r.Do != DoFail && r.Do != DoNoise && r.Do != DoKill && r.Do != DoReset || command != ""
}

// Disconnects reports whether a rule keeps the adapters of a VM, except the first, disconnected at power-on although they are
// set to connect.
func (f *Rules) Disconnects(vm string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.rules, func(r Rule) bool { return r.Do == DoDisconnect && (r.VM == "" || like(r.VM, vm)) })
	if i < 0 {
		return false
	}
	f.seen[i]++
	f.used[i]++
	return true
}

// All returns the active rules.
func (f *Rules) All() []Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.rules)
}

// An Unused rule was applied to no call.
type Unused struct {
	Rule
	Matched int // calls that matched, of which none was number Nth
}

// Unused returns the active rules that were applied to no call yet.
func (f *Rules) Unused() []Unused {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Unused
	for i, r := range f.rules {
		if f.used[i] == 0 {
			out = append(out, Unused{r, f.seen[i]})
		}
	}
	return out
}

// Stranger returns the key and the name or pattern of a rule that matches none of these hosts or VMs; "" if there is none.
func (r Rule) Stranger(hosts, vms []string) (kind, name string) {
	none := func(pattern string, names []string) bool {
		return pattern != "" && !slices.ContainsFunc(names, func(name string) bool { return like(pattern, name) })
	}
	switch {
	case none(r.Host, hosts):
		return "host", r.Host
	case none(r.VM, vms):
		return "vm", r.VM
	}
	return "", ""
}

// like reports whether a pattern matches a name, or the last part of a name that is an inventory path.
func like(pattern, name string) bool {
	is := func(name string) bool {
		ok, err := path.Match(pattern, name)
		return err == nil && ok && name != ""
	}
	return is(name) || strings.HasPrefix(name, "/") && is(path.Base(name))
}

func commandLike(prefix, command string) bool {
	if prefix == "*" || strings.HasPrefix(command, prefix) {
		return true
	}
	first, rest, _ := strings.Cut(command, " ")
	short := path.Base(first)
	if rest != "" {
		short += " " + rest
	}
	return strings.HasPrefix(short, prefix)
}

func parseFault(text string) (Rule, error) {
	r := Rule{Rule: text}
	head, do, ok := strings.Cut(","+text, ",do=")
	if !ok {
		return r, fmt.Errorf("do= is missing")
	}
	for _, pair := range strings.Split(strings.TrimPrefix(head, ","), ",") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return r, fmt.Errorf("%q is not key=value", pair)
		}
		switch key {
		case "host":
			r.Host = value
		case "vm":
			r.VM = value
		case "method":
			r.Method = value
		case "command":
			r.Command = value
		case "nth":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return r, fmt.Errorf("nth must be a number from 1, not %q", value)
			}
			r.Nth = n
		default:
			return r, fmt.Errorf("unknown key %q (host, vm, method, command, nth, do)", key)
		}
	}
	if r.Method != "" && r.Command != "" {
		return r, fmt.Errorf("method and command exclude each other")
	}
	r.Do, r.Arg, _ = strings.Cut(do, ":")
	switch r.Do {
	case DoSlow:
		wait, err := time.ParseDuration(r.Arg)
		if err != nil || wait < 0 {
			return r, fmt.Errorf("slow needs a duration such as 5s or 1m30s, not %q", r.Arg)
		}
		r.Wait = wait
	case DoNoise:
		n, err := size(r.Arg)
		if err != nil {
			return r, fmt.Errorf("noise: %w", err)
		}
		r.Bytes = n
	case DoKill, DoReset:
		n, err := strconv.Atoi(r.Arg)
		if err != nil || n < 1 {
			return r, fmt.Errorf("%s needs the number of a step from 1: do=%s:2", r.Do, r.Do)
		}
		r.Step = n
	case DoFault, DoTaskError, DoTaskFault, DoFail, DoHTTP:
		if r.Arg == "" {
			return r, fmt.Errorf("%s needs a text: do=%s:TEXT", r.Do, r.Do)
		}
	case DoRebootNever:
		method := strings.TrimSuffix(r.Method, "_Task")
		if method != "" && method != "RebootHost" && method != "*" || r.Command != "" && !strings.Contains(r.Command, "reboot") {
			return r, fmt.Errorf("%s is about reboots: leave out method and command, or use method=RebootHost_Task or command=reboot", r.Do)
		}
	case DoDrop, DoDropAfter, DoHang, DoGarbage, DoExpire, DoTaskCancel, DoTaskStay, DoTaskHold, DoDisconnect:
	default:
		return r, fmt.Errorf("unknown do %q (fault, slow, drop, drop-after, hang, kill, reset, noise, garbage, expire, "+
			"task-error, task-fault, task-cancel, task-stay, task-hold, fail, http, reboot-never, disconnect)", r.Do)
	}
	return r, nil
}
