package form

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/ui/form/frame"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A keyboard drives the wizard as a person does: it presses keys and executes the commands that the loop returns, one
// after the other, except clock ticks.
type keyboard struct {
	t      *testing.T
	w      *frame.Wizard
	queue  chan tea.Msg
	quit   bool
	leaves bool // for the editor

	pressed int // keys

	answer tea.Msg // for a command that the test delays
}

func sit(t *testing.T, f live.Fabric, width, height int) *keyboard {
	t.Helper()
	k := &keyboard{t: t, queue: make(chan tea.Msg, 1024)}
	k.w = frame.New(context.Background(), frame.Options{Fabric: f, Answers: answers.Default(answers.PVRDMA),
		Theme: theme.New(false, false, true)}, pages(), lookOnly)
	k.w.Send = func(m tea.Msg) { k.queue <- m }
	k.send(tea.WindowSizeMsg{Width: width, Height: height})
	k.do(k.w.Init())
	return k
}

func (k *keyboard) send(m tea.Msg) {
	if _, key := m.(tea.KeyPressMsg); key {
		k.pressed++
	}
	_, cmd := k.w.Update(m)
	k.do(cmd)
}

// do executes a command and every command that follows from it.
func (k *keyboard) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	done := make(chan tea.Msg, 1)
	go func() { done <- cmd() }()
	var msg tea.Msg
	select {
	case msg = <-done:
	case <-time.After(100 * time.Millisecond):
		return // a clock or a blinking cursor: nothing waits for it
	}
	for len(k.queue) > 0 {
		k.send(<-k.queue)
	}
	switch msg := msg.(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			k.do(c)
		}
	case tea.QuitMsg:
		k.quit = true
	default:
		k.leaves = k.leaves || fmt.Sprintf("%T", msg) == "tea.execMsg"
		k.send(msg)
	}
}

// press presses keys; "enter" repeats Enter through all fields of a page, "return" presses it once.
func (k *keyboard) press(keys ...string) *keyboard {
	for _, key := range keys {
		if key == "enter" {
			for k.w.Page().EnterLabel() == "next field" && k.w.Err == nil {
				k.send(keyPress(key))
			}
			if k.w.Err != nil && k.w.Page().Typing() {
				continue // a field is refused
			}
		}
		k.send(keyPress(key))
	}
	return k
}

func keyPress(key string) tea.KeyPressMsg {
	named := map[string]rune{"enter": tea.KeyEnter, "return": tea.KeyEnter, "left": tea.KeyLeft, "right": tea.KeyRight, "f4": tea.KeyF4,
		"esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "space": tea.KeySpace, "backspace": tea.KeyBackspace,
		"f1": tea.KeyF1, "f2": tea.KeyF2, "f3": tea.KeyF3, "pgup": tea.KeyPgUp, "pgdn": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd}
	switch {
	case key == "shift+tab":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case strings.HasPrefix(key, "ctrl+"):
		return tea.KeyPressMsg{Code: rune(key[len(key)-1]), Mod: tea.ModCtrl}
	case named[key] != 0:
		return tea.KeyPressMsg{Code: named[key]}
	}
	r := []rune(key)[0]
	return tea.KeyPressMsg{Code: r, Text: key}
}

func (k *keyboard) write(text string) *keyboard {
	for _, r := range text {
		k.send(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	return k
}

func (k *keyboard) screen() string { return ansi.Strip(k.w.View().Content) }

func (k *keyboard) on(title string) *keyboard {
	k.t.Helper()
	if got := k.w.Page().Title(); got != title {
		k.t.Fatalf("on page %q, want %q:\n%s", got, title, k.screen())
	}
	return k
}

func (k *keyboard) shows(text string) *keyboard {
	k.t.Helper()
	if !strings.Contains(k.screen(), text) {
		k.t.Errorf("the screen does not show %q:\n%s", text, k.screen())
	}
	return k
}

// walk goes from the first page to the report by pressing only Enter, and calls look on every page.
func walk(k *keyboard, look func(name string)) {
	k.on("vCenter")
	look("1-vcenter")
	k.press("enter").on("Password")
	look("2-password")
	k.write("right").press("enter").on("Hosts")
	look("3-hosts")
	k.press("enter").on("Mode")
	look("4-mode")
	k.press("enter").on("pNICs")
	look("5-pnics")
	k.press("enter").on("Switch and vmknic")
	look("6-switch")
	k.press("enter").on("VMs and guests")
	look("7-vms")
	k.press("enter").on("Preflight")
	look("8-preflight")
	k.press("enter").on("Plan")
	look("9-plan")
	k.press("enter").on("Report")
	look("10-report")
}

// bubble runs a subtest in its own synctest bubble, where clocks and blinking cursors take no time.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { still(t, test) })
}

// still runs a test in a synctest bubble and waits until its timers have expired.
func still(t *testing.T, test func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		test(t)
		<-time.After(time.Hour)
	})
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if len(connectX.Driver()) != len(placeholderDriver) {
		t.Fatalf("%s needs a placeholder of the same length", connectX.Driver())
	}
	lines := strings.Split(got, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got = strings.ReplaceAll(strings.Join(lines, "\n")+"\n", connectX.Driver(), placeholderDriver)
	testclass.Golden(t, path, got)
}
