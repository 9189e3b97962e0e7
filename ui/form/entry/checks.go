package entry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// NotEmpty wants something; what is its name with an article.
func NotEmpty(what string) func(string) error {
	return func(s string) error {
		if strings.TrimSpace(s) == "" {
			return errors.New("give " + what)
		}
		return nil
	}
}

// OneOf wants one of the words.
func OneOf(words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, strings.TrimSpace(s)) {
			return errors.New("write " + strings.Join(words, " or "))
		}
		return nil
	}
}

// VMKNic checks that every chosen host has the vmknic.
func VMKNic(inv *backends.Inventory, a *answers.Answers) func(string) error {
	return func(s string) error {
		var without []string
		member := Members(a)
		for _, h := range inv.Hosts {
			if named := a.PVRDMA.VMKNic.Names[h.Name]; member[h.Name] && h.VMK(cmp.Or(named, s)) == nil {
				without = append(without, h.Name)
			}
		}
		switch {
		case s == "":
			return errors.New("enter a vmknic, for example vmk0")
		case len(without) > 0:
			return fmt.Errorf("no vmknic %q on %s", backends.Clean(s), plain.Names(without))
		}
		return nil
	}
}
