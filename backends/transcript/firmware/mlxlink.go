package firmware

import (
	"regexp"
	"strconv"
)

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
