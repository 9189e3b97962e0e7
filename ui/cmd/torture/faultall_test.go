//go:build torture

package torture

import (
	"slices"
	"strings"
	"testing"
)

// lasting are the harms that are also injected into every call, not only one.
var lasting = []string{"fault:NoPermission", "http:503", "drop", "fail:No such thing"}

// harms returns the harms that apply to a subject.
func (s subject) harms() []string {
	switch {
	case s.command:
		return slices.Concat(commandHarms, insideHarms)
	case strings.HasSuffix(s.name, "_Task"):
		return slices.Concat(callHarms, taskHarms)
	}
	return callHarms
}

// TestTortureEveryFault injects every harm into every SOAP method and every remote command that a run, its check and its rollback
// use.
func TestTortureEveryFault(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			all, c := serve(t, m.small()).subjects()
			rows := newTable(t, "faults-"+m.name, "subject\tphase\tharm\tcalls\tverdict")
			t.Run("all", func(t *testing.T) {
				for _, sub := range all {
					t.Run(strings.ReplaceAll(sub.name, "/", "-"), func(t *testing.T) {
						t.Parallel()
						for _, do := range sub.harms() {
							for _, always := range []bool{false, true} {
								if always && !slices.Contains(lasting, do) {
									continue
								}
								many := "once"
								if always {
									many = "always"
								}
								t.Run(do+" "+many, func(t *testing.T) {
									verdict := "WRONG"
									defer func() { rows.row(sub.name, sub.phase(), do, many, verdict) }()
									s := serve(t, m.small())
									if got := s.try(c, sub, do, always); !t.Failed() {
										verdict = got
									}
								})
							}
						}
					})
				}
			})
		})
	}
}
