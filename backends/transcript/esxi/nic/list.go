// Package nic parses ESXi's output about physical NICs, their virtual functions and RDMA devices, and about vmknics.
package nic

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// NICs is a table of physical NICs.
type NICs struct {
	scan.Envelope
	NICs []NIC `json:"nics"`
}

// NIC is one pNIC. Fields that the table does not have are nil.
type NIC struct {
	Name        string  `json:"name"`
	PCIAddress  *string `json:"pci_address"`
	Driver      *string `json:"driver"`
	AdminUp     *bool   `json:"admin_up"` // only in esxcli network nic list
	LinkUp      *bool   `json:"link_up"`
	SpeedMbps   *int64  `json:"speed_mbps"` // as printed, also when the link is down
	FullDuplex  *bool   `json:"full_duplex"`
	MAC         *string `json:"mac"`
	MTU         *int64  `json:"mtu"`
	Description *string `json:"description"`
}

// List reads "esxcli network nic list".
func List(text string) NICs { return table("esxcli_network_nic_list", text) }

// SRIOVList reads "esxcli network sriovnic list".
func SRIOVList(text string) NICs { return table("esxcli_network_sriovnic_list", text) }

// CfgList reads "esxcfg-nics -l".
func CfgList(text string) NICs { return table("esxcfg_nics", text) }

var (
	pciWord = regexp.MustCompile(`[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]`)
	macWord = regexp.MustCompile(`^(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$`)
	// nicStart is the start of a row in a text without line breaks.
	nicStart = regexp.MustCompile(`\b(?:vmnic|vusb)[0-9]+\s`)
	// gluedLink is the link state directly after a driver name that fills its column.
	gluedLink = regexp.MustCompile(`(?:Up|Down)$`)
	nicName   = regexp.MustCompile(`^(?:vmnic|vusb|vmrdma|vmk)[0-9]+$`)
)

func table(tool, text string) NICs {
	r := NICs{NICs: []NIC{}}
	r.Envelope, text = scan.Begin(tool, text)
	text = scan.Unfold(text, nicStart)
	var (
		header  *scan.Header
		heading bool
		begun   string // a row that is wrapped
		behind  bool   // the previous line belongs to the last row
		more    wrapped
	)
	flush := func() {
		n, ok := row(begun, header, false)
		if !ok {
			n, ok = rowByHeader(begun, header, true)
		}
		if ok {
			r.NICs = append(r.NICs, n)
		}
		begun = ""
	}
	for line := range scan.Lines(text) {
		line = strings.TrimLeft(line, " \t")
		if h := listHeader(line); h != nil {
			header, heading = h, true
			continue
		}
		if len(r.NICs) == 0 && header != nil && wrappedTitles.MatchString(line) {
			header, more.sure = nil, true
			continue
		}
		if header != nil && header.Rule(line) {
			continue
		}
		first, _, _ := strings.Cut(line, " ")
		first, _, _ = strings.Cut(first, "\t")
		starts := isName(first)
		if starts && begun != "" {
			flush()
		}
		switch {
		case line == "":
			flush()
			behind = false
			continue
		case begun != "" && len(begun) < 512:
			line = begun + " " + line
		case !starts:
			if behind && !scan.IsRule(line) && !scan.IsGap(line) {
				more.add(len(r.NICs)-1, line)
			}
			continue
		}
		if n, ok := row(line, header, true); ok {
			r.NICs = append(r.NICs, n)
			begun, behind = "", true
		} else if n, ok := rowByHeader(line, header, starts); ok && n.MTU != nil { // complete, without a MAC
			r.NICs = append(r.NICs, n)
			begun, behind = "", true
		} else if starts || begun != "" {
			begun = line
		}
	}
	flush()
	more.give(len(r.NICs), func(row int) **string { return &r.NICs[row].Description })
	r.NotUnderstood(heading || len(r.NICs) > 0, text)
	return r
}

// isName reports whether a row may begin with the word: a NIC's name, possibly followed directly by its PCI address.
func isName(word string) bool {
	if at := pciWord.FindStringIndex(word); at != nil && at[0] > 0 {
		word = word[:at[0]]
	}
	return nicName.MatchString(word)
}

func listHeader(line string) *scan.Header {
	if len(line) < 4 || !strings.EqualFold(line[:4], "name") {
		return nil
	}
	return scan.NewHeader(line, 4, "Name", "PCI Device", "PCI", "Driver", "Admin Status", "Link Status", "Link", "Speed",
		"Duplex", "MAC Address", "MTU", "Description")
}

// row splits a row from its MAC outwards: no other column can be mistaken for it, and an empty driver, or joined or shifted
// columns do no harm. A complete row must continue after the MAC.
func row(line string, h *scan.Header, complete bool) (NIC, bool) {
	at := macIn(line)
	if at == nil {
		return NIC{}, false
	}
	left, right := line[:at[0]], strings.TrimLeft(line[at[1]:], " \t")
	n := NIC{MAC: scan.MAC(line[at[0]:at[1]])}
	if pci := pciWord.FindStringIndex(left); pci != nil {
		n.PCIAddress = scan.PCI(left[pci[0]:pci[1]])
		left = left[:pci[0]] + " " + left[pci[1]:]
	}
	words := strings.Fields(strings.ReplaceAll(left, "Mbps", "Mbps "))
	if len(words) == 0 || !isName(words[0]) {
		return NIC{}, false
	}
	n.Name = words[0]
	n.state(words[1:])
	if h == nil || h.Has("MTU") {
		digits := len(right) - len(strings.TrimLeft(right, "0123456789"))
		switch n.MTU = scan.Int(right[:digits]); {
		case n.MTU != nil:
			right = right[digits:]
		case scan.IsNull(strings.SplitN(right, " ", 2)[0]) && right != "":
			_, right, _ = strings.Cut(right, " ")
		case right != "" || complete:
			return NIC{}, false
		}
	}
	n.Description = scan.Str(right)
	return n, true
}

// state reads the words between name and MAC from the right: duplex, speed, link, admin, driver.
func (n *NIC) state(words []string) {
	pop := func() string {
		w := words[len(words)-1]
		words = words[:len(words)-1]
		return w
	}
	if len(words) > 0 && scan.LeadingInt(words[len(words)-1]) == nil && scan.Bool(words[len(words)-1]) == nil {
		n.FullDuplex = duplex(pop())
	}
	if len(words) > 0 {
		if s := scan.LeadingInt(words[len(words)-1]); s != nil {
			n.SpeedMbps = s
			pop()
		} else if len(words) > 1 && scan.IsNull(words[len(words)-1]) {
			pop()
		}
	}
	for _, up := range []**bool{&n.LinkUp, &n.AdminUp} {
		if len(words) > 0 && scan.Bool(words[len(words)-1]) != nil {
			*up = scan.Bool(pop())
		}
	}
	if len(words) == 0 || n.PCIAddress == nil && len(words) == 1 && n.LinkUp != nil && strings.EqualFold(words[0], "Pseudo") {
		return
	}
	driver := words[len(words)-1]
	if at := gluedLink.FindStringIndex(driver); n.LinkUp == nil && at != nil {
		n.LinkUp = scan.Bool(driver[at[0]:])
		driver = driver[:at[0]]
	}
	n.Driver = scan.Str(driver)
}

func duplex(word string) *bool {
	full := strings.EqualFold(word, "Full")
	if !full && !strings.EqualFold(word, "Half") {
		return nil
	}
	return &full
}

// macIn finds a MAC and returns where it begins and ends.
func macIn(line string) []int {
	const width = len("0c:42:a1:aa:bb:cd")
	for i := 2; i+width-2 <= len(line); i++ {
		if line[i] != ':' || line[i+3] != ':' || line[i+12] != ':' {
			continue
		}
		if at := i - 2; macWord.MatchString(line[at : at+width]) {
			return []int{at, at + width}
		}
	}
	return nil
}

// rowByHeader reads a row without a MAC by the columns of the heading; it returns false if the line does not begin a row.
func rowByHeader(line string, h *scan.Header, starts bool) (NIC, bool) {
	if h == nil || line == "" || !starts {
		return NIC{}, false
	}
	c := h.Words(line)
	link := c.At("Link Status")
	if link == "" {
		link = c.At("Link")
	}
	pci := c.At("PCI Device")
	if pci == "" {
		pci = c.At("PCI")
	}
	n := NIC{
		Name: c.At("Name"), PCIAddress: scan.PCI(pci), Driver: scan.Str(c.At("Driver")),
		AdminUp: scan.Bool(c.At("Admin Status")), LinkUp: scan.Bool(link), SpeedMbps: scan.LeadingInt(c.At("Speed")),
		FullDuplex: duplex(c.At("Duplex")), MAC: scan.MAC(c.At("MAC Address")), MTU: scan.Int(c.At("MTU")),
		Description: scan.Str(c.At("Description")),
	}
	return n, nicName.MatchString(n.Name) && (n.PCIAddress != nil || n.LinkUp != nil || n.MTU != nil)
}
