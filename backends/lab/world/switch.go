package world

import (
	"cmp"
	"fmt"
	"slices"
)

// Shown returns the name of a switch in vCenter.
func (d *DVS) Shown() string { return cmp.Or(d.Title, d.Name) }

// SwitchUUID returns the UUID of a new DVS, in the format of DVS UUIDs.
func (s *State) SwitchUUID() string { return SwitchUUID(fmt.Sprint(s.NextID())) }

// AddSwitch adds a DVS. If another folder has a switch of its name, its unique name becomes another one.
func (s *State) AddSwitch(d *DVS) {
	if s.Switch(d.Name) != nil {
		d.Title, d.Name = d.Name, fmt.Sprintf("%s (%s)", d.Name, d.UUID)
	}
	s.Switches = append(s.Switches, d)
}

// RemoveSwitch removes a DVS and releases its uplinks.
func (s *State) RemoveSwitch(name string) {
	s.Switches = slices.DeleteFunc(s.Switches, func(d *DVS) bool { return d.Name == name })
}

// RenameSwitch renames a DVS and updates all connections to it. Connections to a switch with a title use its unique name.
func (s *State) RenameSwitch(d *DVS, name string) {
	if d.Title != "" || s.Switch(name) != nil {
		d.Title = name
		return
	}
	s.reconnect(d.Name, "", name, "")
	d.Name = name
}

// RenamePortGroup renames a port group and updates all connections to it.
func (s *State) RenamePortGroup(d *DVS, g *PortGroup, name string) {
	s.reconnect(d.Name, g.Name, d.Name, name)
	g.Name = name
}

func (s *State) reconnect(dvs, group, toDVS, toGroup string) {
	for _, v := range s.VMs {
		for _, a := range v.Adapters {
			if a.DVS == dvs && (group == "" || a.PortGroup == group) {
				a.DVS = toDVS
				if toGroup != "" {
					a.PortGroup = toGroup
				}
			}
		}
	}
	for _, h := range s.Hosts {
		for _, k := range h.VMKs {
			if k.DVS == dvs && (group == "" || k.PortGroup == group) {
				k.DVS = toDVS
				if toGroup != "" {
					k.PortGroup = toGroup
				}
			}
		}
	}
}
