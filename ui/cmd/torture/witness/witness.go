// Package witness reads the state of a site without any code of the product: vCenter through govmomi, and guests through the ssh
// client of the machine and standard tools. The results are compared before and after.
package witness

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Site is what to read.
type Site struct {
	URL, User, Password string // of vCenter
	CACerts             string // PEM file
	Key                 string // private key file for the guests
	SudoPassword        string
	Guests              []Guest
}

// A Guest is a machine with an SSH server.
type Guest struct {
	VM      string // its name in vCenter
	Address string
	Port    int
	User    string
}

// A Dump is the result: values by key. Keys begin with the object, such as "host esx-01 option Net.X".
type Dump map[string]string

// Inspect dumps a whole site. Guests of VMs that are off are left out.
func Inspect(ctx context.Context, s Site) (Dump, error) {
	out, err := vcenter(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("vCenter: %w", err)
	}
	var wg sync.WaitGroup
	dumps, errs := make([]Dump, len(s.Guests)), make([]error, len(s.Guests))
	for i, g := range s.Guests {
		if out["vm "+g.VM+" runtime powerState"] != "poweredOn" {
			continue
		}
		wg.Go(func() { dumps[i], errs[i] = guest(ctx, s, g) })
	}
	wg.Wait()
	for i, g := range s.Guests {
		if errs[i] != nil {
			return nil, fmt.Errorf("guest %s: %w", g.VM, errs[i])
		}
		maps.Copy(out, dumps[i])
	}
	return out, nil
}

// A Volatile matches keys that may differ for the same state, and says why.
type Volatile struct {
	Key *regexp.Regexp
	Why string
}

// Ignored are the keys that no comparison uses.
var Ignored = []Volatile{
	{regexp.MustCompile(`^vm .* (changeVersion|modified)$`), "vCenter counts every reconfiguration"},
	{regexp.MustCompile(`^vm .* device .* (key|controllerKey|unitNumber|slotInfo pciSlotNumber)$`),
		"numbers that vCenter assigns when a device is added"},
	{regexp.MustCompile(`^vm .* device .* macAddress$`), "vCenter makes up the MAC of an adapter when it is added"},
	{regexp.MustCompile(`([pP]ortKey|connectionCookie|port key|switchUuid|portgroupKey)$`),
		"ports of a switch are numbered as they are connected"},
	{regexp.MustCompile(`^dvs .* (configVersion|uuid|createTime|key|extensionKey)$`),
		"made when the switch is created, counted when it is changed"},
	{regexp.MustCompile(`^portgroup .* (configVersion|key)$`), "made when the port group is created, counted when it is changed"},
	{regexp.MustCompile(`^host .* uplinkPort `), "numbers of ports"},
	{regexp.MustCompile(`^guest .* file /boot/(initrd|initramfs)[^ ]* sha256$`),
		"an initial RAM disk holds times and random seeds; its presence, mode and owner count"},
	{regexp.MustCompile(`^guest .* file /etc/ld\.so\.cache sha256$`), "ldconfig writes it anew"},
	{regexp.MustCompile(`^guest .* path /var/(cache|cache/apt|cache/apt/.*|lib/dpkg|lib/dpkg/.*)$`),
		"apt and dpkg keep what they fetched, their lists and their locks"},
	{regexp.MustCompile(`^guest .* (modules|active) .*\b(rpcrdma|sunrpc|nvidia(_drm|_modeset|_uvm)?)$`),
		"units of rdma-core and of the NVIDIA driver " +
			"load them at a boot, which differs in its time"},
}

// Diff lists the differences between two dumps, except ignored ones: "- " lost, "+ " new, "~ " changed. Keys for which leave
// returns true do not count either.
func Diff(want, got Dump, leave func(key string) bool) []string {
	keys := map[string]bool{}
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		a, had := want[k]
		b, has := got[k]
		if had && has && a == b || leave != nil && leave(k) ||
			slices.ContainsFunc(Ignored, func(v Volatile) bool { return v.Key.MatchString(k) }) {
			continue
		}
		switch {
		case !has:
			out = append(out, "- "+k+" = "+a)
		case !had:
			out = append(out, "+ "+k+" = "+b)
		default:
			out = append(out, "~ "+k+": "+a+" -> "+b)
		}
	}
	return out
}

// numbered matches references and names with a number that vCenter assigns.
var numbered = regexp.MustCompile(`\b(dvs|dvportgroup|DVUplinks|group-[a-z]|network)-[0-9]+\b`)

// switchID is the UUID of a distributed switch as vCenter writes it.
var switchID = regexp.MustCompile(`\b([0-9a-f]{2} ){7}[0-9a-f]{2}-([0-9a-f]{2} ){7}[0-9a-f]{2}\b`)

func plain(text string) string {
	return switchID.ReplaceAllString(numbered.ReplaceAllString(strings.TrimSpace(text), "$1-N"), "UUID")
}

// stateScript is the script that root runs in a guest. Its output is lines of KIND, tab, NAME, tab, VALUE.
//
//go:embed state.sh
var stateScript string

// guest reads a guest through the ssh client of this machine.
func guest(ctx context.Context, s Site, g Guest) (Dump, error) {
	c := exec.CommandContext(ctx, "ssh", "-F", "/dev/null", "-i", s.Key, "-p", strconv.Itoa(g.Port), "-l", g.User,
		"-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
		"-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=10", g.Address, "sudo -S -p '' sh -c '"+strings.ReplaceAll(stateScript, "'", `'\''`)+
			"'")
	c.Stdin = strings.NewReader(s.SudoPassword + "\n") // a sudo that needs no password leaves it unread
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("ssh: %w\n%s", err, errs.Bytes())
	}
	d := Dump{}
	ended := false
	for line := range strings.Lines(out.String()) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "\t", 3)
		switch {
		case f[0] == "end":
			ended = true
		case len(f) == 3:
			key := "guest " + g.VM + " " + f[0] + " " + f[1]
			if old, twice := d[key]; twice {
				f[2] = old + "; " + f[2]
			}
			d[key] = f[2]
		}
	}
	if !ended {
		return nil, fmt.Errorf("ssh: the script did not come to its end\n%s", errs.Bytes())
	}
	return d, nil
}
