package sh

import (
	"fmt"
	"strings"
)

// Options are the options and operands of a command line.
type Options struct {
	set  map[string][]string
	Args []string // operands
}

// Has reports whether one of the names was given.
func (o Options) Has(names ...string) bool {
	for _, n := range names {
		if _, ok := o.set[n]; ok {
			return true
		}
	}
	return false
}

// Value returns the last argument of the named options, or "" if there is none.
func (o Options) Value(names ...string) string {
	for _, n := range names {
		if v := o.set[n]; len(v) > 0 {
			return v[len(v)-1]
		}
	}
	return ""
}

// Values returns all arguments of an option.
func (o Options) Values(name string) []string { return o.set[name] }

// Options parses the command line like getopt_long. spec is a list of option names: "x" and "long" have no argument, "x:" and
// "long:" have one. Options and operands may be mixed. If spec starts with "+", the first operand ends the options.
func (p *Proc) Options(spec string) (Options, error) {
	o := Options{set: map[string][]string{}}
	strict := strings.HasPrefix(spec, "+")
	hasArgument := func(name string) (arg, known bool) {
		for option := range strings.FieldsSeq(strings.TrimPrefix(spec, "+")) {
			if option, arg = strings.CutSuffix(option, ":"); option == name {
				return arg, true
			}
		}
		return false, false
	}
	args := p.Args[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			o.Args = append(o.Args, args...)
			return o, nil
		case strings.HasPrefix(a, "--"):
			name, value, given := strings.Cut(a[2:], "=")
			arg, ok := hasArgument(name)
			switch {
			case !ok:
				return o, fmt.Errorf("unrecognized option '%s'", a)
			case arg && !given:
				if len(args) == 0 {
					return o, fmt.Errorf("option '--%s' requires an argument", name)
				}
				value, args = args[0], args[1:]
			case !arg && given:
				return o, fmt.Errorf("option '--%s' doesn't allow an argument", name)
			}
			o.set[name] = append(o.set[name], value)
		case len(a) > 1 && a[0] == '-':
			for i := 1; i < len(a); i++ {
				name := a[i : i+1]
				arg, ok := hasArgument(name)
				if !ok {
					return o, fmt.Errorf("invalid option -- '%s'", name)
				}
				value := ""
				if arg {
					switch value = a[i+1:]; {
					case value != "":
					case len(args) == 0:
						return o, fmt.Errorf("option requires an argument -- '%s'", name)
					default:
						value, args = args[0], args[1:]
					}
					i = len(a)
				}
				o.set[name] = append(o.set[name], value)
			}
		case strict:
			o.Args = append(append(o.Args, a), args...)
			return o, nil
		default:
			o.Args = append(o.Args, a)
		}
	}
	return o, nil
}

// Usage prints err as a usage error and returns status.
func (p *Proc) Usage(status int, err error) int {
	fmt.Fprintf(p.Stderr, "%s: %v\nTry '%s --help' for more information.\n", p.Name(), err, p.Name())
	return status
}
