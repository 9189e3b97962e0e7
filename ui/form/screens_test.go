package form

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// sizes are those of the golden screens.
var sizes = []struct {
	name          string
	width, height int
}{{"80x24", 80, 24}, {"120x40", 120, 40}, {"200x60", 200, 60}}

// golden compares the screen with its golden file, and with the size.
func (k *keyboard) golden(name string, size string, width, height int) {
	k.t.Helper()
	s := k.screen()
	golden(k.t, filepath.Join("testdata", size, name+".txt"), s)
	lines := strings.Split(s, "\n")
	if len(lines) > height {
		k.t.Errorf("%s: %d lines on %d", name, len(lines), height)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > width {
			k.t.Errorf("%s: %d cells on %d: %q", name, w, width, l)
		}
	}
}

// States of a page, and dialogs over it, that pressing only Enter does not reach.
func TestGoldenScreensOfOtherStates(t *testing.T) {
	testclass.Plain(t)
	refused := &plan.Refused{Refusals: []plan.Refusal{{Target: backends.HostRef("esx-02"), Why: "vmnic2 has no link", Remedy: "Check the cable."}}}
	mode := func(k *keyboard, downs int) *keyboard {
		reach(k, "Mode")
		for range downs {
			k.press("down")
		}
		return k.press("enter", "enter")
	}
	for _, size := range sizes {
		for name, page := range map[string]struct {
			f  world
			to func(k *keyboard)
		}{
			"20-help":           {world{}, func(k *keyboard) { reach(k, "Hosts").press("?") }},
			"20-kept-answers":   {world{draft: answers.Default(answers.SRIOV)}, func(*keyboard) {}},
			"20-certificate":    {world{unknownCert: true}, func(k *keyboard) { k.press("enter") }},
			"20-wrong-address":  {world{}, func(k *keyboard) { k.press("ctrl+u").write("ftp://vc.example").press("return") }},
			"20-leave":          {world{}, func(k *keyboard) { reach(k, "Hosts").press("q") }},
			"20-nothing-chosen": {world{shared: true}, func(k *keyboard) { reach(k, "Hosts").press("enter") }},
			"20-hosts-filter":   {world{}, func(k *keyboard) { reach(k, "Hosts").press("/").write("esx-02") }},
			"20-file-exists":    {world{other: true}, func(k *keyboard) { reach(k, "Hosts").press("s") }},
			"20-saved":          {world{}, func(k *keyboard) { reach(k, "Hosts").press("s") }},
			"20-switch-list":    {world{inv: twoSwitches()}, func(k *keyboard) { reach(k, "Switch and vmknic").press("f4") }},
			"20-switch-refused": {world{}, func(k *keyboard) { reach(k, "Switch and vmknic").press("tab", "tab").write("9").press("return") }},
			"20-switch-sriov":   {world{}, func(k *keyboard) { mode(k, 1) }},
			"20-switch-sriov-last": {world{}, func(k *keyboard) {
				mode(k, 1).press("return", "return", "return", "return", "return", "return", "return", "return")
			}},
			"20-gpus":              {world{}, func(k *keyboard) { mode(k, 2) }},
			"20-vms-address":       {world{}, func(k *keyboard) { reach(k, "VMs and guests").press("e") }},
			"20-vms-addresses":     {world{}, func(k *keyboard) { reach(k, "VMs and guests").press("E") }},
			"20-vms-logins":        {world{}, func(k *keyboard) { reach(k, "VMs and guests").press("L") }},
			"20-preflight-refused": {world{refuse: refused}, func(k *keyboard) { reach(k, "Preflight") }},
			"20-plan-nothing":      {world{shared: true, nothing: true}, func(k *keyboard) { reach(k, "Plan") }},
			"20-plan-too-early":    {world{shared: true, long: 100}, func(k *keyboard) { reach(k, "Plan").press("y") }},
		} {
			bubble(t, name+", "+size.name, func(t *testing.T) {
				f := page.f
				k := sit(t, &f, size.width, size.height)
				page.to(k)
				k.screen()
				k.golden(name, size.name, size.width, size.height)
			})
		}
	}
}

// The run page: in progress, with the details of a target, with the retry prompt, and stopping.
func TestGoldenScreensOfARun(t *testing.T) {
	testclass.Plain(t)
	for _, size := range sizes {
		bubble(t, size.name, func(t *testing.T) {
			b := &busy{hosts: 60, began: make(chan struct{}), finish: make(chan struct{})}
			k := sit(t, b, size.width, size.height)
			reach(k, "Plan").press("enter").on("Run")
			<-time.After(time.Second)
			for len(k.queue) > 0 {
				k.send(<-k.queue)
			}
			k.golden("21-run", size.name, size.width, size.height)
			k.press("down", "down", "d")
			k.golden("21-run-details", size.name, size.width, size.height)
			k.press("d", "R")
			k.golden("21-run-retry", size.name, size.width, size.height)
			k.press("n", "/").write("esx-01")
			k.golden("21-run-filter", size.name, size.width, size.height)
			k.press("enter", "ctrl+c")
			k.golden("21-run-stopping", size.name, size.width, size.height)
			close(b.finish)
		})
	}
}

// Each key that the help names does something on one of the pages, and the help fits the smallest screen.
func TestEveryKeyOfTheHelpDoesSomething(t *testing.T) {
	testclass.Plain(t)
	var keys []string
	bubble(t, "help", func(t *testing.T) {
		k := reach(sit(t, &world{}, 80, 24), "Hosts").press("?")
		k.shows("Any key closes this help.")
		for _, line := range strings.Split(k.screen(), "\n")[2:] {
			for _, hint := range regexp.MustCompile(`  +`).Split(strings.TrimSpace(line), -1) {
				for _, word := range strings.Fields(hint) {
					if !regexp.MustCompile(`^(Enter|Esc|Space|Tab|Shift\+Tab|Up|Down|Left|Right|PgUp|PgDn|Home|End|F[0-9]|Ctrl-[A-Z]|[a-zA-Z/?])$`).MatchString(word) {
						break
					}
					keys = append(keys, word)
				}
			}
		}
	})
	for _, want := range []string{"Enter", "Esc", "p", "x", "R", "d", "n", "N", "h", "F2", "F4", "Ctrl-S", "Ctrl-C"} {
		if !slices.Contains(keys, want) {
			t.Errorf("the help does not name %s: %v", want, keys)
		}
	}
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		bubble(t, key, func(t *testing.T) {
			for _, page := range append(footers[:len(footers):len(footers)], helped...) {
				f := page.world
				k := sit(t, &f, 80, 24)
				page.to(k)
				k.screen()
				before, reads := k.w.View().Content, f.surveys+f.looks
				k.stroke(key)
				if k.quit || k.leaves || k.w.View().Content != before || f.surveys+f.looks > reads {
					return
				}
			}
			// Only the run page has the remaining keys.
			b := &busy{hosts: 60, began: make(chan struct{}), finish: make(chan struct{})}
			k := sit(t, b, 80, 24)
			reach(k, "Plan").press("enter").on("Run")
			<-time.After(time.Second)
			for len(k.queue) > 0 {
				k.send(<-k.queue)
			}
			before := k.press("down").screen()
			if k.stroke(key); k.screen() == before {
				t.Errorf("%s does nothing on any page", key)
			}
			close(b.finish)
		})
	}
}

// helped are pages on which keys of the help have an effect that no footer needs to name.
var helped = []struct {
	name  string
	world world
	to    func(k *keyboard)
}{
	{"VMs, in the middle", world{}, func(k *keyboard) { reach(k, "VMs and guests").press("down") }},
	{"switch, second field", world{}, func(k *keyboard) { reach(k, "Switch and vmknic").press("tab") }},
	{"a plan in its middle", world{shared: true, long: 100}, func(k *keyboard) { reach(k, "Plan").press("pgdn", "pgdn").screen() }},
	{"a report that was searched", world{}, func(k *keyboard) {
		reach(k, "Plan").press("enter").on("Report").press("/").write("esx").press("return")
	}},
}
