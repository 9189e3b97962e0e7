package scan

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// PCI converts a PCI address to "0000:3b:00.1". It accepts 8-digit domains, no domain, upper case, a colon before the function
// and no function (then 0); the decimal form of old ESXi tables is recognized by its 5-digit domain with a 3-digit bus. Nil if s
// is not a PCI address.
func PCI(s string) *string {
	s = strings.Trim(strings.TrimSpace(s), "[](),;'\"")
	if len(s) > 32 {
		return nil
	}
	if len(s) > 4 && strings.EqualFold(s[:4], "pci:") {
		s = s[4:]
	}
	head, function, dotted := strings.Cut(s, ".")
	parts := strings.Split(head, ":")
	if !dotted {
		function = "0"
		if len(parts) == 4 || len(parts) == 3 && len(parts[2]) == 1 && len(parts[0]) <= 2 {
			function, parts = parts[len(parts)-1], parts[:len(parts)-1]
		}
	}
	if len(parts) == 2 {
		parts = append([]string{"0000"}, parts...)
	}
	if len(parts) != 3 {
		return nil
	}
	if len(parts[0]) == 5 && len(parts[1]) == 3 {
		return decimalPCI(parts[0], parts[1], parts[2], function)
	}
	if len(parts[0]) < 1 || len(parts[0]) > 8 || len(parts[1]) < 1 || len(parts[1]) > 2 || len(parts[2]) < 1 || len(parts[2]) > 2 ||
		len(function) != 1 {
		return nil
	}
	if !allHex(parts[0]) || !allHex(parts[1]) || !allHex(parts[2]) || !isDigit(function[0]) {
		return nil
	}
	return pciAddress(parts[0], parts[1], parts[2], function, 16)
}

// DecimalPCI reads "bus:slot.function" or "domain:bus:slot.function" with decimal parts, as vSphere's messages and old
// ESXi tables print it.
func DecimalPCI(s string) *string {
	head, function, _ := strings.Cut(strings.TrimSpace(s), ".")
	if function == "" {
		function = "0"
	}
	parts := strings.Split(head, ":")
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	if len(parts) != 3 {
		return nil
	}
	return decimalPCI(parts[0], parts[1], parts[2], function)
}

func decimalPCI(domain, bus, slot, function string) *string {
	if !allDigits(domain) || !allDigits(bus) || !allDigits(slot) || !allDigits(function) {
		return nil
	}
	return pciAddress(domain, bus, slot, function, 10)
}

func pciAddress(domain, bus, slot, function string, base int) *string {
	d, err1 := strconv.ParseUint(domain, base, 32)
	b, err2 := strconv.ParseUint(bus, base, 8)
	s, err3 := strconv.ParseUint(slot, base, 8)
	f, err4 := strconv.ParseUint(function, base, 8)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || s > 31 || f > 7 {
		return nil
	}
	return new(fmt.Sprintf("%04x:%02x:%02x.%x", d, b, s, f))
}

// HexID converts a PCI id to lower case without 0x: "15b3". Nil if s is not a hexadecimal number of at most 8 digits.
func HexID(s string) *string {
	s = strings.ToLower(strings.TrimSpace(s))
	s = strings.TrimPrefix(s, "0x")
	if len(s) > 8 || !allHex(s) {
		return nil
	}
	return &s
}

// GUID converts a GUID to 16 hex digits, lower case, without separators; nil for anything else.
func GUID(s string) *string {
	s = squeezeHex(s)
	if len(s) != 16 || !allHex(s) {
		return nil
	}
	return &s
}

// MAC converts a MAC to "aa:bb:cc:dd:ee:ff". It also accepts sixteen digits with four leading zeros, as firmware tools print
// them; nil for anything else.
func MAC(s string) *string {
	s = squeezeHex(s)
	if len(s) == 16 && strings.HasPrefix(s, "0000") {
		s = s[4:]
	}
	if len(s) != 12 || !allHex(s) {
		return nil
	}
	return new(s[0:2] + ":" + s[2:4] + ":" + s[4:6] + ":" + s[6:8] + ":" + s[8:10] + ":" + s[10:12])
}

// squeezeHex removes 0x and the separators : - . from a hardware address.
func squeezeHex(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if len(s) > 40 {
		return ""
	}
	s = strings.TrimPrefix(s, "0x")
	if !strings.ContainsAny(s, ":-.") {
		return s
	}
	return separators.Replace(s)
}

var separators = strings.NewReplacer(":", "", "-", "", ".", "")

// GID expands a GID to eight groups of four hex digits, also "::ffff:192.0.2.1"; nil for anything else.
func GID(s string) *string {
	s = strings.Trim(strings.TrimSpace(s), ",;")
	if len(s) < 2 || len(s) > 45 || strings.Count(s, ":") < 2 {
		return nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return nil
	}
	b := a.As16()
	return new(fmt.Sprintf("%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x",
		b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]))
}

// IPv4 reads a dotted address; nil for anything else. Leading zeros are dropped.
func IPv4(s string) *string {
	s = strings.TrimSpace(s)
	if strings.Count(s, ".") != 3 || len(s) > 15 {
		return nil
	}
	parts := strings.Split(s, ".")
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil {
			return nil
		}
		parts[i] = strconv.FormatUint(n, 10)
	}
	return new(strings.Join(parts, "."))
}
