package switches

import (
	"fmt"
	"regexp"
)

// spellings is how each system names its ports. What is captured is what its commands take.
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

// Name spells a port as the commands of a system take it, from how the operator or LLDP spell it: Eth1/7 is 1/7 to
// Onyx. Nothing but a port's name passes, so that no other word can get into a command.
func Name(os OS, port string) (string, error) {
	s, ok := spellings[os]
	if !ok {
		return "", fmt.Errorf("%q is no switch system that is known", os)
	}
	m := s.form.FindStringSubmatch(port)
	if m == nil {
		return "", fmt.Errorf("%q is no port of %s: its ports are called like %s", port, os, s.example)
	}
	return s.prefix + m[1], nil
}
