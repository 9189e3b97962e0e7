package esxi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A configCall is the command line of mlxconfig.
type configCall struct {
	device     string
	yes, every bool
	command    string
	args       []string
}

var errUsage = errors.New("usage")

func parseConfig(args []string) (configCall, error) {
	var c configCall
	for i := 1; i < len(args); i++ {
		switch a := args[i]; {
		case c.command != "" && !strings.HasPrefix(a, "-"):
			c.args = append(c.args, a)
		case a == "-d" || a == "--dev":
			if i++; i == len(args) {
				return c, errUsage
			}
			c.device = args[i]
		case a == "-y" || a == "--yes":
			c.yes = true
		case a == "-e" || a == "--enable_verbosity":
			c.every = true
		case a == "--no-progress":
		case a == "q" || a == "query" || a == "s" || a == "set" || a == "r" || a == "reset":
			c.command = a[:1]
		default:
			return c, fmt.Errorf("-E- invalid argument: %s", a)
		}
	}
	if c.command == "" {
		return c, errUsage
	}
	return c, nil
}

// mlxconfig shows and sets the firmware configuration for the next boot.
func (h *Host) mlxconfig(_ context.Context, p *sh.Proc) int {
	c, err := parseConfig(p.Args)
	if err != nil {
		p.Printf("%s\n",
			strings.Replace(err.Error(), "usage", "-E- Usage: mlxconfig [-d <device>] [-y] [-e] {query|set|reset} [PARAM[=VALUE] ...]", 1))
		return 1
	}
	var found []device
	h.host(func(host *world.Host) {
		if d := open(host, c.device); d != nil {
			found = []device{*d}
		} else if c.device == "" && host.MST {
			found = devices(host)
		}
	})
	switch {
	case len(found) == 0 && c.device == "":
		p.Printf("-E- No devices found, mst might be stopped. You may need to run 'mst start' to load MST modules.\n")
		return 1
	case len(found) == 0:
		p.Printf("-E- Failed to open device: %s. No such file or directory\n", c.device)
		return 1
	case c.command != "q" && c.device == "":
		p.Printf("-E- Device is required for this command\n")
		return 1
	}
	for n, d := range found {
		if status := h.configure(p, c, n+1, d); status != 0 {
			return status
		}
	}
	return 0
}

func (h *Host) configure(p *sh.Proc, c configCall, n int, d device) int {
	name := d.name
	if c.device != "" {
		name = c.device
	}
	head := fmt.Sprintf(
		"\nDevice #%d:\n----------\n\nDevice type:    %-16s\nName:           %-16s\nDescription:    %s\nDevice:         %-16s\n\n",
		n, d.card.Type, d.card.Part, d.card.Description, name)
	if c.command == "q" {
		var text string
		var err error
		h.host(func(*world.Host) { text, err = query(d.card, c) })
		if err != nil {
			p.Printf("%v\n", err)
			return 1
		}
		p.Printf("%s%s", head, text)
		return 0
	}
	changes, text, err := h.changes(d.card, c)
	if err != nil {
		p.Printf("%v\n", err)
		return 1
	}
	p.Printf("%s%s\n Apply new Configuration? (y/n) [n] : ", head, text)
	if c.yes {
		p.Printf("y\n")
	} else {
		answer, _ := bufio.NewReader(p.Stdin).ReadString('\n')
		if a := strings.TrimSpace(answer); a != "y" && a != "yes" {
			p.Printf("\n-I- Aborted by user.\n")
			return 1
		}
	}
	err = h.world.Update(func(*world.State) ([]world.Event, error) {
		var words []string
		for s, value := range changes {
			s.Next = value
			words = append(words, fmt.Sprintf("%s=%d", s.Name, value))
		}
		return []world.Event{{What: world.HostHardware, Host: h.name, Detail: "mlxconfig " + d.card.PCI + " " + strings.Join(words, " ")}}, nil
	})
	if err != nil {
		p.Printf("-E- Failed to apply the configuration\n")
		return 1
	}
	p.Printf("Applying... Done!\n-I- Please reboot machine to load new configurations.\n")
	return 0
}

const column = 16

// query prints all parameters, or the given ones, with their values for the next boot; with -e also the current values.
func query(card *firmware.Card, c configCall) (string, error) {
	list := card.Settings
	if len(c.args) > 0 {
		list = nil
		for _, name := range c.args {
			s := card.Setting(name)
			if s == nil {
				return "", unsupported(name)
			}
			list = append(list, s)
		}
	}
	var b strings.Builder
	if !c.every {
		fmt.Fprintf(&b, "%-45s%s\n", "Configurations:", "Next Boot")
		for _, s := range list {
			fmt.Fprintf(&b, "         %-36s%-*s\n", s.Name, column, s.Text(s.Next))
		}
		return b.String(), nil
	}
	fmt.Fprintf(&b, "%-45s%-*s%-*s%s\n", "Configurations:", column, "Default", column, "Current", "Next Boot")
	marked := false
	for _, s := range list {
		mark := " "
		if s.Next != s.Default || s.Next != s.Current {
			mark, marked = "*", true
		}
		fmt.Fprintf(&b, "%s        %-36s%-*s%-*s%-*s\n", mark, s.Name, column, s.Text(s.Default), column, s.Text(s.Current), column,
			s.Text(s.Next))
	}
	if marked {
		b.WriteString("The '*' shows parameters with next value different from default/current value.\n")
	}
	return b.String(), nil
}

func unsupported(name string) error {
	return fmt.Errorf("-E- The Device doesn't support %s parameter", name)
}

// changes returns the values that set or reset changes, and the table that is shown before they are applied.
func (h *Host) changes(card *firmware.Card, c configCall) (map[*firmware.Setting]int, string, error) {
	changes := map[*firmware.Setting]int{}
	text := fmt.Sprintf("%-45s%-*s%s\n", "Configurations:", column, "Next Boot", "New")
	var err error
	h.host(func(*world.Host) {
		if c.command == "r" {
			for _, s := range card.Settings {
				changes[s] = s.Default
			}
			return
		}
		for _, word := range c.args {
			name, value, ok := strings.Cut(word, "=")
			s := card.Setting(name)
			switch {
			case !ok:
				err = fmt.Errorf("-E- Invalid configuration argument: %s", word)
				return
			case s == nil:
				err = unsupported(name)
				return
			}
			n, bad := s.Parse(value)
			if bad != nil {
				err = fmt.Errorf("-E- Failed to set parameter %s: value %s is out of range", name, value)
				return
			}
			changes[s] = n
			text += fmt.Sprintf("         %-36s%-*s%-*s\n", name, column, s.Text(s.Next), column, s.Text(n))
		}
		if len(c.args) == 0 {
			err = errors.New("-E- No parameters were given to set")
		}
	})
	return changes, text, err
}
