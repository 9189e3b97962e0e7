package netif

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netplan"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
)

// Generate runs netplan's generator, early in the boot. If a file is invalid, it writes nothing for any interface
// (canonical/netplan, LP 1746842).
func (c *Config) Generate() {
	if !c.Netplan {
		return
	}
	if s, err := netplan.Load(c.FS, ""); err == nil {
		_ = s.Generate() // what cannot be written is missing
	}
}

func (c *Config) netplan(ctx context.Context, p *sh.Proc) int {
	o, err := p.Options("debug help root-dir:")
	if err != nil || len(o.Args) == 0 {
		fmt.Fprintf(p.Stderr, "usage: netplan [-h] [--debug] {help,apply,generate,get,info,ip,rebind,set,try} ...\n")
		return 2
	}
	what, root := o.Args[0], strings.TrimSuffix(o.Value("root-dir"), "/")
	if !slices.Contains([]string{"apply", "generate"}, what) {
		fmt.Fprintf(p.Stderr, "usage: netplan [-h] [--debug] {help,apply,generate,get,info,ip,rebind,set,try} ...\n"+
			"netplan: error: argument {help,apply,generate,get,info,ip,rebind,set,try}: invalid choice: '%s'\n", what)
		return 2
	}
	if root == "" && !p.Root() {
		fmt.Fprintf(p.Stderr, "ERROR: cannot create file /run/systemd/network/10-netplan.network: Permission denied\n")
		return 1
	}
	// Like netplan-apply(8), generate the files below /run first, then make the programs read them.
	if what == "apply" && !p.Spend(ctx, "netplan parse") {
		return 1
	}
	failed := 78
	if what == "generate" {
		failed = 1
	}
	s, err := netplan.Load(c.FS, root)
	if err == nil {
		c.warn(p, s)
		err = s.Generate()
	}
	if err != nil {
		fmt.Fprintf(p.Stderr, "%v\n", err)
		return failed
	}
	if what == "apply" {
		if !p.Spend(ctx, "netplan restart") {
			return 1
		}
		c.Networkd()
		c.NetworkManager()
	}
	return 0
}

func (c *Config) warn(p *sh.Proc, s *netplan.State) {
	warn := func(text string) {
		fmt.Fprintf(p.Stderr, "\n** (generate:%d): WARNING **: %s: %s\n", p.PID, c.Now().UTC().Format("15:04:05.000"), text)
	}
	for _, file := range s.Open {
		if c.Strict {
			warn("Permissions for " + file + " are too open. Netplan configuration should NOT be accessible by others.")
		}
	}
	for _, key := range s.Gateways {
		warn("`" + key + "` has been deprecated, use default routes instead.\nSee the 'Default routes' section of the documentation for more details.")
	}
	if text := s.Conflicts(); text != "" {
		warn("Problem encountered while validating default route consistency.Please set up multiple routing tables and use `routing-policy` instead.\nError: " + text)
	}
}
