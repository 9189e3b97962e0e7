//go:build e2e || bench

package cmd_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// A site is a lab that the real binary serves in a separate process, and a state directory for the runs on it.
type site struct {
	t     *testing.T
	bin   string
	dir   string
	state string
	env   []string
	ctx   context.Context // context of its commands
}

// serve starts rdma-setup lab and waits for its "ready".
func serve(t *testing.T, flags ...string) *site {
	t.Helper()
	return serveIn(context.Background(), t, flags...)
}

// ending is how long a lab may take to end.
const ending = 30 * time.Second

// serveIn starts a lab that ends, with its commands, when ctx ends.
func serveIn(ctx context.Context, t *testing.T, flags ...string) *site {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "..", "bin", "rdma-setup"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("make e2e builds the binary first: %v", err)
	}
	s := &site{t: t, bin: bin, dir: filepath.Join(t.TempDir(), "lab"), state: t.TempDir(), ctx: ctx}
	cmd := exec.CommandContext(ctx, bin, append([]string{"lab", "--dir", s.dir}, flags...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = ending // the process is killed after this delay
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		defer time.AfterFunc(ending, func() { cmd.Process.Kill() }).Stop()
		cmd.Wait()
		if t.Failed() {
			t.Logf("lab: %s", log.String())
		}
	})
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the lab is not ready: %s", log.String())
	}
	s.env = append(os.Environ(), "XDG_STATE_HOME="+s.state, "XDG_CONFIG_HOME="+s.state, "HOME="+s.state)
	for _, kv := range s.labEnv() {
		s.env = append(s.env, kv[0]+"="+kv[1])
	}
	for key, value := range patience {
		s.env = append(s.env, key+"="+value)
	}
	return s
}

func (s *site) labEnv() [][2]string {
	b, err := os.ReadFile(filepath.Join(s.dir, "env"))
	if err != nil {
		s.t.Fatal(err)
	}
	var out [][2]string
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			out = append(out, [2]string{key, value})
		}
	}
	return out
}

func (s *site) value(key string) string {
	for _, kv := range s.labEnv() {
		if kv[0] == key {
			return kv[1]
		}
	}
	return ""
}

func (s *site) answers(mode string) string { return filepath.Join(s.dir, "answers-"+mode+".yaml") }

func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.ctx, s.bin, args...)
	cmd.Env = s.env
	return cmd
}

// run runs a command and returns what it printed and its exit code.
func (s *site) run(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	cmd := s.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

// must runs a command that must exit with the given code.
func (s *site) must(code int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	out, errs, got := s.run(args...)
	if got != code {
		s.t.Fatalf("rdma-setup %s: exit %d, want %d\n%s\n%s", strings.Join(args, " "), got, code, tail(out), tail(errs))
	}
	return out, errs
}

func tail(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// client returns a SOAP client that shares no code with the program under test.
func (s *site) client() *govmomi.Client {
	s.t.Helper()
	u, err := url.Parse(s.value("GOVC_URL"))
	if err != nil {
		s.t.Fatal(err)
	}
	u.User = url.UserPassword(s.value("GOVC_USERNAME"), s.value("GOVC_PASSWORD"))
	c, err := govmomi.NewClient(context.Background(), u, true)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Logout(context.Background()) })
	return c
}

// facts returns the state of the site that a run can change, as the API and the guests report it, as one map.
func (s *site) facts() map[string]string {
	s.t.Helper()
	ctx := context.Background()
	c := s.client()
	defer c.Logout(ctx)
	out := map[string]string{}
	groups := map[string]string{}
	var pgs []mo.DistributedVirtualPortgroup
	s.retrieve(c, "DistributedVirtualPortgroup", &pgs, "name", "config")
	for _, pg := range pgs {
		groups[pg.Self.Value] = pg.Name
		if pg.Config.Uplink != nil && *pg.Config.Uplink {
			continue // vCenter generates its name
		}
		out["portgroup "+pg.Name] = fmt.Sprintf("%s %d ports %+v", pg.Config.Type, pg.Config.NumPorts, vlanOf(pg))
	}
	var switches []mo.DistributedVirtualSwitch
	s.retrieve(c, "DistributedVirtualSwitch", &switches, "name", "config")
	for _, sw := range switches {
		if cfg, ok := sw.Config.(*types.VMwareDVSConfigInfo); ok {
			out["dvs "+sw.Name] = fmt.Sprintf("mtu %d version %s nioc %v members %d", cfg.MaxMtu, cfg.ProductInfo.Version,
				cfg.NetworkResourceManagementEnabled, len(cfg.Host))
		}
	}
	s.hostFacts(c, out)
	s.vmFacts(c, groups, out)
	s.guestFacts(out)
	return out
}

func vlanOf(pg mo.DistributedVirtualPortgroup) int32 {
	if set, ok := pg.Config.DefaultPortConfig.(*types.VMwareDVSPortSetting); ok {
		if v, ok := set.Vlan.(*types.VmwareDistributedVirtualSwitchVlanIdSpec); ok {
			return v.VlanId
		}
	}
	return -1
}

func (s *site) retrieve(c *govmomi.Client, kind string, into any, props ...string) {
	s.t.Helper()
	ctx := context.Background()
	v, err := view.NewManager(c.Client).CreateContainerView(ctx, c.ServiceContent.RootFolder, []string{kind}, true)
	if err != nil {
		s.t.Fatal(err)
	}
	defer v.Destroy(ctx)
	if err := v.Retrieve(ctx, []string{kind}, props, into); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) hostFacts(c *govmomi.Client, out map[string]string) {
	s.t.Helper()
	var hosts []mo.HostSystem
	s.retrieve(c, "HostSystem", &hosts, "name", "config.firewall", "config.network", "configManager.advancedOption",
		"runtime.inMaintenanceMode")
	for _, h := range hosts {
		for _, r := range h.Config.Firewall.Ruleset {
			if r.Key == "pvrdma" {
				out["host "+h.Name+" ruleset pvrdma"] = fmt.Sprint(r.Enabled)
			}
		}
		for _, p := range h.Config.Network.ProxySwitch {
			out["host "+h.Name+" member of "+p.DvsName] = strings.Join(p.Pnic, ",")
		}
		res, err := methods.QueryOptions(context.Background(), c, &types.QueryOptions{This: *h.ConfigManager.AdvancedOption,
			Name: "Net.PVRDMAVmknic"})
		if err != nil || len(res.Returnval) != 1 {
			s.t.Fatalf("%s: Net.PVRDMAVmknic: %v", h.Name, err)
		}
		out["host "+h.Name+" vmknic"] = fmt.Sprint(res.Returnval[0].GetOptionValue().Value)
		out["host "+h.Name+" maintenance"] = fmt.Sprint(h.Runtime.InMaintenanceMode)
	}
}

func (s *site) vmFacts(c *govmomi.Client, groups map[string]string, out map[string]string) {
	s.t.Helper()
	var vms []mo.VirtualMachine
	s.retrieve(c, "VirtualMachine", &vms, "name", "config", "runtime.powerState")
	for _, v := range vms {
		out["vm "+v.Name+" power"] = string(v.Runtime.PowerState)
		out["vm "+v.Name+" hardware"] = v.Config.Version
		locked := v.Config.MemoryReservationLockedToMax
		out["vm "+v.Name+" memory"] = fmt.Sprintf("locked %t reserved %d of %d", locked != nil && *locked, *v.Config.MemoryAllocation.Reservation,
			v.Config.Hardware.MemoryMB)
		var cards []string
		for _, d := range v.Config.Hardware.Device {
			nic, ok := d.(types.BaseVirtualEthernetCard)
			if !ok {
				continue
			}
			card := fmt.Sprintf("%T", d)
			if r, ok := d.(*types.VirtualVmxnet3Vrdma); ok {
				card += " " + r.DeviceProtocol
			}
			if b, ok := nic.GetVirtualEthernetCard().Backing.(*types.VirtualEthernetCardDistributedVirtualPortBackingInfo); ok {
				card += " on " + groups[b.Port.PortgroupKey]
			}
			card += fmt.Sprintf(" start %t", nic.GetVirtualEthernetCard().Connectable.StartConnected)
			cards = append(cards, card)
		}
		out["vm "+v.Name+" adapters"] = strings.Join(cards, "; ")
	}
}

// guestFacts reads from every guest its files, packages, modules and addresses.
func (s *site) guestFacts(out map[string]string) {
	s.t.Helper()
	for _, v := range s.guests() {
		files := s.guest(v, s.sudo(`find /etc -type f | sort | while read -r f; do sha256sum "$f"; done`))
		for line := range strings.Lines(files) {
			if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
				out["guest "+v.Name+" "+name] = sum
			}
		}
		out["guest "+v.Name+" packages"] = s.guest(v,
			`if command -v dpkg-query >/dev/null; then dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' | grep '^ii'; else rpm -qa; fi | sort`)
		mods := strings.Fields(s.guest(v, `cut -d ' ' -f 1 /proc/modules`))
		slices.Sort(mods)
		out["guest "+v.Name+" modules"] = strings.Join(mods, " ")
		out["guest "+v.Name+" units"] = s.guest(v, `systemctl list-unit-files --state=enabled --no-legend 2>/dev/null | grep rdma-setup || true`)
	}
}

// sudo returns a command line that runs as root; some guests require the password.
func (s *site) sudo(command string) string {
	return fmt.Sprintf("echo '%s' | sudo -S -p '' sh -c '%s'", s.value("RDMA_SETUP_SUDO_PASSWORD"), command)
}

func (s *site) guests() []answers.VM {
	s.t.Helper()
	f, err := os.Open(s.answers("pvrdma"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	a, err := answers.Load(f, f.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	return a.VMs
}

// guest runs a command in a guest over SSH that must succeed, and returns its output.
func (s *site) guest(v answers.VM, command string) string {
	s.t.Helper()
	out, err := s.tryGuest(v, command)
	if err != nil {
		s.t.Fatalf("guest %s: %s: %v\n%s", v.Name, command, err, out)
	}
	return out
}

func (s *site) tryGuest(v answers.VM, command string) (string, error) {
	s.t.Helper()
	key, err := os.ReadFile(s.value("RDMA_SETUP_SSH_KEY"))
	if err != nil {
		s.t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := &ssh.ClientConfig{User: v.Guest.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		Timeout: 10 * time.Second}
	c, err := ssh.Dial("tcp", net.JoinHostPort(v.Guest.Address, fmt.Sprint(v.Guest.Port)), cfg)
	if err != nil {
		return "", err
	}
	defer c.Close()
	session, err := c.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	out, err := session.CombinedOutput(command)
	return string(out), err
}

// shutFirewall closes the ruleset pvrdma of a host from outside the program under test.
func (s *site) shutFirewall(name string) {
	s.t.Helper()
	c := s.client()
	var hosts []mo.HostSystem
	s.retrieve(c, "HostSystem", &hosts, "name", "configManager.firewallSystem")
	for _, h := range hosts {
		if h.Name != name {
			continue
		}
		if _, err := methods.DisableRuleset(context.Background(), c, &types.DisableRuleset{This: *h.ConfigManager.FirewallSystem,
			Id: "pvrdma"}); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.t.Fatalf("no host %s", name)
}

// until checks a condition every 50 ms until it is true, and fails after five minutes.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}
