package guest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// class sets the traffic class of packets that an adapter's RDMA device sends: KindTrafficClass. The host does not mark packets
// sent through a VF, so the guest must.
type class struct{ g *Guests }

// classUnit runs traffic-class.sh.
var classUnit = portUnit{prefix: unitPrefix + "class-", script: "/usr/local/sbin/rdma-setup-traffic-class"}

// ClassScript returns the script that the units run; see assets/scripts/traffic-class.sh.
func ClassScript() string {
	return "#!/bin/sh\n" + ours + "# Use: rdma-setup-traffic-class MAC CLASS\n" + assets.Script("traffic-class.sh")
}

// ClassUnit returns the name and the text of the systemd unit that sets the class again after each boot.
func ClassUnit(mac string, class int) (name, text string) {
	return classUnit.name(mac), classUnit.text(fmt.Sprintf("Mark the RDMA traffic of %s with traffic class %d", mac, class),
		"Wants=network-online.target\nAfter=network-online.target systemd-modules-load.service", mac, strconv.Itoa(class))
}

var classCommand = regexp.MustCompile(`(?m)^ExecStart=/bin/sh ` + regexp.QuoteMeta(classUnit.script) + ` ([0-9a-f:]{17}) ([0-9]{1,3})$`)

func (f facts) keptClasses() map[string]int {
	m := map[string]int{}
	for _, c := range classCommand.FindAllStringSubmatch(f["classes"], -1) {
		m[c[1]], _ = strconv.Atoi(c[2])
	}
	return m
}

// classOf returns the value of KindTrafficClass for the device with a MAC. now is its current class, nil if unknown. An
// interrupted attempt to set or restore it is Partial.
func (f facts) classOf(mac string, now *int) backends.Value {
	kept := f.keptClasses()
	n, ours := kept[mac]
	switch {
	case ours && now != nil && *now == n:
		return backends.ValueOf(n)
	case ours, classUnit.left(f["classes"], mac):
		return backends.Partial(nil)
	}
	return backends.Absent
}

// A classState is what determines the class of one device.
type classState struct {
	mac    string
	dev    string
	now    *int // nil: unknown
	others bool // other devices have units of this program too
	dir    bool // the device has a directory in configfs

	value backends.Value
}

func (c class) state(ctx context.Context, s backends.Setting) (classState, error) {
	mac, err := c.g.mac(ctx, s)
	if err != nil {
		return classState{}, err
	}
	return c.stateOf(ctx, s, mac)
}

func (c class) stateOf(ctx context.Context, s backends.Setting, mac string) (classState, error) {
	f, err := c.g.facts(ctx, s.Target.Name,
		ssh.Command{Script: section("rdma", script("rdma-devices.sh")) + networkLinks() + section("classes", classUnit.facts()) +
			section("dirs", "ls /sys/kernel/config/rdma_cm")})
	if err != nil {
		return classState{}, err
	}
	out := classState{mac: mac}
	for _, d := range f.devices(f.network().interfaces) {
		if d.MAC == mac {
			out.dev, out.now = d.Name, d.Class
		}
	}
	out.others = classUnit.others(f["classes"], mac)
	out.value = f.classOf(mac, out.now)
	out.dir = slices.Contains(strings.Fields(f["dirs"]), out.dev)
	return out, nil
}

// Read returns the class that is active and persistent, Partial if it is only one of both or an attempt has left something,
// Absent if nothing of this program exists.
func (c class) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	st, err := c.state(ctx, s)
	return st.value, err
}

// Set writes the script and the unit, starts it and reads back.
func (c class) Set(ctx context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	vm := s.Target.Name
	st, err := c.state(ctx, s)
	if err != nil {
		return err
	}
	if to.IsAbsent() {
		return c.clear(ctx, vm, st, 0, false)
	}
	var want int
	if err := to.Decode(&want); err != nil {
		return err
	}
	if want < 0 || want > 255 {
		return backends.Usagef(label(vm), "", "%d is not a traffic class", want)
	}
	if st.value == to {
		return nil
	}
	unit, text := ClassUnit(st.mac, want)
	if err := classUnit.put(ctx, c.g, vm, st.mac, text, ClassScript()); err != nil {
		return err
	}
	_, err = c.g.root(ctx, vm, "mark the traffic of "+st.mac, ssh.Command{Limit: time.Minute,
		Script: script("class-set.sh", classUnit.script, st.mac, strconv.Itoa(want), unit)})
	if err != nil {
		return err
	}
	if now, err := c.Read(ctx, s); err != nil || now != to {
		return backends.Permanentf(label(vm), "Read its log: journalctl -u "+unit,
			"traffic class %d was set, but reads back as %s: %v", want, now, err)
	}
	return nil
}

// clear restores the device's previous class and removes the unit. If it is interrupted, Read returns Partial.
func (c class) clear(ctx context.Context, vm string, st classState, before int, dir bool) error {
	args := []string{classUnit.script, unitDir + classUnit.prefix, classUnit.name(st.mac), st.mac, strconv.Itoa(before)}
	if st.dev != "" {
		if args = append(args, st.dev); !dir {
			args = append(args, "/sys/kernel/config/rdma_cm/"+st.dev)
		}
	}
	_, err := c.g.root(ctx, vm, "take the traffic class of "+st.mac+" back", ssh.Command{Script: script("class-clear.sh", args...),
		Limit: time.Minute})
	return err
}

// A markState is the recorded class configuration of a device.
type markState struct {
	Class int  `json:"class"`
	Dir   bool `json:"dir"` // in configfs
}

func (st classState) item() backends.Item {
	mark := markState{Dir: st.dir}
	if st.now != nil {
		mark.Class = *st.now
	}
	m := backends.Item{Kind: backends.ItemTrafficClass, Name: st.mac, Runtime: true}
	if st.dev != "" {
		m.State = backends.ValueOf(mark)
	}
	return m
}

func macOf(kept backends.Kept) string {
	for _, i := range kept.Items {
		if i.Kind == backends.ItemTrafficClass {
			return i.Name
		}
	}
	return ""
}

func (c class) Keep(ctx context.Context, s backends.Setting, _ backends.Value) (backends.Kept, error) {
	st, err := c.state(ctx, s)
	if err != nil {
		return backends.Kept{}, err
	}
	if st.value.IsPartial() { // by an earlier attempt of this program
		st.now, st.dir = nil, false
	}
	return c.g.record(ctx, s.Target.Name, classUnit.manifest(st.mac, st.others), st.item())
}

func (c class) Observe(ctx context.Context, s backends.Setting, kept backends.Kept) (backends.Kept, error) {
	st, err := c.stateOf(ctx, s, macOf(kept))
	if err != nil {
		return backends.Kept{}, err
	}
	items, err := classUnit.readItems(ctx, c.g, s.Target.Name, kept, st.others)
	return backends.Kept{Items: append(items, st.item())}.Bare(), err
}

// Restore restores the device's previous class, now and after a boot.
func (c class) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	st, err := c.stateOf(ctx, s, macOf(kept))
	if err != nil {
		return err
	}
	var mark markState
	if item := kept.Item(backends.ItemTrafficClass, st.mac); item != nil && !item.State.IsAbsent() {
		if err := item.State.Decode(&mark); err != nil {
			return badKept(s.Target.Name, err)
		}
	}
	now, err := c.Observe(ctx, s, kept)
	if err != nil || len(backends.Differences(kept, now)) == 0 {
		return err
	}
	if err := c.clear(ctx, s.Target.Name, st, mark.Class, mark.Dir); err != nil {
		return err
	}
	return c.g.putBack(ctx, s.Target.Name, classUnit.without(kept, st.others))
}
