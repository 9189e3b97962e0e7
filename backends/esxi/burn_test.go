package esxi_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/lab"
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
		"MCX556A-ECU_Ax-UEFI-14.29.15-FlexBoot-3.6.902.bin":    "tells version 16.35.8008, and it holds 16.35.4506",
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
