package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// shown are the variables that affect the program, in addition to those of the settings.
var shown = []string{"TERM", "COLORTERM", "NO_COLOR", "ACCESSIBLE", "LANG", "LC_ALL", "GOGC", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "SOURCE_DATE_EPOCH"}

// Environment lists the variables that the program reads, one per line: set ones with their values, secrets and user names only
// by name.
func Environment(e *Env) string {
	names := slices.Clone(shown)
	for _, of := range env {
		names = append(names, of...)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range slices.Compact(names) {
		value := e.Getenv(name)
		switch {
		case value == "":
			continue
		case strings.Contains(name, "PASSWORD"), strings.Contains(name, "USER"):
			value = "(set)"
		case strings.HasSuffix(name, "URL"):
			if _, err := url.Parse(value); err != nil || strings.Contains(value, "@") {
				value = "(set)" // it may contain a password
			}
		}
		fmt.Fprintf(&b, "%s=%s\n", name, value)
	}
	return b.String()
}
