package guest

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/backends/lab/linux/netif"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

// labGuest is the network of a guest of the lab with the files of a layout, after its boot.
func labGuest(t *testing.T, l layout, files []netconf.File) *netif.Config {
	disk := vfs.New(time.Now)
	_ = disk.MkdirAll(vfs.Root(), "/dev", 0o755)
	_ = disk.WriteFile(vfs.Root(), "/dev/null", nil, 0o666)
	for _, f := range files {
		mode := fs.FileMode(0o644)
		if strings.Contains(f.Path, "/netplan/") || strings.Contains(f.Path, "/system-connections/") {
			mode = 0o600
		}
		if err := disk.MkdirAll(vfs.Root(), path.Dir(f.Path), 0o755); err != nil {
			t.Fatal(err)
		}
		err := disk.Symlink(vfs.Root(), "/dev/null", f.Path)
		if f.Content != "" {
			err = cmp.Or(disk.Remove(vfs.Root(), f.Path), disk.WriteFile(vfs.Root(), f.Path, []byte(f.Content), mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := &netif.Config{Stack: &netif.Stack{}, FS: disk, Now: time.Now, Netplan: l.system == netconf.Netplan || l.system == netconf.Networkd,
		DHCP: func(string) (netip.Prefix, bool) { return leased, true }}
	named := func(f netconf.File) bool { return strings.Contains(f.Path+f.Content, "NetworkManager") }
	if l.system == netconf.Ifcfg || slices.ContainsFunc(files, named) {
		_ = disk.MkdirAll(vfs.Root(), "/etc/NetworkManager/conf.d", 0o755)
		_ = disk.WriteFile(vfs.Root(), "/etc/NetworkManager/conf.d/00-server.conf", []byte("[main]\nno-auto-default=*\n"), 0o644)
	}
	var ports []netif.Port
	for i, link := range l.links {
		port := netif.Port{MAC: link.MAC, Connected: true}
		if _, err := fmt.Sscanf(link.Name, "ens%d", &port.Slot); err == nil && link.Device {
			port.Paired = strings.HasSuffix(link.Name, "f0")
			ports = append(ports, port)
			l.links[i].Alt = []string{fmt.Sprintf("enp%ds0%s", netif.Bus(port.Slot), map[bool]string{true: "f0"}[port.Paired])}
		}
	}
	c.Generate()
	c.Stack.Boot(ports)
	c.Boot()
	return c
}

var leased = netip.MustParsePrefix("10.200.0.9/16")

// The lab's guests do what the resolver says, before and after our file is added; the real programs do too (TestE2ELayouts).
func TestLayoutsOnTheLab(t *testing.T) {
	for _, l := range layouts(t) {
		if l.system == netconf.Ifupdown { // not in the lab
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			p, _ := netconf.For(l.system)
			sameOnTheLab(t, p, l, l.files)
			if f, err := p.Add(l.files, l.links, planned); err == nil {
				others := slices.DeleteFunc(slices.Clone(l.files), func(o netconf.File) bool { return o.Path == f.Path })
				sameOnTheLab(t, p, l, append(others, f))
			}
		})
	}
}

func sameOnTheLab(t *testing.T, p netconf.Program, l layout, files []netconf.File) {
	c := labGuest(t, l, files)
	says, err := p.Effective(files, l.links)
	if err != nil {
		for _, link := range c.Stack.Links() {
			if link.Up || len(link.Addrs) > 0 {
				t.Errorf("%s is up, though %v", link.Name, err)
			}
		}
		return
	}
	if l.system == netconf.Netplan {
		if is, err := netconf.Generated(files, generatedOnTheLab(t, c), l.links); err != nil || !reflect.DeepEqual(is, says) {
			t.Errorf("%v: the lab's netplan writes what means\n%+v\nnot\n%+v", err, is, says)
		}
	}
	for i, link := range l.links {
		is, there := c.Stack.Link(link.Name)
		if !there {
			continue // the lab has no virtual interfaces
		}
		want := says[i]
		elsewhere := func(o netconf.Effective) bool { return o.Link != want.Link && o.File == want.File && o.ID == want.ID }
		if len(is.Addrs) == 0 && want.Renderer == netconf.NetworkManager && slices.ContainsFunc(says, elsewhere) {
			continue // a profile is for one interface at a time (nm-settings(5), multi-connect)
		}
		var addresses []string
		dhcp := false
		for _, a := range is.Addrs {
			if a.DHCP {
				dhcp = true
			} else {
				addresses = append(addresses, a.String())
			}
		}
		mtu := want.MTU
		if mtu == 0 {
			mtu = 1500
		}
		slices.Sort(addresses)
		static := slices.Sorted(slices.Values(want.Addresses))
		if dhcp != want.DHCP4 || is.MTU != mtu || is.Master != want.Master || !slices.Equal(addresses, static) {
			t.Errorf("%s has %v, DHCP %v, MTU %d, master %q; the resolver says %+v", link.Name, addresses, dhcp, is.MTU, is.Master, want)
		}
	}
}

func generatedOnTheLab(t *testing.T, c *netif.Config) (files []netconf.File) {
	for _, dir := range []string{"/run/systemd/network", "/run/NetworkManager/system-connections"} {
		list, err := c.FS.ReadDir(vfs.Root(), dir)
		for _, i := range list {
			text, errRead := c.FS.ReadFile(vfs.Root(), dir+"/"+i.Name())
			if err != nil || errRead != nil {
				t.Fatal(err, errRead)
			}
			files = append(files, netconf.File{Path: dir + "/" + i.Name(), Content: string(text)})
		}
	}
	return files
}
