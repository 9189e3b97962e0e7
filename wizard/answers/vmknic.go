package answers

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A VMKNic names the vmknic of each host for PVRDMA's control traffic. If it is the same on all hosts it is written as just the
// name: vmk0.
type VMKNic struct {
	Name  string            `yaml:"name" json:"name"`
	Names map[string]string `yaml:"names" json:"names,omitempty"` // by host, for exceptions

	Create *VMKCreate `yaml:"create" json:"create,omitempty"` // instead of Name, for hosts that are not in Names
}

// Of returns the vmknic of a host, "" if it is created and has no name yet.
func (k VMKNic) Of(host string) string {
	if name := k.Names[host]; name != "" || k.Create != nil {
		return name
	}
	return k.Name
}

// String names them for display.
func (k VMKNic) String() string {
	var others []string
	for _, host := range sorted(k.Names) {
		others = append(others, k.Names[host]+" on "+host)
	}
	all := k.Name
	if k.Create != nil {
		all = fmt.Sprintf("created on %s, from %s", k.Create.PortGroup, k.Create.Start)
	}
	if len(others) == 0 {
		return all
	}
	return fmt.Sprintf("%s (%s)", all, strings.Join(others, ", "))
}

// short returns the part that a file can contain instead of the complete struct.
func (k *VMKNic) short() (value *string, alone bool) {
	return &k.Name, len(k.Names) == 0 && k.Create == nil
}

// MarshalJSON writes only the name if it is the same on every host.
func (k VMKNic) MarshalJSON() ([]byte, error) {
	if len(k.Names) == 0 && k.Create == nil {
		return json.Marshal(k.Name)
	}
	type fields VMKNic
	return json.Marshal(fields(k))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (k *VMKNic) UnmarshalJSON(b []byte) error {
	*k = VMKNic{}
	if json.Unmarshal(b, &k.Name) == nil {
		return nil
	}
	type fields VMKNic
	return json.Unmarshal(b, (*fields)(k))
}

// vmknic checks the names.
func (c *checker) vmknic(k VMKNic, s Switch) {
	if k.Create == nil {
		c.vmk(k.Name, "pvrdma.vmknic")
	} else {
		if k.Name != "" {
			c.bad("pvrdma.vmknic.name", "remove one of both", "%q cannot be combined with create, which replaces it", clip(k.Name))
		}
		c.vmkCreate(*k.Create, s)
	}
	for _, host := range sorted(k.Names) {
		c.vmk(k.Names[host], "pvrdma.vmknic.names{"+host+"}")
	}
}

func (c *checker) vmk(k, path string) {
	if vmk.MatchString(k) {
		return
	}
	hint := ""
	if bare := strings.Trim(k, `"' `); vmk.MatchString(bare) {
		hint = "the quotes in the guides' screens are not part of the value: write " + bare
	} else if strings.EqualFold(bare, "vmko") {
		hint = "write vmk0 with the digit zero"
	}
	c.bad(path, hint, "%q is not a vmknic", clip(k))
}
