package sh_test

import (
	"os/exec"
	"strings"
	"testing"
)

// break and continue end every list of commands around them. The shells of this machine, if there are any, print the same.
func TestBreakAndContinueInNestedCommands(t *testing.T) {
	for line, want := range map[string]string{
		"for f in 1 2; do { echo $f; continue; echo no; }; echo no; done; echo end":                                                         "1\n2\nend\n",
		"for f in 1 2; do if true; then echo $f; continue; echo no; fi; echo no; done":                                                      "1\n2\n",
		"for f in 1 2; do if false; then :; elif false; then :; else echo $f; break; echo no; fi; echo no; done; echo end":                  "1\nend\n",
		"for f in 1 2; do case $f in 1) false || continue; echo no ;; esac; echo $f; done":                                                  "2\n",
		"for f in 1 2; do false || { [ -e /none ] || continue; echo no; }; echo no; done; echo end":                                         "end\n",
		"for a in 1 2; do for b in 3 4; do { echo $a$b; continue 2; echo no; }; echo no; done; echo no; done; echo end":                     "13\n23\nend\n",
		"for a in 1 2; do { for b in 3 4; do { echo $a$b; break 2; echo no; }; echo no; done; echo no; }; echo no; done; echo end":          "13\nend\n",
		"for a in 1 2; do { for b in 3 4; do { echo $a$b; break; echo no; }; echo no; done; echo yes; continue; echo no; }; done":           "13\nyes\n23\nyes\n",
		"for a in 1 2; do if :; then for b in 3 4; do break 1; done; echo $a; continue 1; echo no; fi; done":                                "1\n2\n",
		"x=; while [ ${#x} -lt 3 ]; do x=1$x; { if [ $x = 11 ]; then { continue; echo no; }; fi; echo $x; }; done":                          "1\n111\n",
		"for a in 1 2; do { { { [ $a = 2 ] || continue; echo $a; }; echo $a; }; echo $a; }; echo $a; done":                                  "2\n2\n2\n2\n",
		"for a in 1 2; do { ( echo $a; exit 3; echo no ) || continue; echo no; }; done; echo $?":                                            "1\n2\n0\n",
		"f() { for a in 1 2; do { echo $a; return 4; echo no; }; done; }; for b in 1 2; do { f || { continue; echo no; }; echo no; }; done": "1\n1\n",
		"until false; do { echo 1; break 9; echo no; }; done; echo $?":                                                                      "1\n0\n",
		`x=$(for f in 1 2; do { echo $f; continue; echo no; }; echo no; done); echo "$x" $(for f in 3; do { break; echo no; }; done)`:       "1\n2\n",
		"_=keep; echo 1 2 | while read a b; do { [ $a = 2 ] || break; echo no; }; echo no; done; echo end":                                  "end\n",
		"for a in 1 2; do [ $a = 1 ] && continue || echo $a; done":                                                                          "2\n",
	} {
		for _, way := range [][]string{{"-c", line}, {"-c", "eval '" + line + "'"}, {"-c", `eval "$(printf %b "$1")"`, "sh", line}, {}} {
			p, out, stderr := proc(system(t), line+"\n", append([]string{"sh"}, way...)...)
			if status, err := p.Sys.Exec(t.Context(), p); err != nil || status != 0 || out.String() != want || stderr.Len() > 0 {
				t.Errorf("%q: %s\ngot %q, %q, %d, %v", way, line, out, stderr, status, err)
			}
		}
		for _, shell := range []string{"dash", "bash"} {
			if path, err := exec.LookPath(shell); err == nil {
				if real, err := exec.CommandContext(t.Context(), path, "-c", line).Output(); err != nil || string(real) != want {
					t.Errorf("%s\n%s prints %q, %v", line, shell, real, err)
				}
			}
		}
	}
}

// What the interpreter would do wrong is refused.
func TestJumpsThatAreRefused(t *testing.T) {
	for _, line := range []string{
		"for a in 1; do while [ $a = 2 ] || break; do :; done; done", "for a in 1; do if [ $a = 2 ] || continue; then echo no; fi; done",
		"for a in 1; do { false || continue; } && echo no; done", "for a in 1; do if ! { continue; }; then :; fi; done",
		"for a in 1; do echo 1 | { read x; continue; }; done", "for a in 1; do ( break; echo no ); done", "n=1; for a in 1; do continue $n; done",
		"for a in 1; do command break; done", "for a in 1; do eval 'continue'; done", "eval 'for a in 1; do break && :; done'",
		"x=$(for a in 1; do break && :; done)",
	} {
		for _, way := range [][]string{{"-c", line}, {}} {
			p, out, stderr := proc(system(t), line+"\n", append([]string{"sh"}, way...)...)
			if status, err := p.Sys.Exec(t.Context(), p); err != nil || status != 2 || out.Len() > 0 ||
				!strings.Contains(stderr.String(), "break or continue is not to be had here") {
				t.Errorf("%q: %s\ngot %q, %q, %d, %v", way, line, out, stderr, status, err)
			}
		}
	}
}
