package switches

import (
	"fmt"
	"regexp"
)

// spellings describes how each system names its ports. The captured part is what its commands accept.
var spellings = map[OS]struct {
	form    *regexp.Regexp
	prefix  string
	example string
}{
	Onyx:    {regexp.MustCompile(`^(?i:eth(?:ernet)?[ ]?)?([0-9]{1,2}/[0-9]{1,3}(?:/[0-9])?)$`), "", "1/7, as LLDP tells it Eth1/7"},
	Cumulus: {regexp.MustCompile(`^(?i:swp)([0-9]{1,3}(?:s[0-7])?)$`), "swp", "swp7 or swp7s0"},
	OS10:    {regexp.MustCompile(`^(?i:eth(?:ernet)?[ ]?)([0-9]{1,2}/[0-9]{1,2}/[0-9]{1,3}(?::[0-9])?)$`), "ethernet", "ethernet1/1/7"},
	EOS:     {regexp.MustCompile(`^(?i:et(?:hernet)?[ ]?)([0-9]{1,3}(?:/[0-9]{1,3}){0,2})$`), "Ethernet", "Ethernet7 or Ethernet7/1"},
}

// Name converts a port name from the operator or LLDP to the form that a system's commands accept: Eth1/7 is 1/7 for Onyx.
// Anything but a port name is refused, so that no other text can get into a command.
func Name(os OS, port string) (string, error) {
	s, ok := spellings[os]
	if !ok {
		return "", fmt.Errorf("%q is not a supported switch system", os)
	}
	m := s.form.FindStringSubmatch(port)
	if m == nil {
		return "", fmt.Errorf("%q is not a port of %s: its ports are called like %s", port, os, s.example)
	}
	return s.prefix + m[1], nil
}
