package generate

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/guest"
	"github.com/rdma-setup/rdma-setup/backends/guest/netconf"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// A networkFile is a kind of file that makes the address of an RDMA adapter persistent.
type networkFile struct {
	use    string
	system netconf.System
	short  string
	then   string // how it is activated
}

var networkFiles = []networkFile{
	{"netplan", netconf.Netplan, "Print the netplan file of an RDMA adapter (Ubuntu)",
		"netplan generate, then netplan apply; on a console, netplan try reverts by itself"},
	{"nmconnection", netconf.NetworkManager, "Print the NetworkManager keyfile of an RDMA adapter (EL 8 and later)",
		"nmcli connection reload, then nmcli connection up UUID"},
	{"ifcfg", netconf.Ifcfg, "Print the ifcfg file of an RDMA adapter (EL 7 and 8)", "ifdown INTERFACE; ifup INTERFACE"},
	{"networkd", netconf.Networkd, "Print the systemd-networkd file of an RDMA adapter",
		"networkctl reload, then networkctl reconfigure INTERFACE"},
	{"interfaces", netconf.Ifupdown, "Print the ifupdown file of an RDMA adapter (Debian)", "ifup INTERFACE"},
}

// interfaceName is stricter than Linux, which allows quotes and dollars: some of these files are read by shells.
var interfaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`)

func newNetworkCmd(e *console.Env, k networkFile) *cobra.Command {
	var answersFile string
	var vm, mac, ip, group string
	nic := netconf.Static{}
	c := &cobra.Command{
		Use:   k.use + " (-f answers.yaml [--vm VM] | --interface NAME --mac MAC --ip ADDRESS/BITS)",
		Short: k.short,
		Long: k.short + `. This is the file that apply writes into guests.

With answers, MAC and interface are read from vCenter and the guests, and there is one file per adapter. With --interface,
--mac and --ip nothing is read.`,
		Args: cobra.NoArgs,
		RunE: console.WithSettings(e, func(cmd *cobra.Command, _ []string, set *console.Settings) error {
			if answersFile == "" && !set.Lab {
				nic.MAC, nic.CIDR, nic.PortGroup = mac, ip, group
				if err := checkStatic(&nic); err != nil {
					return err
				}
				return printNetworkFile(e, k, "", nic, "flags")
			}
			s, a, err := session.Begin(cmd.Context(), e, cmd, answersFile)
			if err != nil {
				return err
			}
			defer s.Close()
			return printNetworkFiles(cmd.Context(), e, s, k, a, vm)
		}),
	}
	fl := c.Flags()
	fl.StringVarP(&answersFile, "file", "f", "", "answers file: VMs and their addresses")
	fl.StringVar(&vm, "vm", "", "only this VM of the answers")
	fl.StringVar(&nic.Name, "interface", "", "name of the interface in the guest, such as ens224f0")
	fl.StringVar(&mac, "mac", "", "its MAC address")
	fl.StringVar(&ip, "ip", "", "its address with prefix length, such as 192.168.50.11/24; or dhcp")
	fl.IntVar(&nic.MTU, "mtu", 9000, "its MTU in bytes")
	fl.StringVar(&group, "portgroup", "RDMA-PG", "the adapter's port group, which names the file")
	return c
}

// checkStatic refuses values that cannot be written to a file unchanged.
func checkStatic(n *netconf.Static) error {
	if n.Name == "" {
		return console.Usage("use -f answers.yaml, or --interface, --mac and --ip", "the interface that the file is for is not set")
	}
	if !interfaceName.MatchString(n.Name) {
		return console.Usage("set --interface to a name that ip link shows, or use -f answers.yaml", "%q is not a valid name of an interface: "+
			"at most 15 letters, digits, dots, hyphens and underscores", n.Name)
	}
	var mac answers.MAC
	if err := mac.UnmarshalText([]byte(n.MAC)); err != nil {
		return console.Usage("give --mac", "%v", err)
	}
	p, err := netip.ParsePrefix(n.CIDR)
	dhcp := strings.EqualFold(n.CIDR, backends.DHCP)
	if !dhcp && (err != nil || !p.Addr().Is4()) {
		return console.Usage("write it as 192.168.50.11/24, or dhcp", "--ip %q is not an IPv4 address with a prefix length", n.CIDR)
	}
	if n.MTU < 576 || n.MTU > 9216 {
		return console.Usage("", "--mtu %d is not between 576 and 9216", n.MTU)
	}
	n.MAC, n.CIDR = string(mac), p.String()
	if dhcp {
		n.CIDR = backends.DHCP
	}
	return nil
}

func printNetworkFile(e *console.Env, k networkFile, vm string, n netconf.Static, from ...string) error {
	file, ok := netconf.FileFor(k.system, n)
	if !ok {
		return backends.Permanentf(vm, "", "no file for %s", k.system)
	}
	where := file.Path
	if vm != "" {
		where += " on " + vm
	}
	then := strings.NewReplacer("INTERFACE", n.Name, "UUID", netconf.ConnectionUUID(n)).Replace(k.then)
	_, body, _ := strings.Cut(file.Content, "\n") // its first line mentions apply and rollback, which do not know this file
	_, err := fmt.Fprint(e.Stdout, origin(e, k.use, from...).Comment("#"),
		"# ", generate.Plain(fmt.Sprintf("%s, owner root, mode %04o. Then: %s", where, k.system.Mode(), then)), "\n", body)
	return err
}

// printNetworkFiles prints the file for every RDMA adapter in the answers.
func printNetworkFiles(ctx context.Context, e *console.Env, s *session.Session, k networkFile, a *answers.Answers, only string) error {
	inv, err := s.Survey(ctx, a)
	if err != nil {
		return err
	}
	n := 0
	for _, v := range a.VMs {
		if only != "" && v.Name != only || only == "" && !v.Guest.Managed() {
			continue
		}
		if !v.Guest.Managed() {
			return console.Usage("use --interface, --mac and --ip instead of --vm", "%s: its guest is not read (guest.manage: false)", v.Name)
		}
		statics, err := guestStatics(inv, a, v)
		if err != nil {
			return err
		}
		for _, static := range statics {
			if n++; n > 1 {
				fmt.Fprintln(e.Stdout)
			}
			if err := printNetworkFile(e, k, v.Name, static, sources(s, "answers", "vCenter", "the guest")...); err != nil {
				return err
			}
		}
	}
	if n == 0 {
		return console.Usage("", "the answers have no RDMA adapter for %q", only)
	}
	return nil
}

// guestStatics combines the addresses in the answers with the adapters in vCenter and the interfaces in the guest.
func guestStatics(inv *backends.Inventory, a *answers.Answers, v answers.VM) ([]netconf.Static, error) {
	refuse := func(hint, format string, args ...any) error {
		return backends.Refusedf(v.Name, hint, format, args...)
	}
	vm := inv.VM(v.Name)
	if vm == nil {
		return nil, refuse("", "vCenter has no such VM")
	}
	g := inv.Guest(vm.Name)
	if g == nil {
		return nil, refuse("power the VM on", "its guest could not be read")
	}
	if g.Error != "" {
		return nil, refuse(g.Hint, "%s", g.Error)
	}
	var out []netconf.Static
	used := map[string]bool{}
	for _, n := range a.Networks(v) {
		var mac string
		for _, ad := range vm.Adapters {
			if ad.PortGroup == n.PortGroup && (ad.Type == "pvrdma" || ad.Type == "sriov") && !used[ad.MAC] {
				mac = ad.MAC
				break
			}
		}
		if mac == "" {
			return nil, refuse("run apply, which adds it, or use --interface, --mac and --ip", "it has no RDMA adapter on %s yet", n.PortGroup)
		}
		used[mac] = true
		i := g.Interface(mac)
		if i == nil {
			return nil, refuse("", "no interface in the guest has the MAC %s", mac)
		}
		static := netconf.Static{NIC: netconf.NIC{Name: i.Name, MAC: mac}, PortGroup: n.PortGroup, CIDR: n.IP.String(),
			MTU: a.RailOf(n).Switch.MTU}
		if err := checkStatic(&static); err != nil {
			return nil, refuse(backends.HintOf(err), "%v", err)
		}
		out = append(out, static)
	}
	return out, nil
}

var moduleName = regexp.MustCompile(`^[A-Za-z0-9_]{1,55}$`)

func newSystemdCmd(e *console.Env) *cobra.Command {
	module := "vmw_pvrdma"
	c := &cobra.Command{
		Use:   "systemd",
		Short: "Print the systemd unit that reloads an RDMA driver after every boot (Ubuntu's known issue)",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !moduleName.MatchString(module) {
				return console.Usage("", "--module %q is not the name of a kernel module", module)
			}
			unit := guest.UnitName(module)
			_, body, _ := strings.Cut(guest.UnitText(module), "\n")
			_, err := fmt.Fprint(e.Stdout, origin(e, "systemd", "flags").Comment("#"),
				"# /etc/systemd/system/", unit, ", owner root, mode 0644. Then: systemctl daemon-reload; systemctl enable --now ", unit, "\n", body)
			return err
		},
	}
	c.Flags().StringVar(&module, "module", module, "kernel module")
	return c
}
