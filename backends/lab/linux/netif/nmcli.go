package netif

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
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
	case strings.HasPrefix("networking", object):
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
		"add": c.nmAdd, "modify": c.nmModify, "mod": c.nmModify, "up": c.nmActivate,
		"reload": func(*sh.Proc, []string) int { c.nmReload(); return 0 },
		"load":   func(*sh.Proc, []string) int { c.nmReload(); return 0 },
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
			"FILENAME": con.file, "AUTOCONNECT": "yes", "ACTIVE": yesNo(con.device != ""), "STATE": map[bool]string{true: "activated"}[con.device != ""]}
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

// settings parses nmcli's short names and SECTION.KEY names with their values.
func settings(args []string, into map[string]string) error {
	short := map[string]string{"con-name": "connection.id", "ifname": "connection.interface-name", "type": "connection.type",
		"autoconnect": "connection.autoconnect", "ip4": "ipv4.addresses", "mtu": "802-3-ethernet.mtu", "mac": "802-3-ethernet.mac-address"}
	for len(args) > 0 {
		key := args[0]
		if len(args) < 2 {
			return fmt.Errorf("value for '%s' is missing", key)
		}
		value := args[1]
		args = args[2:]
		key, plus := strings.CutPrefix(key, "+")
		if s, ok := short[key]; ok {
			key = s
		}
		key = longName(key)
		if !strings.Contains(key, ".") {
			return fmt.Errorf("invalid <setting>.<property> '%s'", key)
		}
		if !slices.Contains([]string{"connection", "802-3-ethernet", "ethernet", "ipv4", "ipv6"}, key[:strings.Index(key, ".")]) {
			return fmt.Errorf("invalid property '%s': invalid setting name", key)
		}
		if err := validSetting(key, value); err != nil {
			return err
		}
		if plus && into[key] != "" {
			value = into[key] + "," + value
		}
		if value == "" {
			delete(into, key)
			continue
		}
		into[key] = value
		if key == "ipv4.addresses" && into["ipv4.method"] == "" {
			into["ipv4.method"] = "manual"
		}
	}
	return nil
}

func validSetting(key, value string) error {
	switch key {
	case "ipv4.addresses":
		for _, a := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }) {
			if !strings.Contains(a, "/") {
				a += "/32"
			}
			if p, err := netip.ParsePrefix(a); err != nil || !p.Addr().Is4() {
				return fmt.Errorf("failed to modify ipv4.addresses: invalid IP address: '%s'", a)
			}
		}
	case "802-3-ethernet.mtu":
		if n, err := strconv.Atoi(value); value != "" && value != "auto" && (err != nil || n < 0) {
			return fmt.Errorf("failed to modify 802-3-ethernet.mtu: '%s' is not a valid number", value)
		}
	case "ipv4.method":
		if !slices.Contains([]string{"auto", "manual", "disabled", "link-local", "shared"}, value) {
			return fmt.Errorf("failed to modify ipv4.method: invalid method '%s'", value)
		}
	}
	return nil
}

func (c *Config) nmAdd(p *sh.Proc, args []string) int {
	set := map[string]string{}
	if err := settings(args, set); err != nil {
		return nmError(p, 2, "%v.", err)
	}
	switch {
	case set["connection.type"] == "":
		return nmError(p, 2, "'type' argument is required.")
	case set["connection.type"] != "ethernet" && set["connection.type"] != "802-3-ethernet":
		return nmError(p, 2, "invalid connection type; '%s' not among the types this lab knows.", set["connection.type"])
	case set["ipv4.method"] == "manual" && set["ipv4.addresses"] == "":
		return nmError(p, 2, "Failed to add '%s' connection: ipv4.addresses: this property cannot be empty for 'method=manual'", set["connection.id"])
	}
	set["connection.type"] = "ethernet"
	if set["connection.interface-name"] == "*" {
		delete(set, "connection.interface-name")
	}
	if set["connection.id"] == "" {
		set["connection.id"] = "ethernet-" + set["connection.interface-name"]
	}
	if set["ipv4.method"] == "" {
		set["ipv4.method"] = "auto"
	}
	set["connection.uuid"] = uuid(set["connection.id"] + c.Now().String())
	con := &connection{set: set, file: keyfiles + "/" + strings.ReplaceAll(set["connection.id"], "/", "*") + ".nmconnection"}
	if status := c.nmSave(p, con); status != 0 {
		return status
	}
	c.nm.put(con)
	if con.get("connection.autoconnect") != "no" {
		if l, why := c.suitable(con); why == "" && !c.busy(l.Name) {
			_ = c.nmUp(con, l) // a profile that the device refuses stays inactive
		}
	}
	p.Printf("Connection '%s' (%s) successfully added.\n", con.id(), con.get("connection.uuid"))
	return 0
}

func uuid(seed string) string {
	h := fmt.Sprintf("%x", sha256.Sum256([]byte(seed)))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

func (c *Config) busy(dev string) bool {
	return slices.ContainsFunc(c.nm.list(), func(o *connection) bool { return o.device == dev })
}

func (c *Config) nmSave(p *sh.Proc, con *connection) int {
	err := c.FS.MkdirAll(vfs.Root(), keyfiles, 0o700)
	if err == nil {
		err = c.FS.WriteFile(vfs.Root(), con.file, []byte(con.keyfile()), 0o600)
	}
	if err != nil {
		return nmError(p, 1, "Failed to save connection: %s", vfs.Reason(err))
	}
	return 0
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

func (c *Config) nmModify(p *sh.Proc, args []string) int {
	con, rest, status := c.named(p, args)
	if status != 0 {
		return status
	}
	set := maps.Clone(con.set)
	if err := settings(rest, set); err != nil {
		return nmError(p, 2, "%v.", err)
	}
	con.set = set
	return c.nmSave(p, con)
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
			why = fmt.Sprintf("Connection '%s' is not available on device %s because profile is not compatible with device (%s)", con.id(), l.Name, misfit)
		}
	} else {
		l, why = c.suitable(con)
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
