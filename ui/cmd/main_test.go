package cmd

import (
	"slices"
	"testing"
)

// A process starts itself again only if its runtime does not have the setting, and keeps the settings of its user.
func TestSettingsOfTheRuntime(t *testing.T) {
	const ours = "gcstoptheworld=1"
	for _, row := range []struct {
		env, want []string
		is        bool
	}{
		{env: []string{"A=b"}, want: []string{"A=b", "GODEBUG=" + ours}},
		{env: []string{"GODEBUG=", "A=b"}, want: []string{"A=b", "GODEBUG=" + ours}},
		{env: []string{"GODEBUG=x=1", "A=b"}, want: []string{"A=b", "GODEBUG=x=1," + ours}},
		{env: []string{"GODEBUG=x=1," + ours}, is: true},
		{env: []string{"GODEBUG=gcstoptheworld=0", "A=b"}, is: true},
		{env: []string{"GODEBUG=nogcstoptheworld=0"}, want: []string{"GODEBUG=nogcstoptheworld=0," + ours}},
	} {
		with, is := withRuntime(row.env, ours)
		if row.is {
			row.want = row.env
		}
		if is != row.is || !slices.Equal(with, row.want) {
			t.Errorf("%q: %q, %t", row.env, with, is)
		}
		if _, again := withRuntime(with, ours); !again {
			t.Errorf("%q: it would start again and again", row.env)
		}
	}
}
