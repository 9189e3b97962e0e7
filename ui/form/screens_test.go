package form

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// golden compares the screen with its golden file, and holds it against a smaller and a larger terminal: nothing is cut, and the footer
// names the same keys.
func (k *keyboard) golden(name string) {
	k.t.Helper()
	screen, keys := k.screen(), slices.Sorted(slices.Values(k.named()))
	golden(k.t, filepath.Join("testdata", "120x40", name+".txt"), screen)
	for _, size := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 200, Height: 60}, {Width: 120, Height: 40}} {
		k.send(size)
		k.within(size.Width, size.Height)
		if got := slices.Sorted(slices.Values(k.named())); !slices.Equal(got, keys) {
			k.t.Errorf("%s: the footer of %dx%d names %q, that of 120x40 %q", name, size.Width, size.Height, got, keys)
		}
	}
	if back := k.screen(); back != screen {
		k.t.Errorf("%s is another screen after the size came back:\n%s", name, back)
	}
}

// States of a page, and dialogs over it, that pressing only Enter does not reach.
func TestGoldenScreensOfOtherStates(t *testing.T) {
	testclass.Plain(t)
	refused := &plan.Refused{Refusals: []plan.Refusal{{Target: backends.HostRef("esx-02"), Why: "vmnic2 has no link",
		Remedy: "Check the cable."}}}
	mode := func(k *keyboard, downs int) *keyboard {
		reach(k, "Mode")
		for range downs {
			k.press("down")
		}
		return k.press("enter", "enter")
	}
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
		bubble(t, name, func(t *testing.T) {
			f := page.f
			k := sit(t, &f, 120, 40)
			page.to(k)
			k.screen()
			k.golden(name)
		})
	}
}

// The run page: in progress, with the details of a target, with the retry prompt, and stopping.
func TestGoldenScreensOfARun(t *testing.T) {
	testclass.Plain(t)
	still(t, func(t *testing.T) {
		b := &busy{hosts: 60, began: make(chan struct{}), finish: make(chan struct{})}
		k := sit(t, b, 120, 40)
		reach(k, "Plan").press("enter").on("Run")
		<-time.After(time.Second)
		for len(k.queue) > 0 {
			k.send(<-k.queue)
		}
		k.golden("21-run")
		k.press("down", "down", "d")
		k.golden("21-run-details")
		k.press("d", "R")
		k.golden("21-run-retry")
		k.press("n", "/").write("esx-01")
		k.golden("21-run-filter")
		k.press("enter", "ctrl+c")
		k.golden("21-run-stopping")
		close(b.finish)
	})
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
					if !regexp.MustCompile(`^(Enter|Esc|Space|Tab|Shift\+Tab|Up|Down|Left|Right|PgUp|PgDn|Home|End|F[0-9]|Ctrl-[A-Z]|[a-zA-Z/?])$`).
						MatchString(word) {
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
