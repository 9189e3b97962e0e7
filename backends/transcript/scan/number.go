package scan

import (
	"strconv"
	"strings"
)

// IsNull recognizes the words that tools print for "nothing": empty, -, N/A, NA.
func IsNull(s string) bool {
	switch s = strings.TrimSpace(s); len(s) {
	case 0:
		return true
	case 1:
		return s == "-"
	case 2:
		return s == "--" || strings.EqualFold(s, "NA")
	case 3:
		return strings.EqualFold(s, "N/A")
	case 5:
		return strings.EqualFold(s, "[N/A]")
	}
	return false
}

// Str returns the trimmed text, nil for the words of IsNull.
func Str(s string) *string {
	s = strings.TrimSpace(s)
	if IsNull(s) {
		return nil
	}
	return &s
}

// Int reads a whole decimal or 0x number; nil for anything else.
func Int(s string) *int64 {
	s = strings.TrimSpace(s)
	base := 10
	digits := s
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		base, digits = 16, s[2:]
	}
	if digits == "" || digits[0] == '+' {
		return nil
	}
	n, err := strconv.ParseInt(digits, base, 64)
	if err != nil {
		return nil
	}
	return &n
}

// LeadingInt reads the whole decimal or 0x number that s starts with ("4096 (5)", "9000[B]", "40537MiB").
func LeadingInt(s string) *int64 {
	s = strings.TrimSpace(s)
	i := 0
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		for i = 2; i < len(s) && isHex(s[i]); i++ {
		}
		return Int(s[:i])
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return Int(s[:i])
}

// Float reads a complete decimal number; nil for anything else (also for inf and nan, which JSON does not support).
func Float(s string) *float64 {
	s = strings.TrimSpace(s)
	if s == "" || !isDigit(s[len(s)-1]) && s[len(s)-1] != '.' || !isDigit(s[0]) && s[0] != '-' && s[0] != '.' {
		return nil
	}
	if strings.ContainsAny(s, "xX_pP") {
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	return &f
}

// LeadingFloat reads the decimal number that s starts with ("2.5 Gbps (1)", "16GT/s").
func LeadingFloat(s string) *float64 {
	s = strings.TrimSpace(s)
	i, dot := 0, false
	if i < len(s) && s[i] == '-' {
		i++
	}
	for i < len(s) && (isDigit(s[i]) || s[i] == '.' && !dot && i+1 < len(s) && isDigit(s[i+1])) {
		dot = dot || s[i] == '.'
		i++
	}
	return Float(s[:i])
}

// Bool reads yes/no, true/false, on/off, enabled/disabled, up/down in any case; nil for other words.
func Bool(s string) *bool {
	var v bool
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "yes", "true", "on", "enabled", "up":
		v = true
	case "no", "false", "off", "disabled", "down":
	default:
		return nil
	}
	return &v
}

// Size reads a size in bytes with a unit that is a power of two: "4K", "32M", "8GB", "128 MiB", "512"; nil for anything else.
func Size(s string) *int64 {
	s = strings.TrimSpace(s)
	i := 0
	for i < len(s) && (isDigit(s[i]) || s[i] == '.') {
		i++
	}
	f := Float(s[:i])
	if f == nil {
		return nil
	}
	unit := strings.ToLower(strings.TrimSpace(s[i:]))
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")
	shift := 10 * strings.Index(" kmgtp", unit)
	if unit == "" {
		shift = 0
	}
	if shift < 0 || len(unit) > 1 || *f < 0 || *f*float64(uint64(1)<<shift) >= 1<<62 {
		return nil
	}
	return new(int64(*f * float64(uint64(1)<<shift)))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func allHex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == "" }
