package cmd_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// TestUpgradeKeepsTheNamesOfInterfaces: an upgrade to hardware version 21 moves the adapters of VMs with EFI firmware to other PCI
// slots (Broadcom KB 407595). The first interface of each guest keeps its name, also after the rollback, which keeps the hardware
// version and therefore the names. Without the program's change, the guests rename the interface.
func TestUpgradeKeepsTheNamesOfInterfaces(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	for name, kept := range map[string]bool{"kept": true, "skipped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, lab.Options{Hosts: 2, VMs: 2, Systems: []string{"ubuntu-22.04", "rhel-9"}, BootTime: 50 * time.Millisecond})
			file := edited(t, filepath.Join(b.lab.Dir(), "answers-pvrdma.yaml"), "    guest: {", "    hardware: 21\n    guest: {")
			file = edited(t, file, "mode: pvrdma", "mode: pvrdma\nmeasure: {bandwidth: false, latency: false}")
			names := func() (list []string) {
				b.lab.World().View(func(s *world.State) {
					for _, v := range s.VMs {
						for _, n := range v.Guest.NICs {
							if n.MAC == v.Adapters[0].MAC {
								list = append(list, v.Name+" "+n.Name)
							}
						}
					}
				})
				return list
			}
			before := names()
			args := []string{"apply", "-f", file, "--yes"}
			if !kept {
				b.lab.World().View(func(s *world.State) {
					for _, v := range s.VMs {
						args = append(args, "--skip", "guest/"+v.Name+"/nic-name/"+v.Adapters[0].MAC)
					}
				})
			}
			code := 0
			if !kept {
				code = 5 // and the guest whose files name the interface has no management network
			}
			_, said := b.must(code, args...)
			if !kept && !strings.Contains(said, "its network is not as before: ens192 is missing") {
				t.Errorf("nothing says which interface is missing:\n%s", said)
			}
			if after := names(); len(before) != 2 || slices.Equal(after, before) != kept {
				t.Fatalf("interfaces %v, were %v\n%s", after, before, said)
			}
			if !kept {
				return
			}
			if _, said := b.must(0, "rollback", "--yes"); !strings.Contains(said, "stays: the VM keeps its hardware version") ||
				!slices.Equal(names(), before) {
				t.Errorf("after the rollback %v, were %v\n%s", names(), before, said)
			}
		})
	}
}
