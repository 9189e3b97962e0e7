package transcript

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// FWConfig is what mlxconfig (mstconfig) prints for a query or a set of one device. Of several devices the first is read.
type FWConfig struct {
	scan.Envelope
	Action         *string   `json:"action"` // query or set, nil on an error
	Device         *string   `json:"device"` // as printed: PCI address, mst device or RDMA device
	PCIAddress     *string   `json:"pci_address"`
	DeviceType     *string   `json:"device_type"`
	Name           *string   `json:"name"`
	Description    *string   `json:"description"`
	Params         []FWParam `json:"params"`
	Applied        bool      `json:"applied"`
	RebootRequired bool      `json:"reboot_required"`
	SRIOVEnabled   *bool     `json:"sriov_enabled"` // these four: New, else Next Boot, else Current
	NumOfVFs       *int64    `json:"num_of_vfs"`
	LinkTypeP1     *string   `json:"link_type_p1"` // IB, ETH, VPI
	LinkTypeP2     *string   `json:"link_type_p2"`
}

// FWParam is a parameter with its values as printed ("True(1)", "8", "ETH(2)"); nil for columns that are not.
type FWParam struct {
	Name     string  `json:"name"`
	Default  *string `json:"default"`
	Current  *string `json:"current"`
	NextBoot *string `json:"next_boot"`
	New      *string `json:"new"`
	Changed  bool    `json:"changed"` // marked with *
}

// CodeUnknownParameter is the error of MLXConfig for a parameter that the device or the tool does not have.
const CodeUnknownParameter = "unknown_parameter"

var (
	deviceHead   = regexp.MustCompile(`^Device\s+#([0-9]+)\s*:?[ \t-]*(.*)$`)
	paramRow     = regexp.MustCompile(`^(\*)?[ \t]*(?:RO[ \t]+)?([A-Z][A-Z0-9_]+)[ \t]+(\S.*)$`)
	paramName    = regexp.MustCompile(`^\*?[A-Z][A-Z0-9]*_[A-Z0-9_]+$`)
	wholeValue   = regexp.MustCompile(`^(?:[\w.-]*\([0-9]+\)|[0-9]+|0x[0-9A-Fa-f]+|Array\[[0-9.]+\]|N/A)$`)
	columnTitle  = regexp.MustCompile(`(?i)^(?:default|current|next[ \t]+boot|new)(?:[ \t]+|$)`)
	unknownParam = regexp.MustCompile(`(?i)unknown param|failed to find param|(?:doesn't|does not) support .*\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|` +
		`(?:doesn't|does not) support .*param|parameter .*(?:not supported|not found|unknown|does not exist|invalid)|(?:not a valid|invalid|no such) param`)
	applied = regexp.MustCompile(`Applying\s*\.\.\.\s*Done`)
)

// MLXConfig reads "mlxconfig -d DEVICE query" and "mlxconfig -d DEVICE set".
func MLXConfig(text string) FWConfig {
	c := FWConfig{Params: []FWParam{}}
	c.Envelope, text = scan.Begin("mlxconfig", text)
	p := configReader{config: &c}
	body := withoutRefusals(text, c.refuse)
	for f := range scan.Named("Device type", "Name", "Description", "Device", "PCI device", "Configurations").Fields(body) {
		if !p.field(f) {
			break
		}
	}
	c.PCIAddress = pciOf(c.Device)
	c.Applied = applied.MatchString(text)
	c.RebootRequired = strings.Contains(text, "Please reboot machine") || strings.Contains(text, "Please power cycle machine")
	c.convenience()
	understood := p.headed || len(c.Params) > 0 || c.DeviceType != nil || strings.Contains(text, "Applying...")
	c.NotUnderstood(understood, text)
	if !c.Failed() {
		action := "query"
		if p.set || strings.Contains(text, "Apply new Configuration") || strings.Contains(text, "Applying...") {
			action = "set"
		}
		c.Action = &action
	}
	return c
}

// refuse records a line with which the tool fails.
func (c *FWConfig) refuse(line string) bool {
	code, words := refusal(line)
	if lower := strings.ToLower(line); code == "" && (strings.Contains(lower, "param") || strings.Contains(lower, "support")) &&
		unknownParam.MatchString(line) {
		code, words = CodeUnknownParameter, line[len(marked.FindString(line)):]
	}
	if code != "" {
		c.Fail(code, words, nil)
	}
	return code != "" || strings.HasPrefix(strings.TrimSpace(line), "-E-")
}

func (c *FWConfig) convenience() {
	for _, p := range c.Params {
		value := p.New
		for _, other := range []*string{p.NextBoot, p.Current} {
			if value == nil {
				value = other
			}
		}
		if value == nil {
			continue
		}
		word, _, _ := strings.Cut(*value, "(")
		switch p.Name {
		case "SRIOV_EN":
			on := word == "1"
			if c.SRIOVEnabled = scan.Bool(word); c.SRIOVEnabled == nil && (on || word == "0") {
				c.SRIOVEnabled = &on
			}
		case "NUM_OF_VFS":
			c.NumOfVFs = scan.LeadingInt(word)
		case "LINK_TYPE_P1":
			c.LinkTypeP1 = linkType(word)
		case "LINK_TYPE_P2":
			c.LinkTypeP2 = linkType(word)
		}
	}
}

// linkType names the numbers that some versions print bare.
func linkType(word string) *string {
	if name, ok := map[string]string{"1": "IB", "2": "ETH", "3": "VPI"}[word]; ok {
		return &name
	}
	return scan.Str(word)
}

func pciOf(device *string) *string {
	if device == nil {
		return nil
	}
	return scan.PCI(*device)
}

// mstflint prints the rows "Link Speed Active (Enabled) : 8G-Gen 3 (16G-Gen 4)" and "Link Width Active (Enabled) : 8X (16X)"; the
// maximum of the link is in brackets (mstflint, mlxlink_commander.cpp, showPcieLinks).
var (
	linkGen   = regexp.MustCompile(`(?mi)^\s*Link Speed Active[^:\n]*:\s*[\d.]+G-Gen\s*(\d)\b`)
	linkLanes = regexp.MustCompile(`(?mi)^\s*Link Width Active[^:\n]*:\s*(\d{1,2})X\b`)
)

// PCIeLink parses "mlxlink --port_type PCIE": generation and lanes of the active link; 0 if a row is missing.
func PCIeLink(text string) (gen, lanes int) {
	number := func(row *regexp.Regexp) int {
		if m := row.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1]) // one or two digits
			return n
		}
		return 0
	}
	return number(linkGen), number(linkLanes)
}
