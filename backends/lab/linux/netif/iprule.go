package netif

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// tableOf parses the name or number of a routing table (rt_tables).
func tableOf(word string) (int, bool) {
	if n, named := map[string]int{"local": 255, "main": 254, "default": 253}[word]; named {
		return n, true
	}
	n, err := strconv.ParseUint(word, 0, 32)
	return int(n), err == nil
}

// ipRule implements "ip rule".
func (c *Config) ipRule(p *sh.Proc, args []string) int {
	what, rest := verb(args, "show")
	switch what {
	case "show", "list", "ls", "lst", "sh":
		p.Printf("0:\tfrom all lookup local\n")
		for _, r := range c.Stack.Rules() {
			from, proto := "all", ""
			if r.From.IsValid() {
				from = strings.TrimSuffix(r.From.String(), "/32")
			}
			if r.Proto != "" {
				proto = " proto " + r.Proto
			}
			p.Printf("%d:\tfrom %s lookup %d%s\n", r.Priority, from, r.Table, proto)
		}
		p.Printf("32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n")
		return 0
	case "add", "a", "del", "delete", "d":
	default:
		fmt.Fprintf(p.Stderr, "Command \"%s\" is unknown, try \"ip rule help\".\n", what)
		return 255
	}
	r, status := ruleOf(p, rest)
	switch {
	case status != 0:
		return status
	case !p.Root():
		return notPermitted(p)
	case what[0] == 'd':
		return rtnl(p, c.Stack.DeleteRule(r))
	case r.Table == 0: // iproute2: a rule without a table uses main
		r.Table = 254
	}
	if r.Priority == 0 { // the kernel uses the priority just below the first existing one (fib_default_rule_pref)
		r.Priority = 32765
		if have := c.Stack.Rules(); len(have) > 0 {
			r.Priority = have[0].Priority - 1
		}
	}
	return rtnl(p, c.Stack.AddRule(r))
}

func ruleOf(p *sh.Proc, args []string) (r Rule, status int) {
	for i := 0; i < len(args); i++ {
		key := args[i]
		if !slices.Contains([]string{"from", "table", "lookup", "priority", "pref", "preference", "order", "proto", "protocol"}, key) {
			fmt.Fprintf(p.Stderr, "Failed to parse rule type\n")
			return r, 255
		}
		if i++; i >= len(args) {
			fmt.Fprintf(p.Stderr, "Command line is not complete. Try option \"help\"\n")
			return r, 255
		}
		ok := true
		switch key {
		case "from":
			if args[i] == "all" {
				continue
			}
			r.From, ok = prefixOf(args[i])
			if !ok {
				fmt.Fprintf(p.Stderr, "Error: any valid prefix is expected rather than \"%s\".\n", args[i])
				return r, 1
			}
		case "table", "lookup":
			r.Table, ok = tableOf(args[i])
			if !ok {
				fmt.Fprintf(p.Stderr, "Error: argument \"%s\" is wrong: invalid table ID\n\n", args[i])
				return r, 255
			}
		case "proto", "protocol":
			r.Proto = args[i]
		default:
			n, err := strconv.ParseUint(args[i], 0, 32)
			if err != nil {
				fmt.Fprintf(p.Stderr, "Error: argument \"%s\" is wrong: preference value is invalid\n\n", args[i])
				return r, 255
			}
			r.Priority = int(n)
		}
	}
	return r, 0
}

// prefixOf parses ADDRESS or ADDRESS/BITS.
func prefixOf(word string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(word); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(word)
	return prefix, err == nil
}

// changeRoute implements "ip route" add, replace, del and flush for tables other than main.
func (c *Config) changeRoute(p *sh.Proc, what string, args []string) int {
	set, rest := words(args, "dev", "table", "src", "scope", "proto", "protocol", "metric", "via")
	table, ok := tableOf(cmp.Or(set["table"], "main"))
	if !ok {
		fmt.Fprintf(p.Stderr, "Error: argument \"%s\" is wrong: table id value is invalid\n\n", set["table"])
		return 255
	}
	if !p.Root() {
		return notPermitted(p)
	}
	r := TableRoute{Table: table, Dev: set["dev"], Proto: cmp.Or(set["proto"], set["protocol"])}
	if len(rest) > 0 && rest[0] != "default" {
		if r.To, ok = prefixOf(rest[0]); !ok {
			fmt.Fprintf(p.Stderr, "Error: any valid prefix is expected rather than \"%s\".\n", rest[0])
			return 1
		}
	}
	if src, has := set["src"]; has {
		a, err := netip.ParseAddr(src)
		if err != nil {
			fmt.Fprintf(p.Stderr, "Error: any valid address is expected rather than \"%s\".\n", src)
			return 1
		}
		r.Src = a
	}
	if table >= 253 && table <= 255 {
		return 0 // the routes of main are derived from the addresses
	}
	switch what[0] {
	case 'd':
		return rtnl(p, c.Stack.DeleteRoutes(table, r.To))
	case 'f':
		return rtnl(p, c.Stack.DeleteRoutes(table, netip.Prefix{}))
	}
	if _, there := c.Stack.Link(r.Dev); !there {
		fmt.Fprintf(p.Stderr, "Cannot find device \"%s\"\n", r.Dev)
		return 1
	}
	return rtnl(p, c.Stack.AddRoute(r, what[0] != 'a'))
}

// showTable implements "ip route show table". For all, main is shown last.
func (c *Config) showTable(p *sh.Proc, word string) (status int, only bool) {
	table, ok := tableOf(word)
	if !ok && word != "all" {
		fmt.Fprintf(p.Stderr, "Error: argument \"%s\" is wrong: table id value is invalid\n\n", word)
		return 255, true
	}
	if word == "main" {
		return 0, false
	}
	found := false
	for _, r := range c.Stack.TableRoutes() {
		if word != "all" && r.Table != table {
			continue
		}
		found = true
		line := r.To.String() + " dev " + r.Dev
		if word == "all" {
			line += " table " + strconv.Itoa(r.Table)
		}
		if r.Proto != "" {
			line += " proto " + r.Proto
		}
		line += " scope link"
		if r.Src.IsValid() {
			line += " src " + r.Src.String()
		}
		p.Printf("%s \n", line)
	}
	if word != "all" && !found && !c.Stack.hasTable(table) {
		fmt.Fprintf(p.Stderr, "Error: ipv4: FIB table does not exist.\nDump terminated\n")
		return 2, true
	}
	return 0, word != "all"
}
