package form

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// footers lists all pages with the keys that lead to each; a page with several footers is listed once for each.
var footers = []struct {
	name  string
	world world
	to    func(k *keyboard)
}{
	{"vCenter", world{}, func(*keyboard) {}},
	{"vCenter, kept answers", world{draft: answers.Default(answers.SRIOV)}, func(*keyboard) {}},
	{"vCenter, certificate", world{unknownCert: true}, func(k *keyboard) { k.press("enter") }},
	{"password", world{}, func(k *keyboard) { k.press("enter").write("right") }},
	{"read-only report", world{}, func(k *keyboard) { k.press("enter").write("right").f2() }},
	{"hosts", world{}, func(k *keyboard) { reach(k, "Hosts") }},
	{"hosts, a file in the way", world{other: true}, func(k *keyboard) { reach(k, "Hosts").press("s") }},
	{"mode", world{}, func(k *keyboard) { reach(k, "Mode") }},
	{"pNICs", world{}, func(k *keyboard) { reach(k, "pNICs") }},
	{"switch, first field", world{}, func(k *keyboard) { reach(k, "Switch and vmknic") }},
	{"switch, last field", world{}, func(k *keyboard) { reach(k, "Switch and vmknic").press("tab", "tab", "tab", "tab") }},
	{"switch, list", world{}, func(k *keyboard) { reach(k, "Switch and vmknic").press("tab", "tab", "tab", "tab", "f4") }},
	{"VMs", world{}, func(k *keyboard) { reach(k, "VMs and guests") }},
	{"VMs, address", world{}, func(k *keyboard) { reach(k, "VMs and guests").press("e") }},
	{"preflight", world{}, func(k *keyboard) { reach(k, "Preflight") }},
	{"preflight, refused",
		world{refuse: &plan.Refused{Refusals: []plan.Refusal{{Target: backends.HostRef("esx-02"), Why: "vmnic2 has no link"}}}},
		func(k *keyboard) { reach(k, "Preflight") }},
	{"plan", world{}, func(k *keyboard) { reach(k, "Plan") }},
	{"plan of a site", world{shared: true, long: 100}, func(k *keyboard) { reach(k, "Plan").press("end").screen() }},
	{"rehearsal", world{shared: true, long: 3}, func(k *keyboard) { reach(k, "Plan").press("r") }},
	{"report", world{}, func(k *keyboard) { reach(k, "Plan").press("enter").on("Report") }},
}

// reach goes to a page.
func reach(k *keyboard, title string) *keyboard {
	k.press("enter").write("right").press("enter").on("Hosts")
	for range 8 {
		if k.w.Page().Title() == title {
			break
		}
		if strings.Contains(k.screen(), " 0 chosen") {
			k.press("a")
		}
		k.press("enter")
	}
	return k.on(title)
}

var aKey = regexp.MustCompile(`^(Enter|Esc|Space|Tab|Up|Down|Left|Right|PgUp|PgDn|F[0-9]|Ctrl-[A-Z]|yes|[a-zA-Z/?])$`)

// named returns the keys that the displayed footer names.
func (k *keyboard) named() []string {
	screen := strings.Split(k.screen(), "\n")
	rule := 0
	for i, line := range screen {
		if strings.HasPrefix(line, "──") {
			rule = i
		}
	}
	var keys []string
	for _, line := range screen[rule+1:] {
		for _, hint := range regexp.MustCompile(`  +`).Split(strings.TrimSpace(line), -1) {
			for i, word := range strings.Fields(hint) {
				if !aKey.MatchString(word) || i > 0 && !aKey.MatchString(strings.Fields(hint)[i-1]) {
					break
				}
				if word != "a" || i == 0 {
					keys = append(keys, word)
				}
			}
		}
	}
	return keys
}

// stroke presses a key by its name in the footer.
func (k *keyboard) stroke(name string) {
	switch {
	case name == "yes":
		k.write(name)
	case name == "Enter":
		k.press("return")
	case len(name) == 1:
		k.press(name)
	default:
		k.press(strings.ToLower(strings.Replace(name, "Ctrl-", "ctrl+", 1)))
	}
}

// Every key that a footer names has a visible effect, and is in the help. Keys that scroll have no effect if everything is visible,
// and keys that move have none if the cursor is at that end.
func TestEveryKeyOfTheFootersDoesSomething(t *testing.T) {
	testclass.Plain(t)
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		for _, page := range footers {
			bubble(t, fmt.Sprintf("%s, %dx%d", page.name, size[0], size[1]), func(t *testing.T) {
				var f world
				begin := func() *keyboard {
					f = page.world
					k := sit(t, &f, size[0], size[1])
					page.to(k)
					k.screen()
					return k
				}
				k := begin()
				help := begin()
				help.press("f1")
				for _, h := range k.w.Page().Hints() {
					if !strings.Contains(k.screen(), h.Key+" "+h.Does) && page.name != "hosts, a file in the way" &&
						!strings.Contains(page.name, ", list") && !strings.Contains(page.name, ", address") {
						t.Errorf("the footer lacks %s %s:\n%s", h.Key, h.Does, k.screen())
					}
				}
				keys := k.named()
				if len(keys) < 2 {
					t.Fatalf("the footer names %v:\n%s", keys, k.screen())
				}
				for i, key := range keys {
					k := begin()
					before, colours, reads := k.screen(), k.w.View().Content, f.surveys+f.looks
					k.stroke(key)
					if k.quit || k.leaves || k.w.View().Content != colours || f.surveys+f.looks > reads {
						continue
					}
					other := map[string]string{"Up": "Down", "Down": "Up", "PgUp": "PgDn", "PgDn": "PgUp", "Left": "Right", "Right": "Left"}[key]
					if other != "" && slices.Contains(keys, other) { // the cursor may be at one end
						k.stroke(other)
						if moved := k.screen(); moved != before {
							k.stroke(key)
							if k.screen() != moved {
								continue
							}
						}
					}
					if scrolls := regexp.MustCompile(key + `( \w+)? scroll`); scrolls.MatchString(before) && !strings.Contains(before, "lines 1-") {
						continue
					}
					t.Errorf("%s (%d of %v) does nothing:\n%s", key, i+1, keys, before)
				}
				for _, key := range keys {
					if key != "y" && key != "n" && key != "yes" && !regexp.MustCompile(`(^|[\s])`+regexp.QuoteMeta(key)+`\s`).MatchString(help.screen()) {
						t.Errorf("the help lacks %s:\n%s", key, help.screen())
					}
				}
			})
		}
	}
}

// The keys of the run page during a run.
func TestEveryKeyOfTheRunPageDoesSomething(t *testing.T) {
	testclass.Plain(t)
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		bubble(t, fmt.Sprint(size), func(t *testing.T) {
			b := &busy{hosts: 60, began: make(chan struct{}), finish: make(chan struct{})}
			k := sit(t, b, size[0], size[1])
			reach(k, "Plan").press("enter").on("Run")
			<-time.After(time.Second)
			for len(k.queue) > 0 {
				k.send(<-k.queue)
			}
			k.press("down", "down")
			keys := k.named()
			for _, key := range []string{"p", "Up", "Down", "d", "x", "R", "f", "/", "Ctrl-C"} {
				if !slices.Contains(keys, key) {
					t.Errorf("the footer lacks %s: %v\n%s", key, keys, k.screen())
				}
			}
			slices.SortStableFunc(keys, func(a, b string) int { return strings.Compare(fmt.Sprint(a == "Ctrl-C"), fmt.Sprint(b == "Ctrl-C")) })
			for _, key := range keys {
				before := k.screen()
				k.stroke(key)
				if k.screen() == before {
					t.Errorf("%s of %v does nothing:\n%s", key, keys, before)
				}
				if key == "x" || key == "R" || key == "/" {
					if named := k.named(); slices.Contains(named, "F1") {
						t.Errorf("after %s the footer names F1, which does nothing there: %v", key, named)
					}
					k.press("esc")
				}
				if key == "?" {
					k.press("esc")
				}
			}
			close(b.finish)
		})
	}
}
