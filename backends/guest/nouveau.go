package guest

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// nouveau blocks the kernel's own driver for NVIDIA GPUs, so that NVIDIA's driver can use them: KindNouveau. The file, the
// rebuilt initial RAM disk (update-initramfs or dracut) and the reboot follow the NVIDIA Driver Installation Guide, "Disabling Nouveau".
type nouveau struct{ recorded }

const (
	nouveauModule = "nouveau"

	// The names do not contain "rdma-setup": KindPersist records which files with that name the initial RAM disks contain.
	nouveauFile = "/etc/modprobe.d/nouveau-off-rdma_setup.conf"
	// nouveauGoing is the file while it is being removed: nothing reads files that do not end in .conf (modprobe.d(5)), and as
	// long as it exists the initial RAM disks may still contain the file.
	nouveauGoing = nouveauFile + ".going"
	// nouveauOmit keeps the module out of the images of dracut, which contain /etc/modprobe.d only if they are built for this host
	// alone (dracut, modules.d/90kernel-modules; the package dracut-config-generic switches that off).
	nouveauOmit = "/etc/dracut.conf.d/nouveau-off-rdma_setup.conf"
)

// NouveauText returns the file for /etc/modprobe.d.
func NouveauText() string {
	return ours + "blacklist nouveau\noptions nouveau modeset=0\n"
}

// NouveauOmitText returns the file for /etc/dracut.conf.d; see dracut.conf(5).
func NouveauOmitText() string { return ours + "omit_drivers+=\" nouveau \"\n" }

func nouveauFacts() string {
	return section("nouveau", "command -v update-initramfs || { [ -f /boot/initramfs-$(uname -r).img ] && command -v dracut; }; cat "+
		nouveauFile) +
		section("nouveau-omit", "cat "+nouveauOmit)
}

// nouveau returns the state of the module; nil if it is not loaded and nothing of this program exists.
func (f facts) nouveau() *backends.Nouveau {
	n := backends.Nouveau{Loaded: slices.Contains(f.loaded(), nouveauModule)}
	file, omit := f["nouveau"], strings.TrimSpace(f["nouveau-omit"])
	tool, rest, _ := strings.Cut(file, "\n")
	if tool = path.Base(strings.TrimSpace(tool)); tool == "update-initramfs" || tool == "dracut" {
		n.Renewable, n.Dracut, file = true, tool == "dracut", rest
	}
	switch file = strings.TrimSpace(file); {
	case file == strings.TrimSpace(NouveauText()) && (!n.Dracut || omit == strings.TrimSpace(NouveauOmitText())):
		n.Kept = true
	case file == "" && omit == "" && !n.Loaded:
		return nil
	}
	return &n
}

func (n nouveau) read(ctx context.Context, vm string) (*backends.Nouveau, error) {
	f, err := n.g.facts(ctx, vm, ssh.Command{Script: section("modules", "cat /proc/modules") + nouveauFacts()})
	return f.nouveau(), err
}

// Read returns true if the file of this program exists and the module is not loaded; Partial if the file exists and the module is
// loaded, or the file differs; else Absent.
func (n nouveau) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	now, err := n.read(ctx, s.Target.Name)
	if err != nil {
		return backends.Absent, err
	}
	return now.Value(), nil
}

// Set writes the file, renews the initial RAM disks and reboots the guest if the module is loaded. It waits until the guest
// answers again, and fails if the module was loaded again.
func (n nouveau) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	vm := s.Target.Name
	now, err := n.read(ctx, vm)
	if err != nil || now.Value() == to {
		return err
	}
	if to.IsAbsent() {
		var none backends.Kept
		for _, file := range n.files {
			none.Items = append(none.Items, backends.Item{Kind: backends.ItemFile, Name: file})
		}
		return n.restore(ctx, vm, none)
	}
	if now != nil && !now.Renewable {
		return backends.Refusedf(label(vm), "Blacklist nouveau by hand, rebuild the initial RAM disk and reboot the guest.",
			"the guest has neither update-initramfs nor dracut, one of which is needed to remove nouveau from the initial RAM disk")
	}
	before, err := n.g.BootID(ctx, vm)
	if err != nil {
		return err
	}
	if now != nil && now.Dracut {
		if err := n.g.put(ctx, vm, nouveauOmit, []byte(NouveauOmitText()), 0o644, ""); err != nil {
			return err
		}
	}
	if err := n.g.put(ctx, vm, nouveauFile, []byte(NouveauText()), 0o644, ""); err != nil {
		return err
	}
	progress.Report(10)
	if err := n.g.renewEveryRAMDisk(ctx, vm); err != nil {
		return err
	}
	progress.Report(50)
	if now != nil && now.Loaded {
		if err := n.g.reboot(ctx, vm, before); err != nil {
			return err
		}
	}
	if now, err := n.Read(ctx, s); err != nil || now != to {
		return backends.Permanentf(label(vm),
			"Find what loads nouveau in /etc/modules, /etc/modules-load.d or the kernel command line.",
			"nouveau was blacklisted, but reads back as %s: %v", now, err)
	}
	return nil
}

// Restore removes the file, or restores the previous one, and renews the initial RAM disks. The guest is not rebooted: nouveau
// can take GPUs at the next boot.
func (n nouveau) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	return n.restore(ctx, s.Target.Name, kept)
}

// restore renames the file before the RAM disks are renewed and removes it afterwards, so that an interrupted restore is
// recognized.
func (n nouveau) restore(ctx context.Context, vm string, kept backends.Kept) error {
	return n.g.withdraw(ctx, vm, kept, nouveauFile, "allow nouveau for GPUs again", func(ctx context.Context, vm string) error {
		if item := kept.Item(backends.ItemFile, nouveauOmit); item == nil || item.State.IsAbsent() {
			if _, err := n.g.root(ctx, vm, "allow nouveau in the initial RAM disk", ssh.Command{Script: "rm -f -- " + nouveauOmit}); err != nil {
				return err
			}
		}
		return n.g.renewEveryRAMDisk(ctx, vm)
	})
}

// withdraw restores a record of a file that the initial RAM disks contain too, and of its renamed file with the suffix ".going".
func (g *Guests) withdraw(ctx context.Context, vm string, kept backends.Kept, file, what string,
	renew func(context.Context, string) error) error {
	items, err := g.readItems(ctx, vm, manifestOf(kept))
	if err != nil || len(backends.Differences(kept, backends.Kept{Items: items})) == 0 {
		return err
	}
	script := "[ ! -e " + ssh.QuoteAll(file) + " ] || mv -f " + ssh.QuoteAll(file, file+".going")
	if _, err := g.root(ctx, vm, what, ssh.Command{Script: script}); err != nil {
		return err
	}
	if err := renew(ctx, vm); err != nil {
		return err
	}
	return g.putBack(ctx, vm, kept)
}
