package esxi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
	labcards "github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/settertest"
)

const images = "/vmfs/volumes/shared-01/rdma/fw-ConnectX5-rel-16_35_8008-"

func newFirmware(file string) backends.Value {
	return backends.ValueOf(backends.FirmwareImage{PSID: "MT_0000000009", Version: "16.35.8008", File: images + file})
}

// burns counts what flint has written.
func burns(l *lab.Lab) func() int {
	return func() (n int) {
		for _, e := range l.World().Log.Events() {
			if e.What == world.HostHardware && strings.HasPrefix(e.Detail, "flint burn") {
				n++
			}
		}
		return n
	}
}

func TestFirmwareImageContract(t *testing.T) {
	l, h := start(t, "sriov-firmware")
	s := backends.Setting{Target: backends.HostRef("esx-01"), Kind: backends.KindFirmwareImage, Name: cx5}
	missing := s
	missing.Target = backends.HostRef("no-such-host")
	settertest.Run(t, settertest.Case{Setter: h.Setters()[s.Kind], Setting: s, Missing: missing, OneWay: true, Writes: burns(l),
		Values: []backends.Value{newFirmware("MCX556A-ECU_Ax-UEFI-14.29.15-FlexBoot-3.6.902.bin")},
		Same: func(got, want backends.Value) bool {
			var a, b backends.FirmwareImage
			return got.Decode(&a) == nil && want.Decode(&b) == nil && a.PSID == b.PSID && a.Version == b.Version
		}})
	l.World().View(func(s *world.State) {
		if c := s.Host("esx-01").Card(cx5); c.Version != "16.35.4030" || c.Flash != "16.35.8008" {
			t.Errorf("it runs %s and holds %s: the next boot loads what was written", c.Version, c.Held())
		}
	})
}

// What does not fit is not written: flint has checks of its own, which nothing overrides, and those before it say more.
func TestFirmwareImageThatDoesNotFit(t *testing.T) {
	l, h := start(t, "sriov-firmware")
	l.World().View(func(s *world.State) {
		s.Images[0].Version = "16.35.4506" // not what its name tells
	})
	s := backends.Setting{Target: backends.HostRef("esx-02"), Kind: backends.KindFirmwareImage, Name: cx5}
	for file, want := range map[string]string{
		"MCX515A-CCA_Ax_Bx-UEFI-14.29.15-FlexBoot-3.6.902.bin": "is for boards with PSID MT_0000000011, and the card has PSID MT_0000000009",
		"MCX556A-ECU_Ax-UEFI-14.29.15-FlexBoot-3.6.902.bin":    "says version 16.35.8008, but it contains 16.35.4506",
		"nowhere.bin": "Cannot open Image",
	} {
		err := h.Setters()[s.Kind].Set(t.Context(), s, newFirmware(file), func(int) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if n := burns(l)(); n != 0 {
		t.Errorf("%d were written", n)
	}
}

// A card that keeps its power over a reboot runs its old firmware until the power was cut; a BlueField may come back in DPU mode.
func TestActiveFirmware(t *testing.T) {
	l, h := start(t, "sriov-firmware-cold")
	s := backends.Setting{Target: backends.HostRef("esx-02"), Kind: backends.KindActiveFirmware, Name: cx5}
	image := s
	image.Kind = backends.KindFirmwareImage
	is := func(want bool, text string) {
		t.Helper()
		got, err := h.Setters()[s.Kind].Read(t.Context(), s)
		if err != nil || got != backends.ValueOf(want) {
			t.Errorf("%s, %v", got, err)
		}
		err = h.Setters()[s.Kind].Set(t.Context(), s, backends.ValueOf(true), nil)
		if want != (err == nil) || err != nil && !strings.Contains(err.Error()+backends.HintOf(err), text) {
			t.Errorf("%v (%s)", err, backends.HintOf(err))
		}
	}
	boot := func(how func(string) error) {
		t.Helper()
		if err := errors.Join(how("esx-02"), l.World().SetService("esx-02", "TSM-SSH", true)); err != nil {
			t.Fatal(err)
		}
	}
	is(true, "")
	if err := h.Setters()[image.Kind].Set(t.Context(), image, newFirmware("MCX556A-ECU_Ax-UEFI-14.29.15-FlexBoot-3.6.902.bin"),
		nil); err != nil {
		t.Fatal(err)
	}
	boot(func(host string) error { return errors.Join(l.World().LoseHost(host), l.World().RestoreHost(host)) })
	is(false, "still runs firmware 16.35.4030 after the reboot, and its flash holds 16.35.8008")
	is(false, "cut its power by the BMC")
	boot(l.World().PowerCycle)
	is(true, "")
	l.World().View(func(st *world.State) {
		c := st.Host("esx-02").Card(cx5)
		*c = *labcards.BlueField2(c.PCI, c.MAC, false)
	})
	is(false, "is a BlueField in DPU mode")
}
