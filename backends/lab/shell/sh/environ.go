package sh

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// An environ is the environment with which a shell starts. A shell has about a dozen variables, so a search from the first is
// faster than the sorted list of the interpreter's package.
type environ []variable

type variable struct {
	name string
	expand.Variable
}

// environOf returns the environment of a shell that p runs. Of several variables with one name the last one is valid.
func environOf(p *Proc) environ {
	list := p.Environ()
	e := make(environ, 0, len(list)+4)
	for _, kv := range list {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			e = e.with(name, value)
		}
	}
	uid := strconv.Itoa(p.User.UID)
	return e.with("UID", uid).with("EUID", uid).with("GID", strconv.Itoa(p.User.Cred().GID())).with(ownPID, strconv.Itoa(p.PID))
}

// ownPID is the variable that a parsed script has instead of $$, for which the interpreter returns the PID of this program.
const ownPID = "LAB_SHELL_PID"

func (e environ) with(name, value string) environ {
	v := variable{name, expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}}
	if i := slices.IndexFunc(e, func(v variable) bool { return v.name == name }); i >= 0 {
		e[i] = v
		return e
	}
	return append(e, v)
}

// Get implements expand.Environ.
func (e environ) Get(name string) expand.Variable {
	for _, v := range e {
		if v.name == name {
			return v.Variable
		}
	}
	return expand.Variable{}
}

// Each implements expand.Environ.
func (e environ) Each(f func(name string, v expand.Variable) bool) {
	for _, v := range e {
		if !f(v.name, v.Variable) {
			return
		}
	}
}

// exported returns the variables that programs of a shell get. The interpreter yields a changed variable again, after the first
// value.
func exported(env expand.Environ) []string {
	list := []string{}
	for name, v := range env.Each {
		i := slices.IndexFunc(list, func(kv string) bool { return strings.HasPrefix(kv, name) && kv[len(name)] == '=' })
		switch {
		case name == "UID" || name == "EUID" || name == "GID" || name == ownPID:
		case v.Exported && v.Kind == expand.String && i < 0:
			list = append(list, name+"="+v.Str)
		case v.Exported && v.Kind == expand.String:
			list[i] = name + "=" + v.Str
		case i >= 0:
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}
