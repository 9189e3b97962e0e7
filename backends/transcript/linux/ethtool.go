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

var driverKeys = map[string]bool{"driver": true, "version": true, "firmware version": true, "expansion rom version": true, "bus info": true,
	"supports statistics": true, "supports test": true, "supports eeprom access": true, "supports register dump": true,
	"supports priv flags": true}

// Driver reads the text of ethtool -i.
func Driver(text string) DriverResult {
	var r DriverResult
	r.Envelope, text = scan.Begin("ethtool_i", text)
	noSuchDevice(&r.Envelope, text)
	understood := false
	for p := range scan.AllPairs(text, func(key string) bool { return driverKeys[key] }) {
		understood = true
		switch p.Key {
		case "driver":
			set(&r.Driver, scan.Str(p.Value))
		case "version":
			set(&r.Version, scan.Str(p.Value))
		case "firmware version":
			version, inside, ok := strings.Cut(p.Value, "(")
			if psid, _, closed := strings.Cut(inside, ")"); ok && closed {
				set(&r.PSID, scan.Str(psid))
			}
			set(&r.FirmwareVersion, scan.Str(version))
		case "expansion rom version":
			set(&r.ExpansionROMVersion, scan.Str(p.Value))
		case "bus info":
			set(&r.PCIAddress, scan.PCI(p.Value))
		case "supports statistics":
			set(&r.SupportsStatistics, scan.Bool(p.Value))
		case "supports test":
			set(&r.SupportsTest, scan.Bool(p.Value))
		case "supports eeprom access":
			set(&r.SupportsEEPROMAccess, scan.Bool(p.Value))
		case "supports register dump":
			set(&r.SupportsRegisterDump, scan.Bool(p.Value))
		case "supports priv flags":
			set(&r.SupportsPrivilegeFlags, scan.Bool(p.Value))
		}
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
