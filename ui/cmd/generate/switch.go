package generate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/generate/switches"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// switchFlags are the flags of generate switch in addition to the answers.
type switchFlags struct {
	file     string
	os       string
	name     string
	ports    []string
	lossless string
	wish     switches.Wish
}

func newSwitchCmd(e *console.Env) *cobra.Command {
	var f switchFlags
	c := &cobra.Command{
		Use:   "switch --os SYSTEM (-f answers.yaml | --ports PORT,..)",
		Short: "Print the configuration of the physical switch, each line with its source",
		Long: `Print the configuration of the physical switch: MTU, VLAN, PFC of one priority, ECN, ETS, DCBX, PFC watchdog.

With answers, the ports are those that the chosen pNICs receive by LLDP or CDP, with one text per switch. With --ports
nothing is read. Without any port all lines are comments, so pasting them has no effect. Nothing is ever sent to a switch.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return generateSwitch(cmd, e, &f) },
	}
	fl := c.Flags()
	fl.Var(&console.Choice{Into: &f.os, From: switches.Systems()}, "os", strings.Join(switches.Systems(), ", "))
	fl.StringVarP(&f.file, "file", "f", "", "answers file: hosts, VLAN, QoS")
	fl.StringSliceVar(&f.ports, "ports", nil, "switch ports of the hosts, as the switch writes them")
	fl.StringVar(&f.name, "switch", "", "only this switch; with --ports, its name")
	fl.IntVar(&f.wish.VLAN, "vlan", 0, "VLAN of the port group, 0: untagged (default: from the answers)")
	fl.IntVar(&f.wish.Priority, "priority", 3, "priority of RoCE (default from the answers)")
	fl.IntVar(&f.wish.DSCP, "dscp", 26, "DSCP of RoCE (default from the answers)")
	fl.BoolVar(&f.wish.ECN, "ecn", true, "mark packets when queues fill (default from the answers)")
	fl.IntVar(&f.wish.ECNMin, "ecn-min", 150, "queue length in KB at which marking begins")
	fl.IntVar(&f.wish.ECNMax, "ecn-max", 1500, "queue length in KB at which every packet is marked")
	f.lossless = string(answers.LosslessPFC)
	fl.Var(&console.Choice{Into: &f.lossless, From: []string{string(answers.LosslessPFC), string(answers.LosslessNone)}}, "lossless",
		"pfc or none (default from the answers)")
	f.wish.Queue = "tx-queue"
	fl.Var(&console.Choice{Into: &f.wish.Queue, From: []string{"tx-queue", "uc-tx-queue"}}, "queue",
		"name of queues on an EOS switch: tx-queue or uc-tx-queue")
	return c
}

func generateSwitch(cmd *cobra.Command, e *console.Env, f *switchFlags) error {
	if f.os == "" {
		return console.Usage("--os is one of "+strings.Join(switches.Systems(), ", "), "the operating system of the switch is not set")
	}
	f.wish.OS = switches.OS(f.os)
	set, err := console.ReadSettings(e, cmd)
	if err != nil {
		return err
	}
	var ports map[string][]switches.Port
	var silent []string
	from := []string{"flags"}
	switch {
	case len(f.ports) > 0:
		if ports, err = f.given(); err != nil {
			return err
		}
		if f.file != "" {
			a, err := session.Load(e, f.file, nil)
			if err != nil {
				return err
			}
			from = append(from, f.file)
			if err := f.follow(cmd, a); err != nil {
				return err
			}
		}
	case f.file != "" || set.Lab:
		s, a, err := session.Begin(cmd.Context(), e, cmd, f.file)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := f.follow(cmd, a); err != nil {
			return err
		}
		if ports, silent, err = switchPorts(cmd.Context(), s, a, f.wish.OS); err != nil {
			return err
		}
		from = sources(s, "answers", "the switch ports that the pNICs receive by LLDP or CDP")
	}
	f.wish.PFC = f.lossless == string(answers.LosslessPFC)
	if len(ports) == 0 {
		ports = map[string][]switches.Port{"": nil}
	}
	return f.print(e, ports, silent, from)
}

// follow takes values from the answers if no flag sets them.
func (f *switchFlags) follow(cmd *cobra.Command, a *answers.Answers) error {
	given := cmd.Flags().Changed
	if !given("vlan") {
		f.wish.VLAN = a.Switch.VLAN
		for _, r := range a.AllRails() {
			if r.Switch.VLAN != a.Switch.VLAN {
				return console.Usage("run it once per rail, with --ports and --vlan",
					"the rails have the VLANs %d and %d, but one configuration can only have one", a.Switch.VLAN, r.Switch.VLAN)
			}
		}
	}
	if !given("priority") {
		f.wish.Priority = a.QoS.Priority
	}
	if !given("dscp") {
		f.wish.DSCP = a.QoS.DSCP
	}
	if !given("ecn") {
		f.wish.ECN = a.QoS.ECN
	}
	if !given("lossless") {
		if a.QoS.Lossless == answers.LosslessPause {
			return console.Usage("add --lossless pfc or --lossless none",
				"the answers ask for global pause, which this command does not configure on switches")
		}
		f.lossless = string(a.QoS.Lossless)
	}
	return nil
}

// given returns the ports of --ports, all of one switch.
func (f *switchFlags) given() (map[string][]switches.Port, error) {
	var list []switches.Port
	for _, p := range f.ports {
		name, err := switches.Name(f.wish.OS, p)
		if err != nil {
			return nil, console.Usage("", "--ports: %v", err)
		}
		list = append(list, switches.Port{Name: name, Peer: "given"})
	}
	return map[string][]switches.Port{f.name: list}, nil
}

// print writes one text per switch. Missing values make it an error, after the text.
func (f *switchFlags) print(e *console.Env, ports map[string][]switches.Port, silent, from []string) error {
	var names []string
	for name := range ports {
		if f.name == "" || name == f.name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return backends.Refusedf("", "", "no pNIC receives LLDP or CDP from a switch named %s", f.name)
	}
	missing := silent
	var texts []string
	for _, name := range names {
		w := f.wish
		w.Switch, w.Ports = name, ports[name]
		text, lacks, err := switches.Config(w, origin(e, "switch --os "+f.os, from...))
		if err != nil {
			return console.Usage("", "%v", err)
		}
		texts = append(texts, text)
		missing = append(missing, lacks...)
	}
	if _, err := fmt.Fprint(e.Stdout, strings.Join(texts, "\n")); err != nil {
		return err
	}
	if len(missing) > 0 {
		return backends.Refusedf("", "use --ports, or enable LLDP on the switch and listening on the DVS of the pNIC",
			"the configuration is not complete; missing: %s", strings.Join(missing, ", "))
	}
	return nil
}

// switchPorts reads from the hosts the switch port of their RDMA pNIC for each rail: ports by switch, and the pNICs that heard
// nothing.
func switchPorts(ctx context.Context, s *session.Session, a *answers.Answers,
	system switches.OS) (map[string][]switches.Port, []string, error) {
	inv, err := s.Inventory(ctx, session.Scope(a))
	if err != nil {
		return nil, nil, err
	}
	s.Note(inv)
	chosen := *a
	chosen.Hosts.Names = nil
	for _, h := range session.Reachable(a, inv) {
		chosen.Hosts.Names = append(chosen.Hosts.Names, h.Name)
	}
	var rails []map[string]string
	wanted := map[string]bool{}
	for _, view := range chosen.Views() {
		picks := recipe.Choose(view, inv)
		rails = append(rails, picks)
		for host := range picks {
			wanted[host] = true
		}
	}
	var (
		g    errgroup.Group
		mu   sync.Mutex
		near = map[string]map[string]backends.Neighbour{}
	)
	g.SetLimit(max(1, a.Run.Parallel))
	for host := range wanted {
		g.Go(func() error {
			all, err := s.VC.Neighbours(ctx, host)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			near[host] = all
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	ports := map[string][]switches.Port{}
	var silent []string
	for i, rail := range chosen.AllRails() {
		for _, host := range chosen.Hosts.Names {
			device, ok := rails[i][host]
			if !ok && rail.Optional {
				continue
			}
			if !ok {
				silent = append(silent, "the port of "+host+" (no pNIC matches the answers"+a.RailLabel(rail.Name)+")")
				continue
			}
			n, ok := near[host][device]
			if !ok {
				silent = append(silent, "the port of "+host+" "+device+" (receives no LLDP or CDP)")
				continue
			}
			name, err := switches.Name(system, n.Port)
			if err != nil {
				return nil, nil, backends.Refusedf(host, "use the --os that "+n.Switch+" runs, or --ports", "%s is on %s: %v",
					device, n.Switch, err)
			}
			ports[n.Switch] = append(ports[n.Switch], switches.Port{Name: name, Peer: host + " " + device})
		}
	}
	return ports, silent, nil
}
