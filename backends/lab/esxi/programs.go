package esxi

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/esxcli"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

func (h *Host) programs() map[string]sh.Program {
	return map[string]sh.Program{
		"esxcli": h.esxcli, "vmware": h.vmware, "vmkping": h.vmkping, "hostname": h.hostname, "uname": h.uname,
		"reboot": h.reboot,
		"vsish":  h.vsish, "esxcfg-module": h.esxcfgModule, "lspci": h.lspci, "secureBoot.py": h.secureBoot,
	}
}

// secureBoot prints whether UEFI Secure Boot was enabled at boot.
func (h *Host) secureBoot(_ context.Context, p *sh.Proc) int {
	if len(p.Args) != 2 || p.Args[1] != "-s" {
		p.Errorf("usage: secureBoot.py [-h] [-a | -c | -s]\n")
		return 2
	}
	word := "Disabled"
	h.host(func(host *world.Host) {
		if host.SecureBoot {
			word = "Enabled"
		}
	})
	p.Printf("%s\n", word)
	return 0
}

// esxcli runs an esxcli command and prints its answer.
func (h *Host) esxcli(_ context.Context, p *sh.Proc) int {
	words := p.Args[1:]
	formatter := ""
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		if v, ok := strings.CutPrefix(words[0], "--formatter="); ok {
			formatter = v
		}
		words = words[1:]
	}
	c, n := esxcli.Find(words)
	if c == nil {
		return h.unknown(p, words)
	}
	if slices.Contains(words[n:], "--help") {
		p.Printf("Usage: esxcli %s [cmd options]\n\nDescription: \n  %s\n", strings.Join(c.Path, " "), c.Help)
		return 0
	}
	args, err := c.Parse(words[n:])
	if err != nil {
		p.Printf("Error: %v\n\nUsage: esxcli %s [cmd options]\n", err, strings.Join(c.Path, " "))
		return 1
	}
	answer, err := c.Run(h.world, h.name, args)
	if err != nil {
		p.Printf("%v\n", err)
		return 1
	}
	if formatter == "csv" {
		p.Printf("%s", csv(answer))
		return 0
	}
	p.Printf("%s", answer.Print())
	return 0
}

// csv formats an answer as CSV. Every line ends with a comma.
func csv(a esxcli.Answer) string {
	var b strings.Builder
	for i, row := range a.Rows {
		if i == 0 {
			for _, f := range row {
				b.WriteString(strings.ReplaceAll(f.Name, " ", "") + ",")
			}
			b.WriteByte('\n')
		}
		for _, f := range row {
			b.WriteString(f.Value + ",")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (h *Host) unknown(p *sh.Proc, words []string) int {
	path := []string{}
	known := func(prefix []string) bool {
		return slices.ContainsFunc(esxcli.Commands(), func(c esxcli.Command) bool {
			return len(c.Path) >= len(prefix) && slices.Equal(c.Path[:len(prefix)], prefix)
		})
	}
	for _, w := range words {
		if !known(append(slices.Clone(path), w)) {
			p.Printf("Error: Unknown command or namespace %s\n", strings.Join(append(path, w), " "))
			return 1
		}
		path = append(path, w)
	}
	p.Printf("Usage: esxcli %s {cmd} [cmd options]\n", strings.Join(path, " "))
	return 1
}

func (h *Host) host(f func(*world.Host)) {
	h.world.View(func(s *world.State) {
		if host := s.Host(h.name); host != nil {
			f(host)
		}
	})
}

func (h *Host) vmware(_ context.Context, p *sh.Proc) int {
	var version, build string
	h.host(func(host *world.Host) { version, build = host.Version, host.Build })
	update := ""
	if parts := strings.Split(version, "."); len(parts) == 3 && parts[2] != "0" {
		update = "Update " + parts[2]
	}
	switch strings.Join(p.Args[1:], " ") {
	case "-v":
		p.Printf("VMware ESXi %s build-%s\n", version, build)
	case "-l":
		p.Printf("%s\n", strings.TrimSpace("VMware ESXi "+version+" "+update))
	case "-vl", "-lv":
		p.Printf("VMware ESXi %s build-%s\nVMware ESXi %s %s\n", version, build, version, orGA(update))
	default:
		p.Printf("usage: vmware [-v|-l]\n")
		return 1
	}
	return 0
}

func orGA(update string) string {
	if update == "" {
		return "GA"
	}
	return update
}

func (h *Host) hostname(_ context.Context, p *sh.Proc) int {
	p.Printf("%s\n", h.name)
	return 0
}

func (h *Host) uname(_ context.Context, p *sh.Proc) int {
	var version, build string
	h.host(func(host *world.Host) { version, build = host.Version, host.Build })
	switch strings.Join(p.Args[1:], " ") {
	case "-r":
		p.Printf("%s\n", version)
	case "-m":
		p.Printf("x86_64\n")
	case "-a":
		p.Printf("VMkernel %s %s #1 SMP Release build-%s x86_64 x86_64 x86_64 ESXi\n", h.name, version, build)
	default:
		p.Printf("VMkernel\n")
	}
	return 0
}

func (h *Host) reboot(context.Context, *sh.Proc) int {
	w, name := h.world, h.name
	w.After(30*time.Millisecond, func() { _ = w.RebootHost(name) }) // a host that is already shutting down ignores a second request
	return 0
}

// vmkping sends pings from a vmknic. The world determines which packets arrive.
func (h *Host) vmkping(_ context.Context, p *sh.Proc) int {
	o, err := p.Options("I: d s: c: 4 6 i: W: S: v")
	if err != nil || len(o.Args) != 1 {
		p.Printf("vmkping [args] [host]\n")
		return 1
	}
	target, err := netip.ParseAddr(o.Args[0])
	if err != nil {
		p.Printf("Unknown host\n")
		return 1
	}
	number := func(name string, def int) int {
		if n, err := strconv.Atoi(o.Value(name)); err == nil && n > 0 {
			return n
		}
		return def
	}
	size, count := number("s", 56), number("c", 3)
	vmk := o.Value("I")
	known := vmk == ""
	reached, tooBig := false, false
	h.world.View(func(s *world.State) {
		host := s.Host(h.name)
		if host == nil {
			return
		}
		known = known || host.VMK(vmk) != nil
		if known {
			reached, tooBig = s.Ping(host, vmk, target.String(), size+28, o.Has("d"))
		}
	})
	if !known {
		p.Printf("Unknown interface '%s': Invalid argument\n", vmk)
		return 1
	}
	p.Printf("PING %s (%s): %d data bytes\n", target, target, size)
	got := 0
	for i := range count {
		switch {
		case tooBig:
			p.Printf("sendto() failed (Message too long)\n")
		case reached:
			got++
			p.Printf("%d bytes from %s: icmp_seq=%d ttl=64 time=0.%d ms\n", size+8, target, i, 180+7*i)
		}
	}
	p.Printf("\n--- %s ping statistics ---\n%d packets transmitted, %d packets received, %d%% packet loss\n", target, count, got, 100*(count-got)/count)
	if got == 0 {
		return 1
	}
	p.Printf("round-trip min/avg/max = 0.180/0.187/0.194 ms\n")
	return 0
}
