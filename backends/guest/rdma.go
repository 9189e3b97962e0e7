package guest

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// devices reads RDMA devices from sysfs; the active MTU, which sysfs does not have, comes from ibv_devinfo. Without sysfs only
// ibv_devinfo is used.
func (f facts) devices(interfaces []backends.Interface) []backends.VerbsDevice {
	devinfo := transcript.DevInfo(f["devinfo"])
	list := sysfsDevices(f["rdma"])
	if len(list) == 0 {
		for _, d := range devinfo.Devices {
			list = append(list, backends.VerbsDevice{Name: d.Name})
		}
	}
	for i := range list {
		d := &list[i]
		for _, v := range devinfo.Devices {
			if v.Name == d.Name && len(v.Ports) > 0 {
				complete(d, v)
			}
		}
		if in := slices.IndexFunc(interfaces, func(i backends.Interface) bool { return i.Name == d.Interface }); d.Interface != "" && in >= 0 {
			d.MAC = interfaces[in].MAC
			class := f.classOf(d.MAC, d.Class)
			d.ClassPartly = class.IsPartial()
			d.ClassKept = !class.IsAbsent() && !d.ClassPartly
			d.QoS = f.qosOf(d.MAC)
		}
	}
	return list
}

func sysfsDevices(text string) []backends.VerbsDevice {
	var list []backends.VerbsDevice
	for line := range strings.SplitSeq(text, "\n") {
		key, v, ok := strings.Cut(strings.TrimSpace(line), " ")
		if key == "device" {
			list = append(list, backends.VerbsDevice{Name: v})
			continue
		}
		if !ok || len(list) == 0 {
			continue
		}
		d := &list[len(list)-1]
		switch key {
		case "driver":
			d.Driver = v
		case "bridge":
			d.Bridge = v
		case "fw_ver":
			d.Firmware = strings.TrimSpace(v)
		case "state": // "4: ACTIVE"
			_, name, _ := strings.Cut(v, ":")
			d.State = "PORT_" + strings.TrimSpace(name)
		case "rate": // "100 Gb/sec (4X EDR)"
			number, _, _ := strings.Cut(v, " ")
			d.RateGbps, _ = strconv.ParseFloat(number, 64)
		case "link_layer":
			d.LinkLayer = v
		case "class": // "Global tclass=106"
			if _, n, ok := strings.Cut(v, "="); ok {
				if c, err := strconv.Atoi(strings.TrimSpace(n)); err == nil {
					d.Class = &c
				}
			}
		case "tos":
			// The class of a whole device (MLNX_OFED) overrides the default of rdma_cm.
			if c, err := strconv.Atoi(v); err == nil && (d.Class == nil || *d.Class == 0) {
				d.Class = &c
			}
		case "numa":
			d.Bind = bindTo(strings.Fields(v))
		case "netdev":
			if d.Interface == "" {
				d.Interface = v
			}
		case "gid":
			addGID(d, v)
		}
	}
	for i := range list {
		d := &list[i]
		slices.SortFunc(d.GIDs, func(a, b backends.GID) int { return cmp.Compare(a.Index, b.Index) })
		if d.Driver == "" && strings.HasPrefix(d.Name, "rxe") {
			d.Driver = "rxe" // a software device has no driver in sysfs
		}
	}
	return list
}

// bindTo parses "1 8-15 taskset": a NUMA node, its CPUs, and the available command for binding to it (numactl(8), taskset(1)).
// numactl also prefers memory of the node while some is free.
func bindTo(words []string) string {
	if len(words) != 3 || strings.Trim(words[0], "0123456789") != "" || strings.Trim(words[1], "0123456789,-") != "" {
		return ""
	}
	switch words[2] {
	case "numactl":
		return "numactl --cpunodebind=" + words[0] + " --preferred=" + words[0]
	case "taskset":
		return "taskset -c " + words[1]
	}
	return ""
}

// addGID parses "1|0000:0000:0000:0000:0000:ffff:c0a8:320b|RoCE v2|ens192".
func addGID(d *backends.VerbsDevice, text string) {
	p := strings.Split(text, "|")
	if len(p) != 4 {
		return
	}
	index, err := strconv.Atoi(p[0])
	if err != nil {
		return
	}
	d.GIDs = append(d.GIDs, backends.GID{Index: index, GID: p[1], Type: p[2], IPv4: mappedIPv4(p[1]), Netdev: p[3]})
	if d.Interface == "" {
		d.Interface = p[3]
	}
}

// mappedIPv4 returns the IPv4 address in ::ffff:a.b.c.d, in any spelling.
func mappedIPv4(gid string) string {
	a, err := netip.ParseAddr(gid)
	if err != nil || !a.Is4In6() && !a.Is4() {
		return ""
	}
	return a.Unmap().String()
}

// complete fills in from ibv_devinfo what sysfs lacks.
func complete(d *backends.VerbsDevice, v transcript.Device) {
	p := v.Ports[0]
	if p.ActiveMTU != nil {
		d.ActiveMTU = int(*p.ActiveMTU)
	}
	if d.State == "" && p.State != nil {
		d.State = *p.State
	}
	if d.LinkLayer == "" && p.LinkLayer != nil {
		d.LinkLayer = *p.LinkLayer
	}
	if d.Firmware == "" && v.FWVersion != nil {
		d.Firmware = *v.FWVersion
	}
	if len(d.GIDs) > 0 {
		return
	}
	for _, g := range p.GIDs {
		if g.Index != nil && g.GID != nil && g.Type != nil {
			d.GIDs = append(d.GIDs, backends.GID{Index: int(*g.Index), GID: *g.GID, Type: *g.Type, IPv4: mappedIPv4(*g.GID)})
		}
	}
}
