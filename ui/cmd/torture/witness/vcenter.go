package witness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// looks are the relevant properties, by kind of object. The last word of a path is its name in the keys.
var looks = []struct {
	kind, prefix string
	paths        []string
}{
	{"HostSystem", "host", []string{
		"config.option", "config.service", "config.firewall", "config.network.pnic", "config.network.vnic", "config.network.vswitch",
		"config.network.proxySwitch",
		"config.network.portgroup", "config.pciPassthruInfo", "config.graphicsInfo", "runtime.inMaintenanceMode", "runtime.powerState",
		"runtime.connectionState",
		"config.lockdownMode", "config.powerSystemInfo", "customValue",
	}},
	{"VirtualMachine", "vm", []string{
		"config.hardware", "config.extraConfig", "config.memoryAllocation", "config.cpuAllocation", "config.memoryReservationLockedToMax",
		"config.latencySensitivity",
		"config.firmware", "config.version", "config.bootOptions", "runtime.powerState", "runtime.host", "snapshot", "customValue",
	}},
	{"DistributedVirtualSwitch", "dvs", []string{"name", "config", "customValue"}},
	{"DistributedVirtualPortgroup", "portgroup", []string{"name", "config", "customValue"}},
	{"ClusterComputeResource", "cluster", []string{"configurationEx", "customValue"}},
}

func vcenter(ctx context.Context, s Site) (Dump, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	sc := soap.NewClient(u, false)
	if err := sc.SetRootCAs(s.CACerts); err != nil {
		return nil, err
	}
	c, err := vim25.NewClient(ctx, sc)
	if err != nil {
		return nil, err
	}
	m := session.NewManager(c)
	if err := m.Login(ctx, url.UserPassword(s.User, s.Password)); err != nil {
		return nil, err
	}
	defer func() { _ = m.Logout(context.WithoutCancel(ctx)) }()
	out := Dump{}
	for _, look := range looks {
		if err := all(ctx, c, look.kind, look.prefix, look.paths, out); err != nil {
			return nil, fmt.Errorf("%s: %w", look.kind, err)
		}
	}
	return out, attributes(ctx, c, out)
}

// attributes dumps the defined custom attributes, which include the shared locks.
func attributes(ctx context.Context, c *vim25.Client, out Dump) error {
	if c.ServiceContent.CustomFieldsManager == nil {
		return nil
	}
	var m mo.CustomFieldsManager
	if err := property.DefaultCollector(c).RetrieveOne(ctx, *c.ServiceContent.CustomFieldsManager, []string{"field"}, &m); err != nil {
		return fmt.Errorf("CustomFieldsManager: %w", err)
	}
	for _, def := range m.Field {
		out["attribute "+def.Name] = def.ManagedObjectType
	}
	return nil
}

// all dumps every object of a kind.
func all(ctx context.Context, c *vim25.Client, kind, prefix string, paths []string, out Dump) error {
	v, err := view.NewManager(c).CreateContainerView(ctx, c.ServiceContent.RootFolder, []string{kind}, true)
	if err != nil {
		return err
	}
	defer func() { _ = v.Destroy(context.WithoutCancel(ctx)) }()
	refs, err := v.Find(ctx, []string{kind}, property.Match{"name": "*"})
	if err != nil || len(refs) == 0 {
		return err
	}
	for _, ref := range refs {
		var content []types.ObjectContent
		if err := property.DefaultCollector(c).Retrieve(ctx, []types.ManagedObjectReference{ref}, append([]string{"name"}, paths...),
			&content); err != nil {
			return err
		}
		name := ""
		for _, p := range content[0].PropSet {
			if p.Name == "name" {
				name = fmt.Sprint(p.Val)
			}
		}
		for _, p := range content[0].PropSet {
			if p.Name == "name" && prefix != "dvs" && prefix != "portgroup" {
				continue
			}
			if err := flatten(plain(prefix+" "+name)+" "+strings.ReplaceAll(strings.TrimPrefix(p.Name, "config."), ".", " "), p.Val,
				out); err != nil {
				return err
			}
		}
		if kind == "HostSystem" {
			if err := packages(ctx, c, ref, "host "+name+" vib ", out); err != nil {
				return err
			}
		}
	}
	return nil
}

// packages dumps the VIBs of a host.
func packages(ctx context.Context, c *vim25.Client, host types.ManagedObjectReference, prefix string, out Dump) error {
	var h mo.HostSystem
	if err := property.DefaultCollector(c).RetrieveOne(ctx, host, []string{"configManager.imageConfigManager"}, &h); err != nil {
		return err
	}
	if h.ConfigManager.ImageConfigManager == nil {
		return nil
	}
	answer, err := methods.FetchSoftwarePackages(ctx, c, &types.FetchSoftwarePackages{This: *h.ConfigManager.ImageConfigManager})
	if err != nil {
		return err
	}
	for _, p := range answer.Returnval {
		out[prefix+p.Name] = p.Version + " " + p.AcceptanceLevel
	}
	return nil
}

// flatten makes one entry of each leaf of a property.
func flatten(at string, val any, out Dump) error {
	b, err := json.Marshal(val)
	if err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		return err
	}
	leaves(at, tree, out)
	return nil
}

func leaves(at string, tree any, out Dump) {
	switch v := tree.(type) {
	case map[string]any:
		for name, sub := range v {
			if name == "_typeName" && len(v) > 1 {
				continue // of a list; its elements determine its type
			}
			next := at + " " + lower(name)
			if name == "_value" {
				next = at
			}
			leaves(next, sub, out)
		}
		if t, ok := v["_typeName"].(string); ok && strings.HasPrefix(t, "Virtual") {
			out[at+" type"] = t
		}
	case []any:
		for i, sub := range v {
			leaves(at+" "+named(sub, i), sub, out)
		}
	case nil:
	default:
		out[plain(at)] = plain(fmt.Sprint(v))
	}
}

// named identifies an element of a list by its usual name, else by its number.
func named(sub any, i int) string {
	m, is := sub.(map[string]any)
	if !is {
		return strconv.Itoa(i)
	}
	if info, is := m["deviceInfo"].(map[string]any); is {
		if label, is := info["label"].(string); is {
			return label
		}
	}
	for _, key := range []string{"key", "device", "dvsName", "name", "id", "label"} {
		if text, is := m[key].(string); is && text != "" {
			return text
		}
	}
	return strconv.Itoa(i)
}

func lower(name string) string { return strings.ToLower(name[:1]) + name[1:] }
