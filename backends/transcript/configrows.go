package transcript

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// configReader parses the text of mlxconfig.
type configReader struct {
	config  *FWConfig
	columns []string // titles of the heading, in lower case
	headed  bool
	set     bool     // the heading has a column New
	index   string   // of the device, "" before its head
	short   string   // a row with fewer values than the heading has columns
	wrapped **string // the value that the next line may continue
}

// field handles the next piece of the text; false ends the reading.
func (p *configReader) field(f scan.Field) bool {
	c := p.config
	wrapped, short := p.wrapped, p.short
	p.wrapped, p.short = nil, ""
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
	case "Device", "PCI device": // of ConnectX-3
		first(&c.Device)
	case "Configurations":
		p.headed, p.columns = true, nil
		p.heading(f.Text)
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
		if short != "" && p.rest(short, f.Text) {
			return true
		}
		if p.row(f.Text) || wrapped == nil || *wrapped == nil || !f.Plain() {
			return true
		}
		*wrapped, p.wrapped = new(**wrapped+" "+f.Text), wrapped
	}
	return true
}

// rest reads a line with the values that the previous row lacks.
func (p *configReader) rest(short, text string) bool {
	for _, word := range strings.Fields(text) {
		if !wholeValue.MatchString(word) {
			return false
		}
	}
	params := p.config.Params
	if n := len(params); n > 0 && strings.ContainsAny(short, " \t") && strings.Contains(short, params[n-1].Name) {
		p.config.Params = params[:n-1]
	}
	if p.row(short + " " + text) {
		return true
	}
	p.config.Params = params
	return false
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
		if len(p.config.Params) == 0 && len(p.columns) > 0 && !slices.Contains(p.columns, columns[0]) { // a wrapped heading
			columns = append(p.columns, columns...)
		}
		p.columns = columns
		for _, title := range columns {
			p.set = p.set || title == "new"
		}
	}
	return text
}

// row reads "SRIOV_EN  False(0)  True(1)".
func (p *configReader) row(line string) bool {
	m := paramRow.FindStringSubmatch(line)
	if m == nil {
		if paramName.MatchString(line) && len(p.columns) > 0 {
			p.short = line
		}
		return false
	}
	columns := p.columns
	values := p.values(m[3], len(columns))
	if len(values) < len(columns) {
		p.short = line
	}
	if !p.headed && len(m[2]) < 5 && !wholeValue.MatchString(scan.Word(m[3])) { // long noise contains short matches
		return false
	}
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
	param := FWParam{Name: m[2], Changed: m[1] != ""}
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

// wideGap separates values that hold blanks themselves.
var wideGap = regexp.MustCompile(`\t+| {2,}`)

// values splits the values of a row: by words, or by wide gaps if that fits the heading better.
func (p *configReader) values(text string, columns int) []string {
	words := strings.Fields(text)
	if columns > 0 && len(words) > columns {
		if wide := wideGap.Split(strings.TrimSpace(text), -1); len(wide) == columns {
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
