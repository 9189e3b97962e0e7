package netif

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

func (c *Config) nmcli(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("+t f: g: m: w: p e: c: terse fields: get-values: mode: wait: colors: escape: version")
	if err != nil {
		return p.Fail(2, "Error: %v", err)
	}
	if o.Has("version") {
		p.Printf("nmcli tool, version 1.40.16-4.el8_8\n")
		return 0
	}
	c.nm.turn.Lock()
	defer c.nm.turn.Unlock()
	object, rest := verb(o.Args, "general")
	switch {
	case strings.HasPrefix("connection", object):
		return c.nmConnection(p, o, rest)
	case strings.HasPrefix("general", object):
		p.Printf("connected\n")
		return 0
	}
	fmt.Fprintf(p.Stderr, "Error: argument '%s' not understood. Try passing --help instead.\n", object)
	return 2
}

func nmError(p *sh.Proc, status int, format string, args ...any) int {
	fmt.Fprintf(p.Stderr, "Error: "+format+"\n", args...)
	return status
}

func (c *Config) nmConnection(p *sh.Proc, o sh.Options, args []string) int {
	what, rest := verb(args, "show")
	changes := map[string]func(*sh.Proc, []string) int{
		"up": c.nmActivate, "reload": func(*sh.Proc, []string) int { c.nmReload(); return 0 },
	}
	if f, ok := changes[what]; ok {
		if !p.Root() {
			return nmError(p, 4, "Failed to %s connection: Insufficient privileges", what)
		}
		return f(p, rest)
	}
	if what != "show" && what != "s" {
		return nmError(p, 2, "argument '%s' not understood. Try passing --help instead.", what)
	}
	rest = slices.DeleteFunc(rest, func(s string) bool { return s == "--active" || s == "id" })
	if len(rest) > 0 {
		return c.nmShow(p, o, rest[0])
	}
	active := slices.Contains(args, "--active")
	if !o.Has("t", "terse") && !o.Has("g", "get-values") {
		p.Printf("NAME  UUID  TYPE  DEVICE \n")
	}
	for _, con := range c.nm.list() {
		if active && con.device == "" {
			continue
		}
		row := map[string]string{"NAME": con.id(), "UUID": con.get("connection.uuid"), "TYPE": "802-3-ethernet", "DEVICE": con.device,
			"FILENAME": con.file, "AUTOCONNECT": "yes", "ACTIVE": yesNo(con.device != ""),
			"STATE": map[bool]string{true: "activated"}[con.device != ""]}
		nmRow(p, o, row, []string{"NAME", "UUID", "TYPE", "DEVICE"})
	}
	return 0
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// nmRow prints the requested fields: separated by colons in terse mode, otherwise in columns.
func nmRow(p *sh.Proc, o sh.Options, row map[string]string, usual []string) {
	fields := usual
	if f := o.Value("f", "fields", "g", "get-values"); f != "" && f != "all" {
		fields = strings.Split(strings.ToUpper(f), ",")
	}
	var out []string
	for _, f := range fields {
		out = append(out, row[f])
	}
	if o.Has("t", "terse") || o.Has("g", "get-values") {
		for i := range out {
			out[i] = strings.ReplaceAll(out[i], ":", `\:`)
		}
		p.Printf("%s\n", strings.Join(out, ":"))
		return
	}
	for i := range out {
		if out[i] == "" {
			out[i] = "--"
		}
	}
	p.Printf("%s \n", strings.Join(out, "  "))
}

func (c *Config) nmShow(p *sh.Proc, o sh.Options, name string) int {
	con := c.nm.find(name)
	if con == nil {
		return nmError(p, 10, "%s - no such connection profile.", name)
	}
	fields := slices.Sorted(maps.Keys(con.set))
	if f := o.Value("f", "fields", "g", "get-values"); f != "" {
		fields = strings.Split(f, ",")
	}
	for _, f := range fields {
		value := con.get(longName(f))
		switch {
		case o.Has("g", "get-values"):
			p.Printf("%s\n", value)
		case o.Has("t", "terse"):
			p.Printf("%s:%s\n", f, value)
		default:
			if value == "" {
				value = "--"
			}
			p.Printf("%-40s%s\n", f+":", value)
		}
	}
	return 0
}

func uuid(seed string) string {
	h := fmt.Sprintf("%x", sha256.Sum256([]byte(seed)))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

func (c *Config) named(p *sh.Proc, args []string) (*connection, []string, int) {
	if len(args) > 0 && (args[0] == "id" || args[0] == "uuid") {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil, nil, nmError(p, 2, "No connection specified.")
	}
	con := c.nm.find(args[0])
	if con == nil {
		return nil, nil, nmError(p, 10, "unknown connection '%s'.", args[0])
	}
	return con, args[1:], 0
}

func (c *Config) nmActivate(p *sh.Proc, args []string) int {
	con, rest, status := c.named(p, args)
	if status != 0 {
		return status
	}
	var l Link
	why := ""
	if set, _ := words(rest, "ifname"); set["ifname"] != "" {
		var there bool
		l, there = c.Stack.Link(set["ifname"])
		switch misfit := con.misfit(l); {
		case !there:
			return nmError(p, 4, "device '%s' not found for connection '%s'.", set["ifname"], con.id())
		case c.unmanaged(l):
			why = fmt.Sprintf("Connection '%s' is not available on device %s because device is strictly unmanaged", con.id(), l.Name)
		case !l.Connected:
			why = fmt.Sprintf("Connection '%s' is not available on device %s because device has no carrier", con.id(), l.Name)
		case misfit != "":
			why = fmt.Sprintf("Connection '%s' is not available on device %s because profile is not compatible with device (%s)", con.id(), l.Name,
				misfit)
		}
	} else {
		return nmError(p, 2, "No interface specified.")
	}
	if why == "" {
		if err := c.nmUp(con, l); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		return nmError(p, 4, "Connection activation failed: %s", why)
	}
	p.Printf("Connection successfully activated (D-Bus active path: /org/freedesktop/NetworkManager/ActiveConnection/5)\n")
	return 0
}
