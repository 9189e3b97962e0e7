package guest

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// nicName assigns a name to an interface by its MAC: KindNICName. It uses a .link file (systemd.link(5)), which systemd-udevd
// also reads in the initial RAM disks of Debian and Ubuntu: they contain copies of these files and are renewed (README.Debian of
// udev, "Network interface naming"). Driver= excludes VLANs and bonds, which can have the MAC of an adapter. Every release of
// systemd supports Driver=; releases before 245 do not support PermanentMACAddress= and would match all interfaces.
type nicName struct{ recorded }

// kernelName matches names that the kernel assigns by itself; another interface may get such a name first (systemd.link(5),
// Name=).
var kernelName = regexp.MustCompile(`^(eth|wlan|wwan|ib)[0-9]+$`)

// The name of nicNameFile does not contain "rdma-setup", for the reason given at nouveauFile. going exists as long as the initial
// RAM disks may contain another state.
func nicNameFile(mac string) (file, going string) {
	file = "/etc/systemd/network/10-rdma_setup-" + strings.ReplaceAll(mac, ":", "") + ".link"
	return file, file + ".going"
}

// NICNameText returns the .link file for an interface, by its MAC and the driver of its adapter.
func NICNameText(mac, driver, name string) string {
	return ours + fmt.Sprintf("[Match]\nMACAddress=%s\nDriver=%s\n\n[Link]\nName=%s\n", mac, driver, name)
}

// Read returns the name that the file of this program assigns to the MAC; Partial if the initial RAM disks may not have it yet,
// or the file differs.
func (n nicName) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	file, going := nicNameFile(s.Name)
	f, err := n.g.facts(ctx, s.Target.Name,
		ssh.Command{Script: section("file", "cat "+ssh.QuoteAll(file)) + section("going", "ls "+ssh.QuoteAll(going))})
	if err != nil {
		return backends.Absent, err
	}
	text := strings.TrimSpace(f["file"])
	_, name, _ := strings.Cut(text, "\nName=")
	_, driver, _ := strings.Cut(text, "\nDriver=")
	driver, _, _ = strings.Cut(driver, "\n")
	switch {
	case text == "" && strings.TrimSpace(f["going"]) == "":
		return backends.Absent, nil
	case strings.TrimSpace(f["going"]) != "":
		return backends.Partial("the initial RAM disks may not have " + file), nil
	case name == "" || text != strings.TrimSpace(NICNameText(s.Name, driver, name)):
		return backends.Partial(file + " says something else"), nil
	}
	return backends.ValueOf(name), nil
}

// Set writes the file and renews the initial RAM disks. Nothing is renamed: the name is the current one.
func (n nicName) Set(ctx context.Context, s backends.Setting, to backends.Value, progress backends.Progress) error {
	vm := s.Target.Name
	if now, err := n.Read(ctx, s); err != nil || now == to {
		return err
	}
	file, going := nicNameFile(s.Name)
	if to.IsAbsent() {
		return n.restore(ctx, vm,
			backends.Kept{Items: []backends.Item{{Kind: backends.ItemFile, Name: file}, {Kind: backends.ItemFile, Name: going}}}, file)
	}
	var name string
	if err := to.Decode(&name); err != nil {
		return err
	}
	driver, err := n.nameable(ctx, s, name)
	if err != nil {
		return err
	}
	if _, err := n.g.root(ctx, vm, "keep the name of "+name, ssh.Command{Script: "mkdir -p /etc/systemd/network"}); err != nil {
		return err
	}
	if err := n.g.put(ctx, vm, going, nil, 0o644, ""); err != nil {
		return err
	}
	if err := n.g.put(ctx, vm, file, []byte(NICNameText(s.Name, driver, name)), 0o644, ""); err != nil {
		return err
	}
	progress.Report(20)
	if err := n.g.renewRAMDisk(ctx, vm); err != nil {
		return err
	}
	_, err = n.g.root(ctx, vm, "keep the name of "+name, ssh.Command{Script: "rm -f " + ssh.QuoteAll(going)})
	return err
}

// nameable returns the driver of an interface whose name a file of this program can keep, and refuses others. udev applies only
// the first matching file (systemd.link(5)): another file would either win, or lose its other settings. An initial RAM disk of
// dracut that contains the driver names the interface without this file, and older releases of systemd do not rename it again
// (systemd issue 9006).
func (n nicName) nameable(ctx context.Context, s backends.Setting, name string) (driver string, err error) {
	vm, dir := s.Target.Name, ssh.QuoteAll("/sys/class/net/"+name)
	said, err := n.g.root(ctx, vm, "look at "+name,
		ssh.Command{Limit: time.Minute, Script: section("udev", "systemctl is-active systemd-udevd.service") +
			section("mac", "cat "+dir+"/address") + section("driver", "basename \"$(readlink "+dir+"/device/driver)\"") +
			section("link", "udevadm info -q property -p "+dir+" 2>/dev/null | sed -n 's/^ID_NET_LINK_FILE=//p'") +
			section("linktext", "cat \"$(udevadm info -q property -p "+dir+" 2>/dev/null | sed -n 's/^ID_NET_LINK_FILE=//p')\"") +
			section("disk", "command -v update-initramfs >/dev/null 2>&1 || "+
				"lsinitrd 2>/dev/null | grep -F \"/$(basename \"$(readlink "+dir+"/device/driver)\").ko\"; true")})
	if err != nil {
		return "", err
	}
	f := sections(said)
	driver = strings.TrimSpace(f["driver"])
	file, _ := nicNameFile(s.Name)
	link, text := strings.TrimSpace(f["link"]), strings.ToLower(f["linktext"])+"\n"
	// netplan writes one that keeps the name (set-name) and sorts before the file of this program.
	keeps := path.Base(link) < path.Base(file) && strings.Contains(text, "macaddress="+s.Name+"\n") &&
		strings.Contains(text, "\nname="+strings.ToLower(name)+"\n")
	refuse := func(hint, format string, args ...any) (string, error) {
		return "", backends.Refusedf(label(vm), hint, format, args...)
	}
	byHand := "Keep the name by hand, then plan again with --skip " + s.ID() + "."
	switch {
	case kernelName.MatchString(name):
		return refuse("Give the interface another name in the guest first.",
			"the name %s cannot be tied to a MAC: the kernel may give it to another interface", name)
	case strings.TrimSpace(f["udev"]) != "active":
		return refuse(byHand, "systemd-udevd does not name its interfaces")
	case strings.TrimSpace(f["mac"]) != s.Name:
		return refuse("Run the plan again.", "the interface with MAC %s is no longer called %s", s.Name, name)
	case driver == "":
		return refuse(byHand, "the driver of %s is not known, and its name can only be kept by driver and MAC", name)
	case link != file && !keeps && (strings.HasPrefix(link, "/etc/") || strings.HasPrefix(link, "/run/")):
		return refuse("Check that it has MACAddress="+s.Name+" and Name="+name+", then plan again with --skip "+s.ID()+".",
			"%s already configures %s, and udev applies only one file", link, name)
	case strings.TrimSpace(f["disk"]) != "":
		return refuse("Write "+file+" by hand, run dracut --force, then plan again with --skip "+s.ID()+".",
			"its initial RAM disk contains %s, and would name %s without using a new file", driver, name)
	}
	return driver, nil
}

// Keep records both files.
func (n nicName) Keep(ctx context.Context, s backends.Setting, _ backends.Value) (backends.Kept, error) {
	file, going := nicNameFile(s.Name)
	return n.g.record(ctx, s.Target.Name, manifest{files: []string{file, going}})
}

// Restore removes the file, or restores the previous one, and renews the initial RAM disks.
func (n nicName) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	file, _ := nicNameFile(s.Name)
	return n.restore(ctx, s.Target.Name, kept, file)
}

func (n nicName) restore(ctx context.Context, vm string, kept backends.Kept, file string) error {
	return n.g.withdraw(ctx, vm, kept, file, "remove the fixed name of an interface", n.g.renewRAMDisk)
}
