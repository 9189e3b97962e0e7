package form

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/theme"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// within checks that everything drawn fits the screen.
func (k *keyboard) within(width, height int) {
	k.t.Helper()
	lines := strings.Split(k.w.View().Content, "\n")
	if len(lines) > height {
		k.t.Errorf("%s: %d lines on a screen of %d", k.w.Page().Title(), len(lines), height)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > width {
			k.t.Errorf("%s: %d cells on a screen of %d: %q", k.w.Page().Title(), w, width, ansi.Strip(l))
		}
	}
}

func TestEveryPageTakesAnySize(t *testing.T) {
	testclass.Plain(t)
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 120, 40)
		walk(k, func(string) {
			before := k.screen()
			for _, size := range [][2]int{{80, 24}, {81, 25}, {115, 24}, {116, 24}, {117, 70}, {300, 90}, {79, 24}, {80, 23}, {20, 5}, {1, 1}} {
				k.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				k.within(size[0], size[1])
			}
			k.send(tea.WindowSizeMsg{Width: 120, Height: 40})
			if after := k.screen(); after != before {
				t.Errorf("%s is another page after the size came back:\n%s\nwas\n%s", k.w.Page().Title(), after, before)
			}
		})
	})
}

func TestEveryPageSaysThatSomethingIsNotVerified(t *testing.T) {
	still(t, func(t *testing.T) {
		for _, width := range []int{80, 120} {
			k := sit(t, &world{insecure: []string{"vCenter's certificate is not verified (--insecure)"}}, width, 24)
			k.shows("INSECURE: vCenter's certificate is not verified")
			walk(k, func(name string) {
				if head, _, _ := strings.Cut(k.screen(), "\n"); !strings.Contains(head, "INSECURE  SIMULATED") {
					t.Errorf("%s at %d columns: %q", name, width, head)
				}
			})
		}
	})
}

func TestEscCancelsLongOperations(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{hang: true}
		k := sit(t, f, 120, 40)
		k.press("enter").write("right")
		k.press("enter", "enter", "enter", "enter", "enter")
		hanging := make(chan struct{})
		_, cmd := k.w.Update(keyPress("enter"))
		go func() { defer close(hanging); k.answer = cmd() }()
		k.on("Preflight").shows("reading hosts and guests").shows("Esc cancel").shows("Ctrl-C leave")
		k.press("enter", "q", "r").on("Preflight")
		k.press("esc").shows("cancelling")
		<-hanging
		k.send(k.answer)
		k.on("Preflight").shows("have not been read")
		if strings.Contains(k.screen(), "error:") {
			t.Errorf("what was cancelled is called an error:\n%s", k.screen())
		}
		f.hang = false
		k.press("r").shows("1 passed, 1 warning")
		k.press("esc").on("VMs and guests").press("enter").on("Preflight")
		if f.surveys != 3 {
			t.Errorf("%d surveys, want 3: cancelled, read again, after going back", f.surveys)
		}
	})
}

func TestFailedChecksHoldThePlanBack(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{findings: []checks.Finding{{ID: "HOST-LINK-003", Target: backends.HostRef("esx-01"), Status: checks.Fail,
			Evidence: "vmnic2 is down", Remedy: "Check the cable."}}}
		k := sit(t, f, 100, 30)
		k.press("enter").write("right").press("enter", "enter", "enter", "enter", "enter", "enter").on("Preflight").shows("1 check failed").shows(
			"Check the cable.")
		k.press("enter").on("Preflight").shows("error: 1 check failed").shows("press r")
		f.findings = []checks.Finding{}
		k.press("r").shows("Nothing prevents the setup").press("enter").on("Plan")
	})
}

func TestNothingToChangeIsSaid(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{nothing: true}, 100, 30)
		k.press("enter").write("right").press("enter", "enter", "enter", "enter", "enter", "enter", "enter").on("Plan").shows(
			"There is nothing to change")
	})
}

func TestAPasswordIsNotSentElsewhere(t *testing.T) {
	for name, edit := range map[string]func(k *keyboard){
		"another vCenter": func(k *keyboard) { k.write("2/sdk") },
		"another account": func(k *keyboard) { k.press("tab").write("2") },
	} {
		bubble(t, name, func(t *testing.T) {
			f := &world{}
			k := sit(t, f, 100, 30)
			k.press("enter").write("right").press("enter").on("Hosts").press("esc").on("vCenter")
			edit(k)
			k.press("enter").on("Password")
			if len(f.logins) != 1 {
				t.Errorf("logins %v", f.logins)
			}
			k.press("esc").on("vCenter")
			if name == "another account" {
				k.press("tab")
			}
			for range strings.TrimPrefix(name, "another ")[:map[string]int{"another vCenter": 5, "another account": 1}[name]] {
				k.press("backspace") // back to the first one, whose password is known
			}
			k.press("enter").on("Hosts")
		})
	}
	bubble(t, "the same", func(t *testing.T) {
		k := sit(t, &world{}, 100, 30)
		k.press("enter").write("right").press("enter").on("Hosts").press("esc", "enter").on("Hosts")
	})
}

func TestAWrongPasswordIsAskedForAgain(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{}
		k := sit(t, f, 100, 30)
		k.w.Login.Password = "stale" // from the environment
		k.press("enter").on("Password").shows("the login was refused").shows("hint:")
		k.write("right").press("enter").on("Hosts")
	})
}

func TestPasteWorksAndIsNeverTypedAhead(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 100, 30)
		k.press("enter").on("Password")
		k.send(tea.PasteMsg{Content: "right\n"})
		k.press("enter").on("Hosts")
		k.press("/")
		k.send(tea.PasteMsg{Content: "esx-02"})
		k.press("enter").shows("1 of 1")
		k.press("esc", "enter", "enter", "enter").on("Switch and vmknic")
		k.w.Busy = "working"
		k.send(tea.PasteMsg{Content: "lost"})
		k.w.Busy = ""
		if k.w.Answers.Switch.Name != "RDMA-DVS" {
			t.Errorf("pasted into %q while nobody was asked", k.w.Answers.Switch.Name)
		}
	})
}

func TestTabStaysOnThePage(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 100, 30)
		k.press("tab", "tab", "tab", "down", "down").write("x")
		if k.w.Login.Username != "operator@vsphere.localx" {
			t.Errorf("account %q", k.w.Login.Username)
		}
		k.press("up", "up", "up").write("y").on("vCenter")
		if k.w.Login.URL != "https://vcenter.example/sdky" {
			t.Errorf("address %q", k.w.Login.URL)
		}
	})
}

func TestGuestsAreProposedAndEdited(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 120, 40)
		k.press("enter").write("right").press("enter", "enter", "enter", "enter", "enter").on("VMs and guests")
		k.press("l").shows("(user@address[:port])").write("root@10.1.1.1:2222").press("enter", "down", "l").write("@[2001:db8::7]:99999").press(
			"enter").shows(`"99999" is not a port`)
		k.press("backspace", "backspace", "backspace", "enter", "enter").on("Preflight")
		want := []answers.VMGuest{{Address: "10.1.1.1", Port: 2222, User: "root"}, {Address: "2001:db8::7", Port: 99}}
		for i, v := range k.w.Answers.VMs {
			if v.Guest != want[i] {
				t.Errorf("%s: %v, want %v", v.Name, v.Guest, want[i])
			}
		}
	})
}

func TestVMsOfTheSameNameAreDistinguished(t *testing.T) {
	still(t, func(t *testing.T) {
		inv := inventory()
		for i := range inv.VMs {
			inv.VMs[i].Name, inv.VMs[i].Path = "db", fmt.Sprintf("/DC/vm/%d/db", i)
		}
		k := sit(t, &world{inv: inv}, 120, 40)
		k.press("enter").write("right").press("enter", "enter", "enter", "enter", "enter").on("VMs and guests")
		k.shows("/DC/vm/0/db").press("a", "enter").on("Preflight")
		if got := k.w.Answers.VMs; len(got) != 2 || got[0].Name != "/DC/vm/0/db" || got[0].IP == got[1].IP {
			t.Errorf("%+v", got)
		}
	})
}

func TestBackgroundChangesTheColours(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 100, 30)
		k.w.Theme = theme.New(true, false, true)
		k.write("/x")
		dark := k.w.Theme.Title.GetForeground()
		k.send(tea.BackgroundColorMsg{})
		if k.w.Theme.Title.GetForeground() != dark {
			t.Error("a black background changed the colours")
		}
		k.send(tea.BackgroundColorMsg{Color: ansi.RGBColor{R: 255, G: 255, B: 255}})
		if k.w.Theme.Title.GetForeground() == dark {
			t.Error("the colours stay those of a dark background")
		}
		k.shows("https://vcenter.example/sdk/x")
	})
}

func TestBigInventories(t *testing.T) {
	still(t, func(t *testing.T) {
		inv := inventory()
		host := inv.Hosts[0]
		inv.Hosts = nil
		for i := range 1000 {
			h := host
			h.Name, h.Cluster = fmt.Sprintf("esx-%04d", i), fmt.Sprintf("Cluster-%02d", i/50)
			inv.Hosts = append(inv.Hosts, h)
		}
		k := sit(t, &world{inv: inv}, 120, 40)
		k.press("enter").write("right").press("enter").on("Hosts").shows("1000 chosen")
		k.press("c").shows("950 chosen").press("enter").on("Mode").shows("950: esx-0050 to esx-0999")
		k.press("enter").on("pNICs").shows("2 of 1900")
	})
}
