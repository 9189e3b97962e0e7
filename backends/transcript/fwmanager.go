package transcript

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// FWInventory is the output of mlxfwmanager (mlxup, mstfwmanager): the devices, and the updates it made.
type FWInventory struct {
	scan.Envelope
	Devices         []FWDevice `json:"devices"`
	Updates         []FWUpdate `json:"updates"`
	RestartRequired bool       `json:"restart_required"`
	LogFile         *string    `json:"log_file"`
}

// FWDevice is one device that mlxfwmanager found.
type FWDevice struct {
	Index       *int64        `json:"index"` // nil when the head of the text is cut
	DeviceType  *string       `json:"device_type"`
	PartNumber  *string       `json:"part_number"`
	Description *string       `json:"description"`
	PSID        *string       `json:"psid"`
	PCIDevice   *string       `json:"pci_device"` // as printed
	PCIAddress  *string       `json:"pci_address"`
	BaseGUID    *string       `json:"base_guid"`
	BaseMAC     *string       `json:"base_mac"`
	Ports       []FWPort      `json:"ports"` // only for ConnectX-3 and older
	Versions    []FWComponent `json:"versions"`
	FWCurrent   *string       `json:"fw_current"`
	FWAvailable *string       `json:"fw_available"`
	FWRunning   *string       `json:"fw_running"` // only if it differs from the stored one
	Status      *string       `json:"status"`     // as printed
}

// FWPort contains the addresses of a port.
type FWPort struct {
	Port int64   `json:"port"`
	GUID *string `json:"guid"`
	MAC  *string `json:"mac"`
}

// FWComponent is a part of the firmware: FW, PXE, UEFI.
type FWComponent struct {
	Name      string  `json:"name"`
	Current   *string `json:"current"`
	Available *string `json:"available"`
}

// FWUpdate is an update of the device with that index.
type FWUpdate struct {
	Index int64 `json:"index"`
	OK    bool  `json:"ok"`
}

var (
	updating    = regexp.MustCompile(`^Device\s+#([0-9]+)\s*:\s*Updating`)
	done        = regexp.MustCompile(`\bDone\b`)
	failing     = regexp.MustCompile(`\bFail(?:ed)?\s*:\s*(\S.*)`)
	versionWord = regexp.MustCompile(`^(?:[0-9]+(?:\.[0-9A-Za-z]+)+|N/A|NA|--?)$`)
	portLabel   = regexp.MustCompile(`^Port([1-8]) (GUID|MAC)$`)
)

func managerLabels() scan.Labels {
	names := []string{"Device Type", "Part Number", "Description", "PSID", "PCI Device Name", "Base GUID", "Base MAC",
		"Versions", "Status", "Log File"}
	for port := 1; port <= 8; port++ {
		names = append(names, fmt.Sprintf("Port%d GUID", port), fmt.Sprintf("Port%d MAC", port))
	}
	return scan.Named(names...)
}

// MLXFWManager reads "mlxfwmanager".
func MLXFWManager(text string) FWInventory {
	r := FWInventory{Devices: []FWDevice{}, Updates: []FWUpdate{}}
	r.Envelope, text = scan.Begin("mlxfwmanager", text)
	p := managerReader{inventory: &r}
	for f := range managerLabels().Fields(withoutRefusals(text, p.refuse)) {
		p.field(f)
	}
	p.closeDevice()
	r.NotUnderstood(p.understood || len(r.Devices) > 0 || len(r.Updates) > 0 || r.RestartRequired, text)
	return r
}

type managerReader struct {
	inventory  *FWInventory
	device     *FWDevice
	updating   bool
	wrapped    **string // the value that the next line may continue
	understood bool
}

func (p *managerReader) closeDevice() {
	if p.device == nil {
		return
	}
	d := p.device
	for _, v := range d.Versions {
		switch {
		case v.Name == "FW" && d.FWCurrent == nil:
			d.FWCurrent, d.FWAvailable = v.Current, v.Available
		case v.Name == "FW (Running)" && d.FWRunning == nil:
			d.FWRunning = v.Current
		}
	}
	d.PCIAddress = pciOf(d.PCIDevice)
	p.inventory.Devices = append(p.inventory.Devices, *d)
	p.device = nil
}

func (p *managerReader) field(f scan.Field) {
	wrapped := p.wrapped
	p.wrapped = nil
	if f.Label == "" {
		p.text(f, wrapped)
		return
	}
	if f.Label == "Log File" {
		if p.inventory.LogFile == nil {
			p.inventory.LogFile = scan.Str(f.Text)
		}
		return
	}
	if p.device == nil {
		p.device = &FWDevice{Ports: []FWPort{}, Versions: []FWComponent{}}
	}
	d := p.device
	set := func(value **string) {
		if *value == nil {
			*value = scan.Str(f.Text)
			p.wrapped = value
		}
	}
	switch f.Label {
	case "Device Type":
		set(&d.DeviceType)
	case "Part Number":
		set(&d.PartNumber)
	case "Description":
		set(&d.Description)
	case "PSID":
		set(&d.PSID)
	case "PCI Device Name":
		set(&d.PCIDevice)
	case "Base GUID":
		d.BaseGUID = scan.GUID(f.Text)
	case "Base MAC":
		d.BaseMAC = scan.MAC(f.Text)
	case "Versions": // the titles of the columns
	case "Status":
		if d.Status == nil {
			d.Status = scan.Str(f.Text)
		}
	default:
		d.port(f)
	}
}

// text reads text without labels: headings of devices, rows of versions, updates, messages.
func (p *managerReader) text(f scan.Field, wrapped **string) {
	r := p.inventory
	if m := updating.FindStringSubmatch(f.Text); m != nil {
		p.closeDevice()
		if index := scan.Int(m[1]); index != nil {
			r.Updates = append(r.Updates, FWUpdate{Index: *index, OK: done.MatchString(f.Text)})
			p.updating = true
			p.failed(f.Text)
		}
		return
	}
	if m := deviceHead.FindStringSubmatch(f.Text); m != nil && m[2] == "" {
		p.closeDevice()
		p.updating = false
		p.device = &FWDevice{Index: scan.Int(m[1]), Ports: []FWPort{}, Versions: []FWComponent{}}
		return
	}
	lower := strings.ToLower(f.Text)
	switch {
	case strings.Contains(lower, "no devices found"):
		r.Fail(scan.CodeNoDevices, f.Text, nil)
	case strings.Contains(lower, "restart needed"):
		r.RestartRequired, p.updating = true, false
	case strings.Contains(lower, "querying") && strings.Contains(lower, "devices firmware"), strings.Contains(lower, "all listed device"):
		p.understood = true
	case p.failed(f.Text):
	case p.updating && done.MatchString(f.Text):
		r.Updates[len(r.Updates)-1].OK, p.updating = true, false
	case p.device != nil && p.device.component(f.Text):
	case wrapped != nil && *wrapped != nil && f.Plain():
		*wrapped, p.wrapped = new(**wrapped+" "+f.Text), wrapped
	}
}

// failed records why an update failed and reports whether the text says so.
func (p *managerReader) failed(text string) bool {
	m := failing.FindStringSubmatch(text)
	if m == nil || !p.updating {
		return false
	}
	p.inventory.Fail(CodeFailed, m[1], nil)
	return true
}

// refuse records a line with which the tool fails; the status of a device that could not be opened is one, but is kept.
func (p *managerReader) refuse(line string) bool {
	r := p.inventory
	if strings.Contains(strings.ToLower(line), "no devices found") {
		r.Fail(scan.CodeNoDevices, line[len(marked.FindString(line)):], nil)
		return true
	}
	code, words := refusal(line)
	if code != "" {
		r.Fail(CodeCannotOpen, words, nil)
	}
	return strings.HasPrefix(strings.TrimSpace(line), "-E-")
}

func (d *FWDevice) port(f scan.Field) {
	m := portLabel.FindStringSubmatch(f.Label)
	if m == nil {
		return
	}
	number := int64(m[1][0] - '0')
	if n := len(d.Ports); n == 0 || d.Ports[n-1].Port != number {
		d.Ports = append(d.Ports, FWPort{Port: number})
	}
	port := &d.Ports[len(d.Ports)-1]
	if m[2] == "GUID" {
		port.GUID = scan.GUID(f.Text)
	} else {
		port.MAC = scan.MAC(f.Text)
	}
}

// component reads "FW (Running)  24.31.2040  N/A"; a row may contain only one version.
func (d *FWDevice) component(text string) bool {
	words := strings.Fields(text)
	name := 0
	for name < len(words) && !versionWord.MatchString(words[name]) {
		name++
	}
	versions := words[name:]
	if name == 0 || name > 5 || len(versions) == 0 || len(versions) > 2 || !versionWord.MatchString(versions[len(versions)-1]) {
		return false
	}
	c := FWComponent{Name: strings.Join(words[:name], " "), Current: scan.Str(versions[0])}
	if len(versions) == 2 {
		c.Available = scan.Str(versions[1])
	}
	d.Versions = append(d.Versions, c)
	return true
}
