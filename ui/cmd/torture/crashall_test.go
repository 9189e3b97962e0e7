//go:build torture

package torture

import (
	"fmt"
	"regexp"
	"testing"
)

func init() { sample.modes, sample.every = modes, 1 }

var killedAt = regexp.MustCompile(`killed at (\S+ ?\S*)`)

// TestTortureEveryRecord kills a run before, in the middle of and after every record that it writes, and then a rollback in the
// same way; with -short on one host. The resume must reach the state of the undisturbed run, and the rollback must restore the
// start.
func TestTortureEveryRecord(t *testing.T) {
	for _, m := range modes {
		if testing.Short() {
			m = m.small()
		}
		t.Run(m.name, func(t *testing.T) {
			c := serve(t, m).undisturbed()
			rows := newTable(t, "crash-"+m.name, "phase\trecord\tkilled\tat\tverdict")
			t.Run("all", func(t *testing.T) {
				for n := 1; n <= len(c.apply)+len(c.back); n++ {
					for _, how := range []string{"before", "torn", "after"} {
						phase, at := "apply", n
						if n > len(c.apply) {
							phase, at = "rollback", n-len(c.apply)
						}
						t.Run(fmt.Sprintf("%s-%03d-%s", phase, at, how), func(t *testing.T) {
							t.Parallel()
							harm := fmt.Sprintf("%s:any:%d", how, at)
							verdict, node := "resumed, taken back", "-"
							defer func() {
								if t.Failed() {
									verdict = "WRONG"
								}
								rows.row(phase, fmt.Sprintf("%03d", at), how, node, verdict)
							}()
							s := serve(t, m)
							var got said
							if phase == "apply" {
								got = s.child(harm, s.apply()...)
							} else {
								if got := s.here(0, s.apply()...); got.code != 0 {
									t.Fatalf("apply: exit %d\n%s", got.code, got)
								}
								id, _ := s.run()
								got = s.child(harm, "rollback", id, "--yes", "-o", "json")
							}
							if found := killedAt.FindStringSubmatch(got.errs); found != nil {
								node = found[1]
							}
							if got.code == 0 {
								verdict = "it wrote fewer records this time" // steps that run in parallel were merged differently
							} else {
								s.killed(harm, got)
							}
							if phase == "apply" {
								if got := s.finish(); got.code != 0 {
									t.Errorf("resume: exit %d\n%s", got.code, got)
								}
								s.same("after the resume", c.end)
							}
							if got := s.back(); got.code != 0 {
								t.Errorf("rollback: exit %d\n%s", got.code, got)
							}
							s.started("after the rollback", c)
						})
					}
				}
			})
		})
	}
}
