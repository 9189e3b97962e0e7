package form

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

func TestGoldenScreens(t *testing.T) {
	testclass.Plain(t)
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 120, 40)
		walk(k, k.golden)
	})
}

func TestEnterAloneReachesTheReport(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{}
		k := sit(t, f, 120, 40)
		presses := 0
		walk(k, func(string) { presses++ })
		if presses > 15 {
			t.Errorf("%d pages to confirm; 15 is the most", presses)
		}
		if f.applied != 1 || f.saved == nil {
			t.Errorf("applied %d times, answers saved: %t", f.applied, f.saved != nil)
		}
		k.shows("SIMULATED").shows("rdma-setup apply -f /tmp/answers.yaml").shows("96.1 Gb/s")
		k.press("enter")
		if !k.quit {
			t.Error("Enter on the report does not leave")
		}
	})
}

func TestBackLosesNothing(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 120, 40)
		k.press("enter").write("right").press("enter").on("Hosts")
		k.press("down", "space", "enter", "enter", "enter").on("Switch and vmknic")
		k.write("-two")
		k.press("esc").on("pNICs").press("esc").on("Mode").press("esc").on("Hosts")
		k.shows("1 chosen")
		k.press("enter", "enter", "enter").on("Switch and vmknic").shows("RDMA-DVS-two")
		if got := k.w.Answers.Hosts.Names; len(got) != 1 || got[0] != "esx-01" {
			t.Errorf("hosts %v after going back and forth", got)
		}
	})
}

func TestBackKeepsWhatWasNotAccepted(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 120, 40)
		k.press("enter").write("right").press("enter").on("Hosts").press("down", "space").shows("1 chosen").press("esc").on("vCenter").press(
			"enter").on("Hosts").shows("1 chosen")
		k.press("down", "space", "enter").on("Mode").press("down", "esc").on("Hosts").press("enter").on("Mode").press("enter").on("pNICs")
		k.press("space").shows("1 chosen").press("esc").on("Mode").press("enter").on("pNICs").shows("1 chosen").press("space", "enter").on(
			"Switch and VFs")
		k.write("-two").press("tab", "tab").write("1").press("esc").on("pNICs").press("enter").on("Switch and VFs").shows("RDMA-DVS-two").shows(
			"> 90001")
		k.press("enter").shows("90001 is not between").press("backspace", "esc").on("pNICs").press("enter").on("Switch and VFs").shows("> 9000").
			press("enter").on("VMs and guests")
		k.press("e", "backspace", "backspace", "backspace", "backspace").write("7/24").press("enter").press("down", "space").shows(
			"192.168.50.17/24").shows("1 chosen")
		k.press("esc").on("Switch and VFs").press("enter").on("VMs and guests").shows("192.168.50.17/24").shows("1 chosen").press("enter").on(
			"Preflight")
		if a := k.w.Answers; a.Mode != answers.SRIOV || a.QoS.Lossless != answers.LosslessPFC || len(a.VMs) != 1 ||
			a.VMs[0].IP.String() != "192.168.50.17/24" {
			t.Errorf("%s, %s, %+v", a.Mode, a.QoS.Lossless, a.VMs)
		}
	})
}

func TestWrongInputStaysOnThePage(t *testing.T) {
	for name, tt := range map[string]struct {
		drive func(k *keyboard)
		page  string
		says  string
	}{
		"nobody at the address": {func(k *keyboard) {
			for range len("https://vcenter.example/sdk") {
				k.press("backspace")
			}
			k.write("https://nobody.example").press("enter").shows("no answer within 15 s").write("X") // the address has the focus again
		}, "vCenter", "> https://nobody.exampleX"},
		"wrong password": {func(k *keyboard) { k.press("enter").write("wrong").press("enter") }, "Password", "the login was refused"},
		"no password":    {func(k *keyboard) { k.press("enter", "enter") }, "Password", "give the password"},
		"no host":        {func(k *keyboard) { k.press("enter").write("right").press("enter", "a", "enter") }, "Hosts", "no host is chosen"},
		"a host that is away": {func(k *keyboard) {
			k.press("enter").write("right").press("enter", "down", "down", "space")
		}, "Hosts", "the host is disconnected"},
		"a pNIC in use": {func(k *keyboard) {
			k.press("enter").write("right").press("enter", "enter", "enter", "up", "space")
		}, "pNICs", "carries management"},
		"no pNIC": {func(k *keyboard) {
			k.press("enter").write("right").press("enter", "enter", "enter", "space", "enter")
		}, "pNICs", "no pNIC is chosen on esx-01"},
		"an MTU that is no number": {func(k *keyboard) {
			k.press("enter").write("right").press("enter", "enter", "enter", "enter", "tab", "tab").write("x").press("enter")
		}, "Switch and vmknic", "expected a number"},
		"an address that is taken": {func(k *keyboard) {
			k.press("enter").write("right").press("enter", "enter", "enter", "enter", "enter", "e")
			k.press("backspace", "backspace", "backspace", "backspace").write("2/24").press("enter")
		}, "VMs and guests", "192.168.50.12 is the address of vm-02"},
	} {
		bubble(t, name, func(t *testing.T) {
			k := sit(t, &world{}, 120, 40)
			tt.drive(k)
			k.on(tt.page).shows(tt.says)
		})
	}
}

// Enter refuses an address that cannot belong to a vCenter at its field, on the screen and in the plain questions, without a connection
// attempt.
func TestWrongAddressesAreRefusedAtTheirField(t *testing.T) {
	for address, says := range map[string]string{
		"": "give an address", "ftp://vc.example": `the scheme "ftp"`, "http://vc.example": "use https://", "vc .example": "contains a space",
		"vc.example/ui": "a path other than /sdk", "https://vc.example/sdk?x=1": "a path other than /sdk",
		"vc.example:0": "no port from 1 to 65535",
		"vc.example:":  "no port from 1 to 65535", "vc.example:70000": "no port from 1 to 65535", "vc.example:x": "is not a URL",
		"https://":    "is not a URL",
		"2001:db8::1": "without brackets", "a@vc.example": "enter the account in the field below",
		"https://a:geheim@vc.example": "holds a password",
	} {
		bubble(t, address, func(t *testing.T) {
			f := &world{}
			k := sit(t, f, 80, 24)
			k.press("ctrl+u").write(address).press("return").on("vCenter").shows(says)
			if got := k.w.Page().EnterLabel(); got != "next field" || k.w.Busy != "" {
				t.Errorf("Enter says %q, busy with %q", got, k.w.Busy)
			}
			if address == "" {
				return // Enter accepts the value in brackets
			}
			if _, text, _ := answer(f, address, "vc.example"); !strings.Contains(text, says) || strings.Contains(text, "geheim@vc.example]") {
				t.Errorf("%q is not said:\n%s", says, text)
			}
		})
	}
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 80, 24)
		k.press("ctrl+u").write(" vc.example:8443/ ").press("enter").write("right").press("enter").on("Hosts")
		if got := k.w.Answers.VCenter.URL; got != "https://vc.example:8443/sdk" {
			t.Errorf("the answers have %q", got)
		}
	})
}

func TestRefusalStopsBeforeThePlan(t *testing.T) {
	still(t, func(t *testing.T) {
		f := &world{refuse: &plan.Refused{Refusals: []plan.Refusal{{Target: backends.HostRef("esx-02"), Why: "vmnic2 has no link",
			Remedy: "Check the cable."}}}}
		k := sit(t, f, 120, 40)
		k.press("enter").write("right").press("enter", "enter", "enter", "enter", "enter", "enter").on("Preflight")
		k.shows("vmnic2 has no link").shows("Check the cable.")
		k.press("enter").on("Preflight")
		if f.applied != 0 {
			t.Error("something was applied")
		}
	})
}

func TestUnknownCertificateIsShownBeforeThePassword(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{unknownCert: true}, 100, 30)
		k.press("enter").on("vCenter").shows("AB:CD:EF")
		k.press("n").on("vCenter")
		k.press("enter", "y").on("Password")
		if k.w.Login.Thumbprint != "AB:CD:EF" {
			t.Errorf("thumbprint %q", k.w.Login.Thumbprint)
		}
	})
}

func TestPasswordIsNeverShown(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 100, 30)
		k.press("enter").on("Password").write("right")
		if strings.Contains(k.screen(), "right") {
			t.Errorf("the password stands on the screen:\n%s", k.screen())
		}
	})
}

func TestSmallScreensSaySo(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 60, 20)
		k.shows("needs 80x24")
		k.send(tea.WindowSizeMsg{Width: 1, Height: 1})
		k.send(tea.WindowSizeMsg{Width: 80, Height: 24})
		k.on("vCenter").shows("vCenter address")
	})
}

func TestHelpAndLeaving(t *testing.T) {
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 100, 30)
		k.press("enter").write("right").press("enter").on("Hosts")
		k.press("?").shows("accept the page").press("x").on("Hosts")
		k.press("q").shows("Leave?").press("n").on("Hosts")
		k.press("q", "y")
		if !k.quit {
			t.Error("q and y do not leave")
		}
	})
}

func TestModeSRIOVAsksForVFs(t *testing.T) {
	testclass.Plain(t)
	still(t, func(t *testing.T) {
		k := sit(t, &world{}, 120, 40)
		k.press("enter").write("right").press("enter").on("Hosts").press("enter").on("Mode").press("down", "enter").on("pNICs").press("enter").on(
			"Switch and VFs")
		k.golden("6-switch-sriov")
		k.press("tab", "tab", "tab", "tab").press("backspace").write("200").press("enter").on("Switch and VFs").shows("127")
		k.press("backspace", "backspace", "backspace").write("12").press("tab").write("mft.vib").press("enter").on("Switch and VFs").shows(
			"not a datastore path")
		for range len("mft.vib") {
			k.press("backspace")
		}
		k.write("/vmfs/volumes/ds/mft.vib, /vmfs/volumes/ds/nmst.vib").press("tab", "tab").write("cpu numa fast").press("enter").on(
			"Switch and VFs").shows(`"fast" is none of cpu, latency, numa`)
		for range len(" fast") {
			k.press("backspace")
		}
		k.press("tab").write("pe").shows("<> no").press("right").shows("<> yes").press("enter").on("VMs and guests").press("esc").on(
			"Switch and VFs").press("tab", "tab", "tab", "tab", "tab", "tab", "tab").shows("> cpu, numa").press("enter").on("VMs and guests")
		a := k.w.Answers
		if a.Tuning != (answers.Tuning{ReserveCPU: true, Latency: "normal", NUMA: "nic"}) || !a.Confirmed.SwitchPFC {
			t.Errorf("tuning %+v, confirmed %+v", a.Tuning, a.Confirmed)
		}
		if a.Mode != answers.SRIOV || a.SRIOV.VFs != 12 || len(a.SRIOV.Components) != 2 || a.ESXi.User != "root" ||
			a.QoS.Lossless != answers.LosslessPFC {
			t.Errorf("%+v, %+v, %q, %s", a.Mode, a.SRIOV, a.ESXi.User, a.QoS.Lossless)
		}
	})
}
