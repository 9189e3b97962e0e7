package linux

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A person is a user account. Every guest has the VM's own user and three accounts for tests.
type person struct {
	name   string
	uid    int
	sudo   string // "", "password", "nopasswd"
	secret string
}

func people(cfg Config) []person {
	own := person{name: cfg.User, uid: 1000, sudo: "nopasswd", secret: cfg.Password}
	if cfg.SudoAsks {
		own.sudo = "password"
	}
	if slices.Contains(cfg.Defects, world.NoSudo) {
		own.sudo = ""
	}
	list := []person{{name: "root", uid: 0, secret: cfg.Password}, own}
	for i, extra := range []person{{name: "ops", sudo: "password"}, {name: "opsnp", sudo: "nopasswd"}, {name: "nosudo"}} {
		if extra.name != own.name {
			extra.uid, extra.secret = 1001+i, cfg.Password
			list = append(list, extra)
		}
	}
	return list
}

func (p person) user() sh.User {
	u := sh.User{Name: p.name, UID: p.uid, GIDs: []int{p.uid}, Home: "/home/" + p.name, Shell: "/bin/bash"}
	if p.uid == 0 {
		u.Home = "/root"
	}
	if p.sudo == "password" {
		u.GIDs = append(u.GIDs, 27)
	}
	return u
}

// A builder writes files until a write fails.
type builder struct {
	fs  *vfs.FS
	err error
}

func (b *builder) dir(mode fs.FileMode, names ...string) {
	for _, n := range names {
		if b.err == nil {
			b.err = b.fs.MkdirAll(vfs.Root(), n, mode)
		}
		if b.err == nil {
			b.err = b.fs.Chmod(vfs.Root(), n, mode)
		}
	}
}

func (b *builder) file(mode fs.FileMode, name, text string) {
	if b.err == nil {
		b.err = b.fs.WriteFile(vfs.Root(), name, []byte(text), mode)
	}
}

func (b *builder) link(target, name string) {
	if b.err == nil {
		b.err = b.fs.Symlink(vfs.Root(), target, name)
	}
}

// image creates the disk of a freshly installed guest.
func (m *Machine) image() error {
	b := &builder{fs: m.sys.FS}
	b.dir(0o755, "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local/bin", "/usr/local/sbin", "/usr/games", "/usr/share", "/etc", "/home",
		"/boot", "/var/log",
		"/var/lib", "/etc/init.d", "/opt", "/srv", "/mnt", "/dev", "/proc", "/sys", "/run", "/etc/security/limits.d", "/etc/profile.d",
		"/etc/modules-load.d", "/etc/modprobe.d",
		"/etc/sudoers.d", "/etc/systemd/system/multi-user.target.wants", "/etc/sysctl.d", "/etc/ssh", "/etc/default", "/etc/udev/rules.d",
		"/"+linkDir)
	b.link("usr/bin", "/bin")
	b.link("usr/sbin", "/sbin")
	b.link("usr/lib", "/lib")
	b.dir(0o777|fs.ModeSticky, "/var/tmp")
	b.dir(0o700, "/root")
	b.dir(0o755, "/lib/systemd/system", "/lib/modules/"+m.distro.kernel, "/lib/modprobe.d", "/lib/udev/rules.d")
	b.file(0o644, "/lib/modules/"+m.distro.kernel+"/modules.builtin", m.kernel.BuiltInFile())
	b.file(0o644, "/etc/os-release", m.distro.release)
	b.file(0o644, "/etc/hostname", m.cfg.Hostname+"\n")
	b.file(0o644, "/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 "+m.cfg.Hostname+"\n")
	b.file(0o644, "/etc/profile", "")
	b.file(0o644, "/etc/security/limits.conf", "# <domain> <type> <item> <value>\n")
	b.file(0o644, "/etc/sysctl.conf", "")
	b.file(0o444, "/etc/machine-id", fmt.Sprintf("%032x\n", number(m.cfg.VM)))
	b.file(0o644, "/boot/vmlinuz-"+m.distro.kernel, "kernel\n")
	if m.distro.deb {
		b.file(0o644, "/boot/initrd.img-"+m.distro.kernel, "initrd\n")
		b.dir(0o755, "/etc/netplan", "/etc/initramfs-tools")
		b.file(0o600, m.netplanFile(), m.netplanText())
	} else {
		b.dir(0o755, "/etc/dracut.conf.d")
		b.file(0o600, "/boot/initramfs-"+m.distro.kernel+".img", "initramfs\n"+m.dracutModules())
		b.dir(0o755, "/etc/NetworkManager", "/etc/sysconfig/network-scripts")
		b.dir(0o700, "/etc/NetworkManager/system-connections")
		b.dir(0o755, "/usr/lib/NetworkManager/conf.d")
		b.file(0o644, "/usr/lib/NetworkManager/conf.d/00-server.conf", "[main]\nno-auto-default=*\n")
		b.file(0o644, "/etc/redhat-release", m.distro.id+" release "+m.distro.version+"\n")
		if len(ports(m.Adapters())) > 0 {
			b.file(0o600, "/etc/NetworkManager/system-connections/"+ports(m.Adapters())[0].Name()+".nmconnection", fmt.Sprintf(
				"[connection]\nid=%s\nuuid=%s\ntype=ethernet\ninterface-name=%s\n\n[ipv4]\nmethod=auto\n", ports(m.Adapters())[0].Name(),
				"0f0e0d0c-0b0a-4908-8706-050403020100", ports(m.Adapters())[0].Name()))
		}
	}
	passwd, group, sudoers := "", "sudo:x:27:\n", ""
	for _, p := range m.people {
		u := p.user()
		passwd += fmt.Sprintf("%s:x:%d:%d::%s:%s\n", u.Name, u.UID, u.UID, u.Home, u.Shell)
		group += fmt.Sprintf("%s:x:%d:\n", u.Name, u.UID)
		if u.UID != 0 {
			b.dir(0o755, u.Home)
		}
		b.dir(0o700, u.Home+"/.ssh")
		b.file(0o600, u.Home+"/.ssh/authorized_keys", m.cfg.AuthorizedKey+"\n")
		if b.err == nil {
			b.err = b.fs.Walk(vfs.Root(), u.Home, func(name string, _ vfs.Info) error { return b.fs.Chown(vfs.Root(), name, u.UID, u.UID) })
		}
		if p.sudo == "nopasswd" {
			sudoers += p.name + " ALL=(ALL) NOPASSWD:ALL\n"
		}
	}
	b.file(0o644, "/etc/passwd", passwd)
	b.file(0o644, "/etc/group", group)
	b.file(0o440, "/etc/sudoers", "root ALL=(ALL:ALL) ALL\n%sudo ALL=(ALL:ALL) ALL\n")
	b.file(0o440, "/etc/sudoers.d/90-cloud-init-users", sudoers)
	if b.err != nil {
		return b.err
	}
	if err := m.mounts(); err != nil {
		return err
	}
	if err := m.mofed.Mount(); err != nil {
		return err
	}
	return m.pkgs.InstallBase()
}

func (m *Machine) netplanFile() string {
	if m.distro.version == "20.04" {
		return "/etc/netplan/00-installer-config.yaml"
	}
	return "/etc/netplan/50-cloud-init.yaml"
}

func (m *Machine) netplanText() string {
	ports := ports(m.Adapters())
	if len(ports) == 0 {
		return "network:\n  version: 2\n"
	}
	if m.distro.version == "20.04" {
		return fmt.Sprintf(
			"# This is the network config written by 'subiquity'\nnetwork:\n  ethernets:\n    %s:\n      dhcp4: true\n  version: 2\n",
			ports[0].Name())
	}
	return fmt.Sprintf(
		"network:\n    ethernets:\n        %s:\n            dhcp4: true\n            match:\n                macaddress: %s\n            "+
			"set-name: %s\n    version: 2\n",
		ports[0].Name(), ports[0].MAC, ports[0].Name())
}
