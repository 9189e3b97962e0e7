package esxi

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/firmware"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// mftDir is the directory where the VIB mft installs its tools. It is not in the PATH.
const mftDir = "/opt/mellanox/bin"

func (h *Host) mft() map[string]sh.Program {
	return map[string]sh.Program{"mst": h.mst, "mlxconfig": h.mlxconfig, "mlxfwmanager": h.mlxfwmanager, "flint": h.flint,
		"mlxlink": h.mlxlink}
}

// settle makes the files of the host match its image. The tools exist while the VIB is installed, and the datastore contains the
// files that the world defines.
func (h *Host) settle() {
	root, f := vfs.Root(), h.sys.FS
	tools := false
	var depot []string
	var log strings.Builder
	h.world.View(func(s *world.State) {
		if host := s.Host(h.name); host != nil {
			tools = host.Active("mft") != nil
			fmt.Fprintf(&log, "%s cpu0:1048576)VMB: mbMagic: 2badb002\n", host.BootTime.UTC().Format("2006-01-02T15:04:05.000Z"))
			for _, line := range host.KernelLog {
				log.WriteString(line + "\n")
			}
		}
		for _, p := range s.Depot {
			depot = append(depot, p.Path)
		}
		for _, i := range s.Images {
			depot = append(depot, i.Path)
		}
	})
	_ = f.WriteFile(root, "/var/log/vmkernel.log", []byte(log.String()), 0o644) // retried at the next login
	_, err := f.Stat(root, mftDir)
	switch {
	case tools && err != nil:
		for name := range h.mft() {
			if h.sys.Install(name, path.Join(mftDir, name)) != nil {
				return // retried at the next login
			}
		}
	case !tools && err == nil:
		_ = f.RemoveAll(root, "/opt/mellanox") // retried at the next login
	}
	for _, name := range depot {
		if _, err := f.Stat(root, name); err != nil && f.MkdirAll(root, path.Dir(name), 0o755) == nil {
			_ = f.WriteFile(root, name, []byte("!<arch>\n"), fs.FileMode(0o644))
		}
	}
}

// A device is a card with its MFT device name on this host.
type device struct {
	name string // mt4119_pciconf1
	card *firmware.Card
}

// devices returns the cards of the host. On some hosts their numbers do not follow the PCI order.
func devices(h *world.Host) []device {
	cards := slices.Clone(h.Cards)
	slices.SortFunc(cards, func(a, b *firmware.Card) int { return strings.Compare(a.PCI, b.PCI) })
	if h.Index%2 == 1 {
		slices.Reverse(cards)
	}
	var list []device
	for n, c := range cards {
		list = append(list, device{fmt.Sprintf("mt%d_pciconf%d", c.ID, n), c})
	}
	return list
}

// open finds a device by name or PCI address. mst must be running.
func open(h *world.Host, name string) *device {
	if !h.MST {
		return nil
	}
	name = strings.TrimPrefix(name, "/dev/mst/")
	for _, d := range devices(h) {
		for port := range d.card.Ports {
			address := d.card.Function(port)
			mst := d.name
			if port > 0 {
				mst = fmt.Sprintf("%s.%d", mst, port)
			}
			if name == mst || name == address || name == strings.TrimPrefix(address, "0000:") {
				return &d
			}
		}
	}
	return nil
}

// mst implements mst: it loads the module and lists the devices.
func (h *Host) mst(_ context.Context, p *sh.Proc) int {
	verbose := slices.ContainsFunc(p.Args, func(a string) bool { return strings.HasPrefix(a, "-v") })
	status := 0
	err := h.world.Update(func(s *world.State) ([]world.Event, error) {
		host := s.Host(h.name)
		switch command(p.Args) {
		case "start", "restart":
			if host.Active("nmst") == nil {
				p.Printf("-E- Failed to load module nmst: Not found\n")
				status = 1
				return nil, nil
			}
			host.MST = true
			p.Printf("Module mst loaded successfully\n")
		case "stop":
			host.MST = false
			p.Printf("Module mst unloaded successfully\n")
		case "status":
			status = mstStatus(p, host, verbose)
			return nil, nil
		case "version":
			p.Printf("mst, mft %s\n", host.Active("mft").Version)
			return nil, nil
		default:
			p.Printf("Usage: mst {start|stop|status|restart|version}\n")
			status = 1
			return nil, nil
		}
		return []world.Event{{What: world.HostHardware, Host: h.name, Detail: "mst " + command(p.Args)}}, nil
	})
	if err != nil {
		return 1
	}
	return status
}

// command returns the first word that is not an option.
func command(args []string) string {
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

func mstStatus(p *sh.Proc, host *world.Host, verbose bool) int {
	if !host.MST {
		p.Printf("MST modules:\n------------\n    MST PCI module is not loaded\n    MST PCI configuration module is not loaded\n\n" +
			"MST devices:\n------------\n\tNo MST devices were found nor MST modules were loaded.\n\tYou may need to run 'mst start' to load MST " +
			"modules.\n\n")
		return 0
	}
	if !verbose {
		p.Printf("MST devices: \n------------\n")
		for _, d := range devices(host) {
			p.Printf("%s\n", d.name)
		}
		return 0
	}
	p.Printf("PCI devices:\n------------\n%-23s %-24s %-10s%-16s%-26s%s\n", "DEVICE_TYPE", "MST", "PCI", "RDMA", "NET", "NUMA")
	for _, d := range devices(host) {
		for port := range d.card.Ports {
			name := d.name
			if port > 0 {
				name = fmt.Sprintf("%s.%d", name, port)
			}
			net := ""
			if nic := host.PNICAt(d.card.Function(port)); nic != nil {
				net = "net-" + nic.Device
			}
			p.Printf("%-23s %-24s %-10s%-16s%-26s\n", d.card.Type+"(rev:0)", name, strings.TrimPrefix(d.card.Function(port), "0000:"), "", net)
		}
	}
	p.Printf("\n")
	return 0
}
