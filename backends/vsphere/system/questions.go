package system

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/nic"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/esxcli"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/wire"
)

// A Question is a fact that only the host itself can answer.
type Question string

// The questions.
const (
	Versions   Question = "versions" // of driver and firmware, into the pNICs; read before all others
	Counters   Question = "counters" // Stats and DCB; read first and last
	Modules    Question = "modules"
	VIBs       Question = "vibs"
	NextVIBs   Question = "next vibs"
	Acceptance Question = "acceptance"
	Offers     Question = "offers"
	Exceptions Question = "exceptions"
	Pause      Question = "pause"
	VFs        Question = "vfs"
	Neighbours Question = "neighbours"
	Peers      Question = "peers"
	Resync     Question = "resync"
	BootDevice Question = "boot device"
)

// questions lists every question with its call and how often the call is made on one host. The names of arguments are those of
// PowerCLI's Get-EsxCli -V2 (CreateArgs).
var questions = []struct {
	name  Question
	call  string
	times string
	image bool // the command takes the lock on the image
	asked func(*backends.HostSystem) bool
	ask   func(*asking, context.Context)
}{
	{Versions, "network nic get", "1, of the chosen pNIC, on hosts before 8.0", false, func(*backends.HostSystem) bool { return false }, nil},
	{Counters, "network nic stats get, network nic dcb status get", "2 each, of the chosen pNIC", false,
		func(s *backends.HostSystem) bool { return s.Stats != nil }, nil},
	{Modules, "system module parameters list", "1 per module; none on a host without such NICs", false,
		func(s *backends.HostSystem) bool { return s.Modules != nil }, (*asking).modules},
	{VIBs, "software vib list", "1", true, func(s *backends.HostSystem) bool { return s.VIBs.State != "" }, (*asking).vibs},
	{NextVIBs, "software vib list (rebootingimage)", "1", true, func(s *backends.HostSystem) bool { return s.NextVIBs.State != "" },
		(*asking).nextVIBs},
	{Acceptance, "software acceptance get", "1", true, func(s *backends.HostSystem) bool { return s.Acceptance.State != "" },
		(*asking).acceptance},
	{Offers, "software sources vib list, software sources vib get", "1 per file, 1 to describe each", true,
		func(s *backends.HostSystem) bool { return s.Offers != nil }, (*asking).offered},
	{Exceptions, "QueryLockdownExceptions", "1, only in lockdown mode", false,
		func(s *backends.HostSystem) bool { return s.Exceptions.State != "" }, (*asking).exceptions},
	{Pause, "network nic pauseParams list", "1", false, func(s *backends.HostSystem) bool { return s.Pause.State != "" }, (*asking).pauses},
	{VFs, "network sriovnic vf list", "1, if the chosen pNIC has VFs", false, func(s *backends.HostSystem) bool { return s.VFs != nil },
		(*asking).vfs},
	{Neighbours, "QueryNetworkHint", "1", false, func(s *backends.HostSystem) bool { return s.Neighbours.State != "" }, (*asking).neighbours},
	{Peers, "network diag ping", "1 per peer, 2 peers; 2 more per peer if pings are lost", false,
		func(s *backends.HostSystem) bool { return s.Peers != nil }, (*asking).ping},
	{Resync, "vsan debug resync summary get", "1, on hosts with vSAN", false,
		func(s *backends.HostSystem) bool { return s.Resync.State != "" }, (*asking).resync},
	{BootDevice, "storage core device list", "1, if a USB controller is passed through", false,
		func(s *backends.HostSystem) bool { return s.BootDevice.State != "" }, (*asking).bootDevice},
}

// versions reads the versions of driver and firmware of the chosen pNICs of hosts before 8.0, whose API does not have them (vSphere Web
// Services API, PhysicalNic.driverVersion and firmwareVersion: since vSphere API 8.0.0.1). A version that cannot be read stays empty.
func (a *asking) versions(ctx context.Context) {
	for _, device := range a.o.PNICs[a.host.Name] {
		n := a.host.NIC(device)
		if n == nil || n.Firmware != "" {
			continue
		}
		rows, err := a.cli.Ask(ctx, a.host.Name, "network nic get", esxcli.Arg{Name: "nicname", Text: device})
		if err == nil && len(rows) > 0 { // the fields are those of Driver Info
			n.Firmware, n.DriverVersion = rows[0]["FirmwareVersion"], cmp.Or(n.DriverVersion, rows[0]["Version"])
		}
	}
}

// modules reads the parameters of the drivers of the host's NICs.
func (a *asking) modules(ctx context.Context) {
	a.sys.Modules = map[string]backends.Fact[backends.Module]{}
	for _, name := range nic.Modules(a.host) {
		m, err := a.parameters(ctx, a.host.Name, name)
		fact := backends.ReadFact(m, err)
		if err != nil && backends.KindOf(err) == backends.KindPermanent { // the module may not exist
			rows, listErr := a.cli.Ask(ctx, a.host.Name, "system module list")
			if listErr == nil && !slices.ContainsFunc(rows, func(r esxcli.Row) bool { return r["Name"] == name }) {
				fact = backends.Fact[backends.Module]{State: backends.FactAbsent}
			}
		}
		a.sys.Modules[name] = fact
	}
}

func (a *asking) vibs(ctx context.Context) {
	a.sys.VIBs = backends.ReadFact(a.installed(ctx, a.host.Name))
}

func (a *asking) nextVIBs(ctx context.Context) {
	list, err := a.installed(ctx, a.host.Name, nextImage)
	a.sys.NextVIBs = backends.ReadFact(list, err)
	if err == nil && len(list) == 0 { // nothing is printed if no image is staged
		a.sys.NextVIBs.State = backends.FactAbsent
	}
}

func (a *asking) acceptance(ctx context.Context) {
	row, err := a.row(ctx, a.host.Name, "software acceptance get")
	level := ""
	if err == nil {
		level = acceptance(row["output"])
	}
	a.sys.Acceptance = backends.ReadFact(level, err)
}

var errNoAnswer = errors.New("the host returned no data")

// row is the first row of what a command prints.
func (s *System) row(ctx context.Context, host, command string, args ...esxcli.Arg) (esxcli.Row, error) {
	rows, err := s.cli.Ask(ctx, host, command, args...)
	if err == nil && len(rows) == 0 {
		err = errNoAnswer
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

func (a *asking) offered(ctx context.Context) {
	a.sys.Offers = []backends.Component{}
	for _, file := range a.o.Depots {
		list, err := a.offers(ctx, a.host.Name, file)
		if err != nil {
			list = []backends.Component{{Path: file, Error: err.Error()}}
		}
		a.sys.Offers = append(a.sys.Offers, list...)
	}
}

func (a *asking) exceptions(ctx context.Context) {
	if a.host.Lockdown == "" || a.host.Lockdown == "disabled" {
		a.sys.Exceptions.State = backends.FactAbsent
		return
	}
	read := func() ([]string, error) {
		_, access, err := a.places.Part(ctx, backends.HostRef(a.host.Name), func(m types.HostConfigManager) *types.ManagedObjectReference {
			return m.HostAccessManager
		})
		if err != nil {
			return nil, err
		}
		res, err := methods.QueryLockdownExceptions(ctx, a.conn.VIM(), &types.QueryLockdownExceptions{This: access})
		if err != nil {
			return nil, wire.Explain(err, a.host.Name, "ask for the exception users of lockdown mode")
		}
		return res.Returnval, nil
	}
	a.sys.Exceptions = backends.ReadFact(read())
}

func (a *asking) pauses(ctx context.Context) {
	a.sys.Pause = backends.ReadFact(a.pause(ctx, a.host.Name))
}

// vfs reads the VFs of the chosen pNICs. Before 8.0 their addresses are decimal.
func (a *asking) vfs(ctx context.Context) {
	a.sys.VFs = map[string]backends.Fact[[]backends.VF]{}
	for _, device := range a.o.PNICs[a.host.Name] {
		if n := a.host.NIC(device); n != nil && n.SRIOV != nil && n.SRIOV.VFs > 0 {
			a.vfsOf(ctx, n)
		}
	}
}

func (a *asking) vfsOf(ctx context.Context, n *backends.NIC) {
	rows, err := a.cli.Ask(ctx, a.host.Name, "network sriovnic vf list", esxcli.Arg{Name: "nicname", Text: n.Device})
	list := []backends.VF{}
	for _, r := range rows {
		vf := backends.VF{Active: r["Active"] == "true"}
		if address := scan.PCI(r["PCIAddress"]); address != nil {
			vf.Address = *address
		}
		if id, err := strconv.Atoi(r["VFID"]); err == nil {
			vf.ID = id
			list = append(list, vf)
		}
	}
	a.sys.VFs[n.Device] = backends.ReadFact(list, err)
}

func (a *asking) neighbours(ctx context.Context) {
	a.sys.Neighbours = backends.ReadFact(a.Neighbours(ctx, a.host.Name))
}

func (a *asking) resync(ctx context.Context) {
	a.sys.Resync.State = backends.FactAbsent
	if slices.ContainsFunc(a.host.VMKs, func(v backends.VMKernelNIC) bool { return slices.Contains(v.Roles, "vsan") }) {
		a.sys.Resync = backends.ReadFact(a.Resync(ctx, a.host.Name))
	}
}

// Resync returns the bytes that vSAN has to copy before its objects are complete again, as a host of a vSAN cluster reports it.
func (s *System) Resync(ctx context.Context, host string) (int64, error) {
	row, err := s.row(ctx, host, "vsan debug resync summary get")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(field(row, "Total Bytes Left To Resync"), 10, 64)
}

// bootDevice reads the boot device of hosts that pass a USB controller through.
func (a *asking) bootDevice(ctx context.Context) {
	a.sys.BootDevice.State = backends.FactAbsent
	if !slices.ContainsFunc(a.host.PCI, func(d backends.PCIDevice) bool { return d.Enabled && strings.HasPrefix(d.Class, "0c03") }) {
		return
	}
	rows, err := a.cli.Ask(ctx, a.host.Name, "storage core device list")
	from := "network"
	if i := slices.IndexFunc(rows, func(r esxcli.Row) bool { return field(r, "Is Boot Device") == "true" }); i >= 0 {
		from = "disk"
		if field(rows[i], "Is USB") == "true" { // SD cards are connected through a USB reader too
			from = "usb"
		}
	} else if err == nil && len(rows) == 0 {
		err = errNoAnswer
	}
	a.sys.BootDevice = backends.ReadFact(from, err)
}

// field returns a value by esxcli's label: builds differ in capitalization when they remove the blanks.
func field(row esxcli.Row, label string) string {
	label = strings.ReplaceAll(label, " ", "")
	if v, ok := row[label]; ok {
		return v
	}
	for name, v := range row {
		if strings.EqualFold(name, label) {
			return v
		}
	}
	return ""
}
