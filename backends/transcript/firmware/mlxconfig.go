package firmware

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Config is what mlxconfig (mstconfig) prints for a query or a set of one device. Of several devices the first is read.
type Config struct {
	scan.Envelope
	Action         *string `json:"action"` // query or set, nil on an error
	Device         *string `json:"device"` // as printed: PCI address, mst device or RDMA device
	PCIAddress     *string `json:"pci_address"`
	DeviceType     *string `json:"device_type"`
	Name           *string `json:"name"`
	Description    *string `json:"description"`
	Params         []Param `json:"params"`
	Applied        bool    `json:"applied"`
	RebootRequired bool    `json:"reboot_required"`
	SRIOVEnabled   *bool   `json:"sriov_enabled"` // these four: New, else Next Boot, else Current
	NumOfVFs       *int64  `json:"num_of_vfs"`
	LinkTypeP1     *string `json:"link_type_p1"` // IB, ETH, VPI
	LinkTypeP2     *string `json:"link_type_p2"`
}

// Param is a parameter with its values as printed ("True(1)", "8", "ETH(2)"); nil for columns that are not.
type Param struct {
	Name     string  `json:"name"`
	Default  *string `json:"default"`
	Current  *string `json:"current"`
	NextBoot *string `json:"next_boot"`
	New      *string `json:"new"`
	Changed  bool    `json:"changed"` // marked with *
}

// CodeUnknownParameter is the error of MLXConfig for a parameter that the device or the tool does not know.
const CodeUnknownParameter = "unknown_parameter"

var (
	deviceHead   = regexp.MustCompile(`^Device\s+#([0-9]+)\s*:?[ \t-]*(.*)$`)
	paramRow     = regexp.MustCompile(`^(\*)?[ \t]*(?:RO[ \t]+)?([A-Z][A-Z0-9_]+)[ \t]+(\S.*)$`)
	paramName    = regexp.MustCompile(`^\*?[A-Z][A-Z0-9]*_[A-Z0-9_]+$`)
	columnTitle  = regexp.MustCompile(`(?i)^(?:default|current|next[ \t]+boot|new)(?:[ \t]+|$)`)
	unknownParam = regexp.MustCompile(`(?i)unknown param|failed to find param|(?:doesn't|does not) support .*param|parameter .*(?:not supported|not found|unknown|does not exist|invalid)|(?:not a valid|invalid|no such) param`)
	applied      = regexp.MustCompile(`Applying\s*\.\.\.\s*Done`)
)

// MLXConfig reads "mlxconfig -d DEVICE query" and "mlxconfig -d DEVICE set".
func MLXConfig(text string) Config {
	c := Config{Params: []Param{}}
	c.Envelope, text = scan.Begin("mlxconfig", text)
	p := configReader{config: &c}
	body := withoutRefusals(text, c.refuse)
	for f := range scan.NewLabels("Device type", "Name", "Description", "Device", "Configurations").Fields(body) {
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

// refuse notes a line with which the tool gives up.
func (c *Config) refuse(line string) bool {
	code, words := refusal(line)
	if code == "" && strings.Contains(strings.ToLower(line), "param") && unknownParam.MatchString(line) {
		code, words = CodeUnknownParameter, line[len(marked.FindString(line)):]
	}
	if code != "" {
		c.Fail(code, words, nil)
	}
	return code != "" || strings.HasPrefix(strings.TrimSpace(line), "-E-")
}

type configReader struct {
	config  *Config
	columns []string // titles of the heading, in lower case
	headed  bool
	set     bool     // the heading has a column New
	index   string   // of the device, "" before its head
	wrapped **string // the value that the next line may go on with
}

// field takes the next piece of the text; false ends the reading.
func (p *configReader) field(f scan.Field) bool {
	c := p.config
	wrapped := p.wrapped
	p.wrapped = nil
	first := func(value **string) {
		if *value == nil {
			*value = scan.Str(f.Text)
			p.wrapped = value
		}
	}
	switch f.Label {
	case "Device type":
		first(&c.DeviceType)
	case "Name":
		first(&c.Name)
	case "Description":
		first(&c.Description)
	case "Device":
		first(&c.Device)
	case "Configurations":
		p.headed, p.columns = true, nil
		p.rows(p.heading(f.Text))
	default:
		if m := deviceHead.FindStringSubmatch(f.Text); m != nil {
			if p.index != "" && p.index != m[1] {
				return false
			}
			p.index = m[1]
			return true
		}
		if rest := p.heading(f.Text); rest == "" && f.Text != "" {
			p.headed = true
			return true
		}
		if p.row(f.Text) || wrapped == nil || *wrapped == nil || !f.Plain() {
			return true
		}
		whole := **wrapped + " " + f.Text
		*wrapped, p.wrapped = &whole, wrapped
	}
	return true
}

// heading reads the titles that a text begins with and returns the rest.
func (p *configReader) heading(text string) string {
	var columns []string
	for {
		title := columnTitle.FindString(text)
		if title == "" {
			break
		}
		columns = append(columns, scan.Key(scan.Squeeze(title)))
		text = text[len(title):]
	}
	if len(columns) > 0 && (text == "" || p.columns == nil) {
		p.columns = columns
		for _, title := range columns {
			p.set = p.set || title == "new"
		}
	}
	return text
}

// rows reads parameters that stand behind one another on one line.
func (p *configReader) rows(text string) {
	words := strings.Fields(text)
	for i := 0; i < len(words); {
		end := i + 1
		for end < len(words) && !paramName.MatchString(words[end]) && words[end] != "*" {
			end++
		}
		p.row(strings.Join(words[i:end], " "))
		i = end
	}
}

// row reads "SRIOV_EN  False(0)  True(1)".
func (p *configReader) row(line string) bool {
	m := paramRow.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	columns := p.columns
	values := p.values(m[3], len(columns))
	if len(columns) == 0 {
		switch len(values) {
		case 1:
			columns = []string{"next boot"}
		case 2:
			columns = []string{"next boot", "new"}
		default:
			columns = []string{"default", "current", "next boot", "new"}
		}
	}
	if len(values) > len(columns) || !strings.Contains(m[2], "_") && (!p.headed || len(values) != len(columns)) {
		return false
	}
	param := Param{Name: m[2], Changed: m[1] != ""}
	for i, value := range values {
		value := scan.Str(value)
		switch columns[i] {
		case "default":
			param.Default = value
		case "current":
			param.Current = value
		case "next boot":
			param.NextBoot = value
		case "new":
			param.New = value
		}
	}
	p.config.Params = append(p.config.Params, param)
	return true
}

// values splits the values of a row: by words, or by wide gaps where that fits the heading better.
func (p *configReader) values(text string, columns int) []string {
	words := strings.Fields(text)
	if columns > 0 && len(words) > columns {
		if wide := scan.Cells(text); len(wide) == columns {
			return wide
		}
	}
	if len(words) < columns { // "ETH(2)IB(1)"
		if apart := strings.Fields(strings.ReplaceAll(text, ")", ") ")); len(apart) == columns {
			return apart
		}
	}
	return words
}

func (c *Config) convenience() {
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
