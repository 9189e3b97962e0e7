package witness

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// stateScript is the script that root runs in a guest. Its output is lines of KIND, tab, NAME, tab, VALUE.
//
//go:embed state.sh
var stateScript string

// guest reads a guest through the ssh client of this machine.
func guest(ctx context.Context, s Site, g Guest) (Dump, error) {
	c := exec.CommandContext(ctx, "ssh", "-F", "/dev/null", "-i", s.Key, "-p", strconv.Itoa(g.Port), "-l", g.User,
		"-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
		"-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=10", g.Address, "sudo -S -p '' sh -c '"+strings.ReplaceAll(stateScript, "'", `'\''`)+"'")
	c.Stdin = strings.NewReader(s.SudoPassword + "\n") // a sudo that needs no password leaves it unread
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("ssh: %w\n%s", err, errs.Bytes())
	}
	d := Dump{}
	ended := false
	for line := range strings.Lines(out.String()) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		switch {
		case f[0] == "end":
			ended = true
		case len(f) == 3:
			key := "guest " + g.VM + " " + f[0] + " " + f[1]
			if old, twice := d[key]; twice {
				f[2] = old + "; " + f[2]
			}
			d[key] = f[2]
		}
	}
	if !ended {
		return nil, fmt.Errorf("ssh: the script did not come to its end\n%s", errs.Bytes())
	}
	return d, nil
}
