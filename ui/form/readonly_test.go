package form

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rdma-setup/rdma-setup/ui/live"
)

func (k *keyboard) f2() *keyboard {
	k.send(tea.KeyPressMsg{Code: tea.KeyF2})
	return k
}

func TestReadOnlyReportWritesNothingAndContinuesWithSetup(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{}
		k := sit(t, f, 120, 40)
		k.shows("report only").f2().on("Password").write("right").press("enter").on("Read-only report: nothing is changed")
		k.golden("11-look")
		k.shows("SIMULATED").shows("not measured").shows("rdma-setup check")
		if f.looks != 1 || f.surveys != 0 || f.saved != nil || f.applied != 0 {
			t.Errorf("%d looks, %d surveys, applied %d times, answers saved: %t", f.looks, f.surveys, f.applied, f.saved != nil)
		}
		k.press("h").shows("written: /tmp/rdma-setup-report-look.html")
		if !strings.Contains(f.html, "<!DOCTYPE html>") || !strings.Contains(f.html, "CL-VER-002") {
			t.Errorf("%.200q", f.html)
		}
		k.press("/").write("r").shows("search: r_  match 1 of")
		k.golden("11-look-search")
		if f.looks != 1 {
			t.Error("a letter of the search read again")
		}
		k.press("esc", "F")
		k.golden("11-look-folded")
		k.press("r")
		if f.looks != 2 {
			t.Errorf("%d looks after r", f.looks)
		}
		k.press("esc").on("vCenter").press("enter").on("Hosts").press("esc").on("vCenter") // set up after all
		k.f2().on("Read-only report: nothing is changed").press("enter").on("Hosts").press("enter", "enter", "enter").on("Switch and vmknic")
	})
}

func TestCheckPageIsInterrupted(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{hang: true}
		k := sit(t, f, 80, 24)
		k.f2().write("right")
		_, cmd := k.w.Update(keyPress("enter")) // logs in
		msg := cmd()
		_, cmd = k.w.Update(msg)
		hanging := make(chan struct{})
		go func() { defer close(hanging); k.answer = cmd() }()
		k.shows("Nothing is written").press("esc")
		<-hanging
		k.send(k.answer)
		k.shows("Nothing has been read")
		f.hang = false
		k.press("enter").shows("Next steps").press("q")
		if !k.quit || k.w.Inspected == nil {
			t.Errorf("left %t, report %t", k.quit, k.w.Inspected != nil)
		}
	})
}

// met is the host key of an unknown guest.
var met = live.HostKey{Who: "guest vm-01", Address: "10.0.0.11:22", Type: "ssh-ed25519",
	Fingerprint: "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGSLDnUmcL1u2SsVNgQ", KeptIn: "/srv/ops/.ssh/known_hosts"}

func TestAnUnknownHostKeyIsAskedAbout(t *testing.T) {
	for word, trusted := range map[string]bool{"y": true, "n": false, "esc": false} {
		bubble(t, word, func(t *testing.T) {
			f := &world{unmet: []live.HostKey{met}}
			k := sit(t, f, 120, 40)
			k.press("enter").write("right").press("enter", "enter", "enter", "enter", "enter").on("VMs and guests")
			read := make(chan struct{})
			_, cmd := k.w.Update(keyPress("enter"))
			go func() { defer close(read); k.answer = cmd() }()
			k.send(<-k.queue)
			k.on("Preflight").shows(met.Fingerprint).shows("guest vm-01, at 10.0.0.11:22").shows("/srv/ops/.ssh/known_hosts").shows(
				"y trust it and keep it")
			if word == "y" {
				k.golden("12-hostkey")
			}
			k.press("enter", "q", "r", "x").shows(met.Fingerprint) // none of these keys answers the prompt
			k.send(tea.PasteMsg{Content: "y"})
			k.shows(met.Fingerprint).press(word)
			<-read
			k.send(k.answer)
			k.shows("Nothing prevents the setup")
			if len(f.trusted) != 1 || f.trusted[0] != trusted {
				t.Errorf("answered %v, want %t", f.trusted, trusted)
			}
		})
	}
}

func TestQuestionsAskAboutHostKeysAndCheck(t *testing.T) {
	for word, trusted := range map[string]bool{"yes": true, "": false} {
		f := &world{unmet: []live.HostKey{met}}
		lines := defaults()
		_, text, err := answer(f, append(append(lines[:12:12], word), "yes")...)
		if err != nil || len(f.trusted) != 1 || f.trusted[0] != trusted || !strings.Contains(text, met.Fingerprint) {
			t.Errorf("%q: answered %v, %v\n%s", word, f.trusted, err, text)
		}
	}
	f := &world{}
	got, text, err := answer(f, "look", "", "")
	if err != nil || got.Inspected == nil || got.Report != nil || f.looks != 1 || f.surveys+f.applied != 0 || f.saved != nil ||
		!strings.Contains(ansi.Strip(text), "not measured") {
		t.Errorf("%v, looked %t\n%s", err, got.Inspected != nil, text)
	}
}

func TestBothWaysWantAnAddress(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 80, 24)
		for range len("https://vcenter.example/sdk") {
			k.press("backspace")
		}
		k.press("enter").on("vCenter").shows("error: vCenter address: give an address")
		k.write("x").press("backspace").f2().on("vCenter").shows("error: vCenter address: give an address")
	})
}
