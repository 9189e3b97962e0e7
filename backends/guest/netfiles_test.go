package guest_test

import (
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
)

// Whatever a guest's own files say of its network, the other interfaces keep their configuration now and after a boot, the adapter has
// exactly the planned address, and the files are again the same to the byte after a rollback; or the guest is refused with the name of the
// file, and nothing is written.
func TestGuestsOwnNetworkFiles(t *testing.T) {
	const management = "network:\n  version: 2\n  ethernets:\n    ens192:\n      dhcp4: true\n"
	for _, test := range []struct {
		name, os   string
		file, text string
		only       bool // the guest has no other file
		refused    string
		coming     string // for an adapter of this name, too
		where      string // "plan": not by Set; "set": it alone, and a retry may succeed
	}{
		{name: "catch-all (canonical/subiquity#2257)", os: "ubuntu-22.04", only: true, file: "/etc/netplan/01-netcfg.yaml",
			text: "network:\n  version: 2\n  renderer: networkd\n  ethernets:\n    all:\n      match:\n        name: e*\n      dhcp4: yes\n"},
		{name: "catch-all at 90 (docker/docs#19765)", os: "ubuntu-22.04", only: true, file: "/etc/netplan/90-default.yaml",
			text: "network:\n    version: 2\n    ethernets:\n        all-en:\n            match:\n                name: \"en*\"\n            " +
				"dhcp4: true\n            dhcp6: true\n"},
		{name: "guest customization (vmware/open-vm-tools#761)", os: "ubuntu-22.04", file: "/etc/netplan/99-netcfg-vmware.yaml",
			text: management + "    ens224f0:\n      dhcp4: yes\n      dhcp6: no\n"},
		{name: "cloud-init's profile (canonical/cloud-init#3671)", os: "rocky-9",
			file: "/etc/NetworkManager/system-connections/cloud-init-ens224f0.nmconnection",
			text: "[connection]\nid=cloud-init " +
				"ens224f0\nuuid=00000000-0000-5000-8000-000000000001\nautoconnect-priority=120\ntype=ethernet\ninterface-name=ens224f0\n\n[ipv4]\nmethod=auto\nmay-fail=true\n"},
		{name: "a profile with a high priority", os: "rocky-9", file: "/etc/NetworkManager/system-connections/static.nmconnection",
			text: "[connection]\nid=Wired " +
				"static\ntype=ethernet\ninterface-name=ens224f0\nautoconnect=true\nautoconnect-priority=900\n\n[ethernet]\nmtu=1500\n\n[ipv4]\nmethod=manual\naddress1=172.16.9.13/24\n"},
		{name: "a profile with the highest priority (metal3-io/metal3-dev-env#1062)", os: "rocky-9",
			refused: "/etc/NetworkManager/system-connections/top.nmconnection",
			file:    "/etc/NetworkManager/system-connections/top.nmconnection",
			text:    "[connection]\nid=top\ntype=ethernet\ninterface-name=ens224f0\nautoconnect-priority=999\n\n[ipv4]\nmethod=auto\n"},
		{name: "an invalid file (canonical/netplan#8)", os: "ubuntu-22.04", file: "/etc/netplan/95-broken.yaml",
			refused: "/etc/netplan/95-broken.yaml, line 5",
			text:    "network:\n  version: 2\n  ethernets:\n    ens300:\n\t  dhcp4: true\n"},
		{name: "not for NetworkManager (canonical/cloud-init#3781)", os: "rhel-8", file: "/etc/sysconfig/network-scripts/ifcfg-ens224f0",
			refused: "/etc/sysconfig/network-scripts/ifcfg-ens224f0",
			text:    "DEVICE=ens224f0\nTYPE=Ethernet\nBOOTPROTO=none\nONBOOT=yes\nNM_CONTROLLED=no\nIPADDR=172.16.9.11\nPREFIX=24\nMTU=1500\n"},
		{name: "for NetworkManager, which is not installed (netplan reference, renderer)", os: "ubuntu-22.04",
			file:    "/etc/netplan/01-network-manager-all.yaml",
			refused: "/etc/netplan/01-network-manager-all.yaml: its renderer is NetworkManager",
			text:    "network:\n  version: 2\n  renderer: NetworkManager\n"},
		{name: "for networkd, which is masked (systemctl(1), mask)", os: "ubuntu-22.04", file: "/etc/systemd/system/systemd-networkd.service",
			refused: "/etc/netplan/50-cloud-init.yaml: netplan's renderer is networkd, and systemd-networkd is masked"},
		{name: "an edit that nobody has put in force (netplan-apply(8))", os: "ubuntu-22.04", file: "/etc/netplan/70-storage.yaml",
			refused: "/etc/netplan/70-storage.yaml: it has changes that are not in force yet",
			text:    "network:\n  version: 2\n  ethernets:\n    ens192:\n      addresses: [10.9.9.9/24]\n"},
		{name: "a new stanza that nobody has put in force", os: "ubuntu-22.04", file: "/etc/netplan/80-coming.yaml",
			refused: "/etc/netplan/80-coming.yaml: it has changes that are not in force yet",
			text:    "network:\n  version: 2\n  ethernets:\n    ens300:\n      dhcp4: true\n"},
		{name: "a file of networkd that it has not read (networkctl(1), reload)", os: "ubuntu-22.04",
			file:    "/etc/systemd/network/00-first.network",
			refused: "/etc/systemd/network/00-first.network: it has changes that are not in force yet",
			text:    "[Match]\nName=ens192\n\n[Network]\nAddress=10.9.9.9/24\n"},
		{name: "a profile that NetworkManager has not read (nmcli(1), connection reload)", os: "rocky-9", where: "plan",
			file:    "/etc/NetworkManager/system-connections/new.nmconnection",
			refused: "/etc/NetworkManager/system-connections/new.nmconnection: it has changes that are not in force yet",
			text:    "[connection]\nid=new\ntype=ethernet\ninterface-name=ens192\nautoconnect-priority=5\n\n[ipv4]\nmethod=manual\naddress1=10.9.9.9/24\n"},
		{name: "a profile that was edited and not activated (nm-settings-keyfile(5))", os: "rocky-9", where: "plan",
			file: "/etc/NetworkManager/system-connections/ens192.nmconnection",
			refused: "/etc/NetworkManager/system-connections/ens192.nmconnection: it has changes that are not in force yet: ens192 does not have " +
				"10.9.9.9/24",
			text: "[connection]\nid=ens192\ntype=ethernet\ninterface-name=ens192\n\n[ipv4]\nmethod=manual\naddress1=10.9.9.9/24\n"},
		{name: "a pattern for an adapter that is coming (NetworkManager.conf(5), unmanaged-devices)", os: "rocky-9",
			file:    "/etc/NetworkManager/conf.d/x.conf",
			refused: "/etc/NetworkManager/conf.d/x.conf: ens224", coming: "ens224", text: "[keyfile]\nunmanaged-devices=interface-name:ens224*\n"},
		{name: "a stanza that netplan's writer refuses (netplan, src/networkd.c)", os: "ubuntu-22.04", file: "/usr/local/bin/netplan",
			refused: "/etc/netplan/50-cloud-init.yaml: netplan generate: ERROR: ens192: ",
			text:    "#!/bin/sh\necho 'ERROR: ens192: networkd backend does not support it' >&2\nexit 1\n"},
		{name: "a netplan that has no word of our file (netplan 0.102, networkmanager)", os: "ubuntu-22.04", file: "/usr/local/bin/netplan",
			refused: "/etc/netplan/60-rdma-setup-",
			text: "#!/bin/sh\nfor f in \"$3\"/etc/netplan/60-rdma-setup-*; do\n\tif [ -e \"$f\" ]; then echo \"$f:4:5: Error in network " +
				"definition: unknown key\" >&2; exit 78; fi\ndone\nexec /usr/sbin/netplan \"$@\"\n"},
		{name: "a trial that could not be made", os: "ubuntu-22.04", file: "/usr/local/bin/netplan", where: "set",
			refused: "the trial of the files with netplan could not be made",
			text: "#!/bin/sh\nfor f in \"$3\"/etc/netplan/60-rdma-setup-*; do\n\tif [ -e \"$f\" ]; then rm -rf \"$3\"; exit 0; fi\ndone\n" +
				"exec /usr/sbin/netplan \"$@\"\n"},
		{name: "a networkctl that has no --lines", os: "ubuntu-22.04", file: "/usr/local/bin/networkctl",
			refused: "/etc/netplan/50-cloud-init.yaml: it has changes that are not in force yet: /etc/systemd/network/a.network decides",
			text: "#!/bin/sh\ncase \"$*\" in *--lines*) echo \"networkctl: unrecognized option '--lines=0'\" >&2; exit 1 ;; esac\n" +
				"echo ' Network File: /etc/systemd/network/a.network'\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine(t, config{os: test.os})
			if test.only {
				m.root(t, "rm -f /etc/netplan/*.yaml")
			}
			write := "umask 077; cat >" + test.file + " <<'END'\n" + test.text + "END\n"
			switch {
			case strings.HasPrefix(test.text, "#!"):
				write += "chmod 755 " + test.file
			case test.text == "":
				write = "ln -s /dev/null " + test.file
			}
			m.root(t, "mkdir -p "+test.file[:strings.LastIndex(test.file, "/")]+"; "+write)
			if test.refused == "" {
				m.reboot(t)
			}
			before := m.disk(t)
			others := m.Survey(t.Context(), m.vm)
			a := backends.Assignment{Setting: m.setting(backends.KindAddress, m.group),
				To: backends.ValueOf(backends.AddressSpec{CIDR: "192.168.50.11/24", MTU: 9000})}
			set := m.Setters()[a.Kind]
			keeper, _ := backends.As[backends.Keeper](set)
			if test.refused != "" {
				stands := ""
				if others.NetInvalid != nil {
					stands = others.NetInvalid.String()
				}
				for _, p := range others.NetRivals {
					stands += p.String()
				}
				err := set.Set(t.Context(), a.Setting, a.To, nil)
				if others.NetRivals[test.coming].File == "" && test.coming != "" {
					t.Errorf("nothing stands before %s: %v", test.coming, others.NetRivals)
				}
				kind := map[string]backends.ErrorKind{"": backends.KindRefused, "set": backends.KindTransient}[test.where]
				if backends.KindOf(err) != kind || (err == nil) != (test.where == "plan") ||
					err != nil && !strings.Contains(err.Error(), test.refused) ||
					!strings.Contains(stands, test.refused) && test.where != "set" || stands != "" && test.where == "set" {
					t.Errorf("Set: %v; the survey: %s", err, stands)
				}
				if m.disk(t) != before && err != nil {
					t.Error("something was written")
				}
				return
			}
			if len(others.NetRivals) > 0 || others.NetInvalid != nil {
				t.Errorf("refused: %v %v", others.NetRivals, others.NetInvalid)
			}
			kept, err := keeper.Keep(t.Context(), a.Setting, a.To)
			if err != nil {
				t.Fatal(err)
			}
			if err := set.Set(t.Context(), a.Setting, a.To, nil); err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"after the change", "after a boot"} {
				now := m.Survey(t.Context(), m.vm)
				for _, i := range now.Interfaces {
					was := others.Interface(i.MAC)
					switch {
					case i.MAC == m.mac && (!i.Persistent || i.DHCP || i.MTU != 9000 || len(i.Addresses) != 1 || i.Addresses[0] != "192.168.50.11/24"):
						t.Errorf("%s the adapter is %+v", when, i)
					case i.MAC != m.mac &&
						(i.DHCP != was.DHCP || i.Config != was.Config || i.Up != was.Up ||
							strings.Join(i.Addresses, " ") != strings.Join(was.Addresses, " ")):
						t.Errorf("%s %s is %+v and was %+v", when, i.Name, i, *was)
					}
				}
				m.reboot(t)
			}
			if err := keeper.Restore(t.Context(), a.Setting, kept, nil); err != nil {
				t.Fatal(err)
			}
			if m.disk(t) != before {
				t.Error("the files are not as before")
			}
		})
	}
}
