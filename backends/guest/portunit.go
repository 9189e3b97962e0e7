package guest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A portUnit describes the systemd units, one per port by its MAC, that run a script of this program after each boot.
type portUnit struct {
	prefix string // prefix of the units' names
	script string // its path
}

// name returns the unit of a port.
func (u portUnit) name(mac string) string {
	return u.prefix + strings.ReplaceAll(mac, ":", "") + ".service"
}

// text returns the contents of the unit of a port; order are the lines that define when it starts.
func (u portUnit) text(what, order string, args ...string) string {
	return ours + fmt.Sprintf(`[Unit]
Description=%s
%s

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh %s %s

[Install]
WantedBy=multi-user.target
`, what, order, u.script, strings.Join(args, " "))
}

// facts returns a script that prints the units and whether their script exists.
func (u portUnit) facts() string {
	return patterned("class-units.sh", u.script+" "+unitDir+u.prefix+"*.service")
}

// left reports whether facts show something of a port: its unit, or the script without any unit.
func (u portUnit) left(facts, mac string) bool {
	lines := strings.Split(facts, "\n")
	return slices.Contains(lines, "unit "+u.name(mac)) || slices.Contains(lines, "script") && !strings.Contains(facts, "unit ")
}

// others reports whether other ports have such units.
func (u portUnit) others(facts, mac string) bool {
	for line := range strings.Lines(facts) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "unit "); is && name != u.name(mac) {
			return true
		}
	}
	return false
}

// put writes the unit of a port and the script.
func (u portUnit) put(ctx context.Context, g *Guests, vm, mac, text, script string) error {
	if err := g.put(ctx, vm, unitDir+u.name(mac), []byte(text), 0o644, ""); err != nil {
		return err
	}
	return g.put(ctx, vm, u.script, []byte(script), 0o755, "")
}

// manifest names what a change touches. The script is left out while units of other ports need it: the last of them removes it.
func (u portUnit) manifest(mac string, others bool) manifest {
	unit := u.name(mac)
	m := manifest{files: []string{unitDir + unit}, links: []string{wantsLink(unit)}, units: []string{unit}}
	if !others {
		m.files = append(m.files, u.script)
	}
	return m
}

// readItems reads the current state of what a record names. The script stays as recorded while others need it.
func (u portUnit) readItems(ctx context.Context, g *Guests, vm string, kept backends.Kept, others bool) ([]backends.Item, error) {
	items, err := g.readItems(ctx, vm, manifestOf(u.without(kept, others)))
	if script := kept.Item(backends.ItemFile, u.script); script != nil && others {
		items = append(items, *script)
	}
	return items, err
}

// without returns a record without the script while others need it.
func (u portUnit) without(kept backends.Kept, others bool) backends.Kept {
	if others {
		kept.Items = slices.DeleteFunc(slices.Clone(kept.Items), func(i backends.Item) bool { return i.Name == u.script })
	}
	return kept
}
