package wire

import (
	"context"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

// A hostPart is the place of a managed object within another one: the firewall system of a host.
type hostPart struct {
	owner types.ManagedObjectReference
	name  string // as in the API: "firewallSystem"
}

// noteParts records the parts of a host, and the host of a VM, that a read has returned: references do not show the host.
func (c *Conn) noteParts(o Object) {
	if host, is := o.Props["runtime.host"].(types.ManagedObjectReference); is {
		c.runs.Store(o.Ref, host)
	}
	if o.Ref.Type != "HostSystem" {
		return
	}
	for path, v := range o.Props {
		switch v := v.(type) {
		case types.ManagedObjectReference:
			if name, is := strings.CutPrefix(path, "configManager."); is {
				c.parts.Store(v, hostPart{o.Ref, name})
			}
		case types.HostConfigManager:
			fields := reflect.ValueOf(v)
			for i := range fields.NumField() {
				if ref, is := fields.Field(i).Interface().(*types.ManagedObjectReference); is && ref != nil {
					name := fields.Type().Field(i).Name
					c.parts.Store(*ref, hostPart{o.Ref, strings.ToLower(name[:1]) + name[1:]})
				}
			}
		}
	}
}

// Part records a part of a host that a call has returned.
func (c *Conn) Part(host, part types.ManagedObjectReference) {
	c.parts.Store(part, hostPart{owner: host})
}

// targetOf returns the name of a managed object for traces: "vm-01", and of a part of a host "esx-01 (firewallSystem)". The name
// that On has set takes precedence.
func (c *Conn) targetOf(ctx context.Context, ref types.ManagedObjectReference) string {
	within := ""
	if p, ok := c.parts.Load(ref); ok {
		p := p.(hostPart)
		if ref = p.owner; p.name != "" {
			within = " (" + p.name + ")"
		}
	}
	if on, ok := ctx.Value(targetKey{}).(string); ok && on != "" {
		return on + within
	}
	if c.named != nil {
		if name := c.named(ref); name != "" {
			return name + within
		}
	}
	if strings.HasPrefix(ref.Value, "session[") {
		return ref.Type // a view or a collector, whose reference begins with the session key
	}
	return ref.Type + ":" + ref.Value + within
}
