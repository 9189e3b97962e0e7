package world_test

import (
	"errors"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/lab/world/scenario"
)

func gpuWorld(t *testing.T, name string) *world.World {
	t.Helper()
	w, err := scenario.New(scenario.Spec{Hosts: 2, VMs: 2, Scenario: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// The numbers of pages of a VM's devices are those in public logs: Dell KB 000199172 has 4206594 for a GPU of 16 GB. A T4 and a
// sound device fit below 4 GB.
func TestPagesOfDevices(t *testing.T) {
	w := gpuWorld(t, "gpudirect-models")
	for _, tc := range []struct {
		host, pci string
		pages     int64
		fits      bool
	}{
		{"esx-01", "0000:d8:00.0", 4206594, false}, // V100 16 GB
		{"esx-01", "0000:af:00.0", 77826, true},    // T4
		{"esx-01", "0000:3e:00.0", 4206594, false}, // one GPU of a K80
		{"esx-02", "0000:3c:00.0", 8400898, false}, // A30
		{"esx-02", "0000:d8:00.1", 258, true},
	} {
		w.View(func(s *world.State) {
			v := &world.VM{Host: tc.host, Firmware: "efi", Devices: []*world.Passthrough{{PCI: tc.pci}}}
			got := s.MMIO(v)
			if got.Pages != tc.pages || got.TooSmall() == tc.fits {
				t.Errorf("%s %s: %+v, want %d pages", tc.host, tc.pci, got, tc.pages)
			}
		})
	}
}

// The distance of two devices depends on the bridges above them.
func TestDistances(t *testing.T) {
	for _, tc := range []struct {
		scenario, host, a, b string
		want                 world.Distance
	}{
		{"gpudirect", "esx-01", "0000:3b:00.0", "0000:3c:00.0", world.OneSwitch},
		{"gpudirect", "esx-01", "0000:3b:00.0", "0000:3b:00.1", world.OneSwitch},
		{"gpudirect", "esx-01", "0000:3b:00.0", "0000:af:00.0", world.Sockets},
		{"gpudirect", "esx-01", "0000:3b:00.0", "0000:1a:00.0", world.RootPorts},
		{"gpudirect-models", "esx-01", "0000:3b:00.0", "0000:3e:00.0", world.SwitchTree},
		{"gpudirect-models", "esx-01", "0000:3e:00.0", "0000:3f:00.0", world.OneSwitch},
		{"gpudirect-models", "esx-01", "0000:af:00.0", "0000:d8:00.0", world.RootPorts},
	} {
		gpuWorld(t, tc.scenario).View(func(s *world.State) {
			if got := s.Host(tc.host).Distance(tc.a, tc.b); got != tc.want {
				t.Errorf("%s: %s and %s: %s, want %s", tc.scenario, tc.a, tc.b, got, tc.want)
			}
		})
	}
}

// Passthrough of functions that belong together changes together. For a device that the host uses it changes at the next boot.
// For a device of a running VM the change is refused.
func TestDevicesThatGoTogether(t *testing.T) {
	w := gpuWorld(t, "gpudirect-models")
	if err := w.SetPassthru("esx-02", "0000:d8:00.1", true, true); err != nil {
		t.Fatal(err)
	}
	w.View(func(s *world.State) {
		h := s.Host("esx-02")
		for pci, active := range map[string]bool{"0000:d8:00.0": false, "0000:d8:00.1": true} {
			if d := h.PCIDevice(pci); !d.PassthruEnabled || d.PassthruActive != active {
				t.Errorf("%s: %+v", pci, d)
			}
		}
		if !h.RebootPending() {
			t.Error("no reboot is pending")
		}
	})
	if err := gpuWorld(t, "gpudirect-done").SetPassthru("esx-01", "0000:3c:00.0", false, true); !errors.Is(err, world.ErrBusy) {
		t.Errorf("taken from a running VM: %v", err)
	}
}

// A vGPU cannot start on a GPU with vGPUs of another size or with MIG-backed vGPUs. It can start on a free GPU.
func TestSharesOfOneSize(t *testing.T) {
	w := gpuWorld(t, "gpudirect") // two A100 with 80 GB in each host
	shares := func(vm, host, profile string) {
		if err := w.Update(func(s *world.State) ([]world.Event, error) {
			v := s.VM(vm)
			v.Host, v.Devices = host, []*world.Passthrough{{Key: 13000, Profile: profile}}
			s.Host(host).VGPUs = []string{"grid_a100d-10c", "grid_a100d-40c", "grid_a100d-80c", "grid_a100d-3-40c"}
			return nil, nil
		}); err != nil {
			t.Fatal(err)
		}
		_ = w.PowerOff(vm)
	}
	shares("vm-01", "esx-01", "grid_a100d-10c")
	shares("vm-02", "esx-01", "grid_a100d-80c")
	for _, vm := range []string{"vm-01", "vm-02"} {
		if err := w.PowerOn(vm); err != nil {
			t.Fatalf("%s: %v", vm, err)
		}
	}
	for profile, want := range map[string]error{"grid_a100d-40c": world.ErrNoShare, "grid_a100d-3-40c": world.ErrNoShare,
		"grid_a100d-10c": nil,
		"grid_a100d-20c": world.ErrNoShare /* the host does not offer it */} {
		w.View(func(s *world.State) {
			if _, err := s.PlaceShares(&world.VM{Name: "x", Host: "esx-01", Devices: []*world.Passthrough{{Profile: profile}}}); !errors.Is(err,
				want) {
				t.Errorf("%s: %v, want %v", profile, err, want)
			}
		})
	}
}
