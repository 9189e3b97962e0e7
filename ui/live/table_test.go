package live_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
)

// hosts is a table of hosts in clusters of four.
func hosts(n int) *live.Table {
	var rows []live.Row
	for i := range n {
		name, cluster := fmt.Sprintf("esx-%04d", i+1), fmt.Sprintf("cluster-%d", i/4+1)
		r := live.Row{ID: name, Group: cluster, Cells: []string{name, cluster, "8.0.3", "connected"}, Detail: name + " has all that it takes"}
		if i%4 == 3 {
			r.Cells[3], r.Disabled = "disconnected", "the host is disconnected"
		}
		rows = append(rows, r)
	}
	t := live.NewTable(theme.New(false, false, true), []live.Column{{Title: "Host"}, {Title: "Cluster", Rank: 1}, {Title: "ESXi", Rank: 2},
		{Title: "State"}}, rows)
	t.Groups = "cluster"
	return t
}

var keyDown = tea.KeyPressMsg{Code: tea.KeyDown}

func press(t *live.Table, keys ...string) (used bool) {
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "space": tea.KeySpace,
		"end": tea.KeyEnd, "home": tea.KeyHome, "pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace}
	for _, k := range keys {
		m := tea.KeyPressMsg{Code: named[k]}
		if k == "space" {
			m.Text = " "
		}
		if m.Code == 0 {
			m = tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		}
		_, used = t.Update(m)
	}
	return used
}

func chosen(t *live.Table) string {
	var names []string
	for n := range t.Chosen {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestChoosing(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string
		want string
	}{
		"one":                       {[]string{"space"}, "esx-0001"},
		"one and off again":         {[]string{"space", "space"}, ""},
		"all that can be":           {[]string{"a"}, "esx-0001 esx-0002 esx-0003 esx-0005 esx-0006 esx-0007"},
		"none":                      {[]string{"a", "a"}, ""},
		"the cluster":               {[]string{"c"}, "esx-0001 esx-0002 esx-0003"},
		"the other cluster":         {[]string{"end", "c"}, "esx-0005 esx-0006 esx-0007"},
		"the rest of the cluster":   {[]string{"space", "c"}, "esx-0001 esx-0002 esx-0003"},
		"the cluster off again":     {[]string{"a", "c"}, "esx-0005 esx-0006 esx-0007"},
		"not one that cannot":       {[]string{"down", "down", "down", "space"}, ""},
		"all that the filter shows": {[]string{"/", "0", "0", "6", "enter", "a"}, "esx-0006"},
		"typing chooses nothing":    {[]string{"/", "a", "c", "space"}, ""},
		"the filter taken away": {[]string{"/", "0", "0", "6", "enter", "esc", "a"},
			"esx-0001 esx-0002 esx-0003 esx-0005 esx-0006 esx-0007"},
		"cursor on the row it found":    {[]string{"/", "0", "0", "6", "enter", "esc", "space"}, "esx-0006"},
		"several words":                 {[]string{"/", "r", "-", "2", "space", "e", "x", "-", "0", "0", "0", "5", "enter", "a"}, ""},
		"several words in any column":   {[]string{"/", "r", "-", "2", "space", "0", "0", "5", "enter", "a"}, "esx-0005"},
		"moving while the filter types": {[]string{"/", "e", "down", "enter", "space"}, "esx-0002"},
	} {
		t.Run(name, func(t *testing.T) {
			table := hosts(8)
			press(table, tt.keys...)
			if got := chosen(table); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestEscIsPassedOnWithoutAFilter(t *testing.T) {
	table := hosts(4)
	if press(table, "esc") {
		t.Error("the table keeps Esc")
	}
	if !press(table, "/", "e", "enter", "esc") {
		t.Error("Esc did not take the filter away")
	}
}

func TestWhyARowCannotBeChosen(t *testing.T) {
	table := hosts(4)
	press(table, "end", "space")
	if v := table.View(80, 12); !strings.Contains(v, "esx-0004 cannot be chosen: the host is disconnected") {
		t.Errorf("the reason is missing:\n%s", v)
	}
	press(table, "up")
	if v := table.View(80, 12); strings.Contains(v, "cannot be chosen") || !strings.Contains(v, "esx-0003 has all that it takes") {
		t.Errorf("the reason stays, or the detail is missing:\n%s", v)
	}
}

func TestRadio(t *testing.T) {
	table := hosts(8)
	table.Radio = true
	press(table, "space", "down", "space", "end", "up", "space", "a")
	if got := chosen(table); got != "esx-0002 esx-0007" {
		t.Errorf("%q: want one of each group", got)
	}
}

func TestEditing(t *testing.T) {
	table := hosts(2)
	kept := map[string]string{}
	table.Edits = []live.Edit{{Key: "e", Column: 2, Set: func(id, text string) error {
		if text == "bad" {
			return errors.New("that is\x1b[2J bad")
		}
		kept[id] = text
		return nil
	}}}
	press(table, "down", "e", "backspace", "backspace", "backspace", "backspace", "backspace", "b", "a", "d", "enter")
	if v := table.View(80, 10); !table.Typing() || !strings.Contains(v, "that is?[2J bad") || !strings.Contains(v, "ESXi of esx-0002") {
		t.Errorf("a bad text is not refused beside the field:\n%s", v)
	}
	table.Update(tea.PasteMsg{Content: "der"})
	press(table, "enter")
	if kept["esx-0002"] != "badder" || table.Typing() {
		t.Errorf("kept %q", kept)
	}
	press(table, "e", "x", "esc")
	if len(kept) != 1 || table.Typing() {
		t.Errorf("Esc kept %q", kept)
	}
}

func TestNarrowScreensLoseColumnsByRank(t *testing.T) {
	table := hosts(4)
	for width, want := range map[int][]string{60: {"Host", "Cluster", "ESXi", "State"}, 38: {"Host", "Cluster", "State"},
		28: {"Host", "State"}, 12: {"Host"}} {
		v := table.View(width, 10)
		head := strings.Fields(strings.Split(v, "\n")[0])
		if !slices.Equal(head[:min(len(head), len(want))], want) {
			t.Errorf("%d columns: %v, want %v", width, head, want)
		}
		for _, l := range strings.Split(v, "\n") {
			if lipgloss.Width(l) > width {
				t.Errorf("%d columns: %q", width, l)
			}
		}
	}
}

// A long text that is corrected leaves no wide column.
func TestColumnsBecomeNarrowAgain(t *testing.T) {
	table := hosts(4)
	want := table.View(60, 10)
	cell := table.Rows()[1].Cells[1]
	table.SetCell(1, 1, strings.Repeat("x", 70))
	if table.View(60, 10) == want {
		t.Error("the long text is not shown")
	}
	table.SetCell(1, 1, cell)
	if got := table.View(60, 10); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// big is a thousand hosts with six pNICs each.
func big() *live.Table {
	var rows []live.Row
	for h := range 1000 {
		for n := range 6 {
			host, nic := fmt.Sprintf("esx-%04d.example", h), fmt.Sprintf("vmnic%d", n)
			rows = append(rows, live.Row{ID: host + "/" + nic, Group: host, Cells: []string{host, nic, "100G", "RoCE v2", "nic_driver",
				fmt.Sprintf("0c:42:a1:%02x:%02x:%02x", h/256, h%256, n), "RoCE v2 (vmrdma0), link up, free"}})
		}
	}
	t := live.NewTable(theme.New(true, false, true), []live.Column{{Title: "Host"}, {Title: "pNIC"}, {Title: "Speed"},
		{Title: "RDMA", Rank: 1}, {Title: "Driver", Rank: 3}, {Title: "MAC", Rank: 2}, {Title: "Why"}}, rows)
	t.Radio = true
	return t
}

// BenchmarkTableKey measures from a key to the drawn screen on 6000 rows: moving, choosing, filtering. The 99th percentile
// should stay far below a sixtieth of a second.
func BenchmarkTableKey(b *testing.B) {
	table := big()
	keys := []string{"down", "space", "pgdown", "end", "space", "home", "/", "e", "s", "x", "-", "0", "7", "space", "v", "m", "3", "esc"}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		begin := time.Now()
		press(table, keys[i%len(keys)])
		_ = table.View(118, 40)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}
