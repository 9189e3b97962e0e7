package linux

import (
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// DriverResult is the text of ethtool -i.
type DriverResult struct {
	scan.Envelope
	Driver                 *string `json:"driver"`
	Version                *string `json:"version"`
	FirmwareVersion        *string `json:"firmware_version"`
	PSID                   *string `json:"psid"` // in brackets after the firmware version
	ExpansionROMVersion    *string `json:"expansion_rom_version"`
	PCIAddress             *string `json:"pci_address"`
	SupportsStatistics     *bool   `json:"supports_statistics"`
	SupportsTest           *bool   `json:"supports_test"`
	SupportsEEPROMAccess   *bool   `json:"supports_eeprom_access"`
	SupportsRegisterDump   *bool   `json:"supports_register_dump"`
	SupportsPrivilegeFlags *bool   `json:"supports_priv_flags"`
}

// codeNoSuchDevice is the error of a network device that does not exist.
const codeNoSuchDevice = "no_such_device"

// driverKeys are the fields of ethtool -i.
var driverKeys = scan.Keys[DriverResult]{
	"driver":  func(r *DriverResult, v string) { scan.Keep(&r.Driver, scan.Str(v)) },
	"version": func(r *DriverResult, v string) { scan.Keep(&r.Version, scan.Str(v)) },
	"firmware version": func(r *DriverResult, v string) {
		version, inside, ok := strings.Cut(v, "(")
		if psid, _, closed := strings.Cut(inside, ")"); ok && closed {
			scan.Keep(&r.PSID, scan.Str(psid))
		}
		scan.Keep(&r.FirmwareVersion, scan.Str(version))
	},
	"expansion rom version":  func(r *DriverResult, v string) { scan.Keep(&r.ExpansionROMVersion, scan.Str(v)) },
	"bus info":               func(r *DriverResult, v string) { scan.Keep(&r.PCIAddress, scan.PCI(v)) },
	"supports statistics":    func(r *DriverResult, v string) { scan.Keep(&r.SupportsStatistics, scan.Bool(v)) },
	"supports test":          func(r *DriverResult, v string) { scan.Keep(&r.SupportsTest, scan.Bool(v)) },
	"supports eeprom access": func(r *DriverResult, v string) { scan.Keep(&r.SupportsEEPROMAccess, scan.Bool(v)) },
	"supports register dump": func(r *DriverResult, v string) { scan.Keep(&r.SupportsRegisterDump, scan.Bool(v)) },
	"supports priv flags":    func(r *DriverResult, v string) { scan.Keep(&r.SupportsPrivilegeFlags, scan.Bool(v)) },
}

// Driver reads the text of ethtool -i.
func Driver(text string) DriverResult {
	var r DriverResult
	r.Envelope, text = scan.Begin("ethtool_i", text)
	noSuchDevice(&r.Envelope, text)
	understood := false
	for p := range scan.AllPairs(text, driverKeys.Known) {
		understood = driverKeys.Set(&r, p.Key, p.Value)
	}
	r.NotUnderstood(understood, text)
	return r
}

func noSuchDevice(e *scan.Envelope, text string) {
	for line := range scan.Lines(text) {
		if lower := strings.ToLower(line); strings.Contains(lower, "no such device") || strings.Contains(lower, "no device matches name") {
			e.Fail(codeNoSuchDevice, line, nil)
			return
		}
	}
}

// CountersResult is the text of ethtool -S.
type CountersResult struct {
	scan.Envelope
	Counters map[string]uint64 `json:"counters"`
}

// Counters parses the text of ethtool -S, also after grep. A counter is a name, a colon and a whole number; a line may contain
// several. Of a repeated name (queues of vmxnet3) the last value counts.
func Counters(text string) CountersResult {
	r := CountersResult{Counters: map[string]uint64{}}
	r.Envelope, text = scan.Begin("ethtool_s", text)
	noSuchDevice(&r.Envelope, text)
	understood := false
	for line := range scan.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := cutHeading(line); ok {
			understood, line = true, rest
		}
		if strings.EqualFold(line, "no stats available") {
			understood = true
		}
		r.counters(line)
	}
	r.NotUnderstood(understood || len(r.Counters) > 0, text)
	return r
}

func cutHeading(line string) (string, bool) {
	const heading = "nic statistics"
	if len(line) < len(heading) || !strings.EqualFold(line[:len(heading)], heading) {
		return line, false
	}
	return strings.TrimLeft(line[len(heading):], ": \t"), true
}

func (r *CountersResult) counters(line string) {
	for line != "" {
		name, value, rest, ok := cutCounter(line)
		if !ok {
			return
		}
		r.Counters[name] = value
		line = rest
	}
}

// cutCounter removes "name: 12" from a line; a name may contain a colon of its own ("[0]: rx_bytes: 12").
func cutCounter(line string) (name string, value uint64, rest string, ok bool) {
	for i := 0; i < len(line) && i < 128; i++ {
		if line[i] != ':' {
			continue
		}
		number := strings.TrimLeft(line[i+1:], " \t")
		end := 0
		for end < len(number) && number[end] >= '0' && number[end] <= '9' {
			end++
		}
		if end == 0 || end < len(number) && number[end] != ' ' && number[end] != '\t' && number[end] != ',' {
			continue
		}
		v, err := strconv.ParseUint(number[:end], 10, 64)
		name = strings.TrimSpace(line[:i])
		if at := strings.LastIndexAny(name, " \t"); at >= 0 && !isCounterName(name) { // a command in front, on one line
			name = name[at+1:]
		}
		if err != nil || !isCounterName(name) {
			return "", 0, "", false
		}
		return name, v, strings.TrimLeft(number[end:], " \t,"), true
	}
	return "", 0, "", false
}

func isCounterName(s string) bool {
	letters := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == ':' && i > 0 && s[i-1] >= '0' && s[i-1] <= '9': // of a time
			return false
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letters = true
		case c >= '0' && c <= '9', strings.IndexByte("_-.[]#:/()+ ", c) >= 0:
		default:
			return false
		}
	}
	return letters
}
