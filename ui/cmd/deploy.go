package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/vsphere/appliance"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/ui/plain"
	"github.com/rdma-setup/rdma-setup/wizard/plan/recipe"
)

// deployFlags are the flags of deploy.
type deployFlags struct {
	wish                 recipe.ApplianceWish
	networks, properties []string
	output               string
	yes, dry, eula       bool
}

func newDeployCmd(e *console.Env) *cobra.Command {
	var f deployFlags
	c := &cobra.Command{
		Use:   "deploy APPLIANCE.ova --network 'NAME=PORT GROUP' [--rdma 'PORT GROUP']",
		Short: "Deploy a virtual appliance, with PVRDMA adapters before its first start",
		Long: `deploy creates a VM from an OVA or OVF file, such as VMware's Bitfusion server. It maps each network of the appliance to a
port group. Each --rdma adds a PVRDMA adapter after the appliance's own adapters, each in its own port group, and reserves
the VM's memory. The VM stays powered off.

If the deployment fails or is interrupted, the partly created VM is removed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return resultLine(e, "deploy", f.output,
				console.Interruptible(cmd.Context(), e, func(ctx context.Context) error { return f.run(ctx, e, cmd, args[0]) }))
		},
	}
	d := &f.wish.Deployment
	fl := c.Flags()
	fl.StringVar(&d.Name, "name", "", "name of the VM (default: the appliance's)")
	fl.StringArrayVar(&f.networks, "network", nil, "'NAME=PORT GROUP' for each network of the appliance")
	fl.StringArrayVar(&f.wish.RDMA, "rdma", nil, "port group of a PVRDMA adapter; may be repeated")
	fl.StringArrayVar(&f.properties, "property", nil, "property KEY=VALUE, or KEY=@FILE for secrets")
	fl.StringVar(&d.Configuration, "configuration", "", "deployment option of the appliance")
	fl.StringVar(&d.Datacenter, "datacenter", "", "where there are several")
	fl.StringVar(&d.Cluster, "cluster", "", "where there are several")
	fl.StringVar(&d.Host, "host", "", "ESXi host (default: any of the cluster)")
	fl.StringVar(&d.Datastore, "datastore", "", "where there are several")
	d.Disk = "thin"
	fl.Var(&console.Choice{Into: &d.Disk, From: []string{"thin", "thick", "eagerZeroedThick"}}, "disk", "thin, thick or eagerZeroedThick")
	fl.BoolVar(&f.eula, "accept-eula", false, "accept the licence that comes with the appliance")
	fl.BoolVar(&f.dry, "dry-run", false, "only print what would be done")
	fl.BoolVarP(&f.yes, "yes", "y", false, "accept the printed summary, without asking")
	console.OutputFlag(c, &f.output, "text", "json")
	return c
}

// pairs parses NAME=VALUE flags; NAME=@FILE uses the first line of a file.
func pairs(flag string, given []string, files bool) (map[string]string, error) {
	out := map[string]string{}
	for _, g := range given {
		key, value, ok := strings.Cut(g, "=")
		if _, twice := out[key]; !ok || key == "" || twice {
			return nil, console.Usage("write --"+flag+" NAME=VALUE, with each name only once", "--%s %q is not valid", flag, key)
		}
		if name, file := strings.CutPrefix(value, "@"); file && files {
			b, err := backends.InputProperty.ReadFile(name)
			if err != nil {
				return nil, console.Usage("", "--%s %s: %v", flag, key, err)
			}
			value, _, _ = strings.Cut(string(b), "\n")
			value = strings.TrimSuffix(value, "\r")
		}
		out[key] = value
	}
	return out, nil
}

func (f *deployFlags) run(ctx context.Context, e *console.Env, cmd *cobra.Command, path string) error {
	set, err := console.ReadSettings(e, cmd)
	if err != nil {
		return err
	}
	if f.wish.Networks, err = pairs("network", f.networks, false); err != nil {
		return err
	}
	if f.wish.Properties, err = pairs("property", f.properties, true); err != nil {
		return err
	}
	file, err := appliance.Open(path, f.wish.Configuration)
	if err != nil {
		return err
	}
	defer file.Close()
	f.wish.Name = cmp.Or(f.wish.Name, file.Name)
	s, err := session.Open(ctx, e, set, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	inv, err := s.Inventory(ctx, backends.Scope{})
	if err != nil {
		return err
	}
	if err := recipe.CheckAppliance(file.Appliance, f.wish, inv); err != nil {
		return err
	}
	if len(file.Licences) > 0 && !f.eula && !f.dry {
		return console.Usage("read it in the file's EulaSection and add --accept-eula", "the licence of %s must be accepted", path)
	}
	if f.wish.Host, err = s.VC.DeployTarget(ctx, file, f.wish.Deployment, f.wish.RDMA); err != nil {
		return err
	}
	_ = plain.Printf(e.Stderr, "checking %s against its manifest\n", path)
	proof, err := file.Verify()
	if err != nil {
		return err
	}
	for line := range strings.Lines(recipe.ApplianceSummary(file.Appliance, f.wish, inv, proof.Manifest, proof.Signed)) {
		fmt.Fprintln(e.Stderr, backends.Clean(strings.TrimSuffix(line, "\n")))
	}
	if f.dry {
		return nil
	}
	if !f.yes {
		if err := confirmed(e, "the deployment", "the printed summary", "Deploy it"); err != nil {
			return err
		}
	}
	return f.deploy(ctx, e, s, file, inv)
}

func (f *deployFlags) deploy(ctx context.Context, e *console.Env, s *session.Session, file *appliance.File, inv *backends.Inventory) error {
	shown := -1
	progress := func(percent int) {
		if percent/10 != shown/10 || shown < 0 {
			fmt.Fprintf(e.Stderr, "uploading the disks: %d %%\n", percent)
			shown = percent
		}
	}
	warn := func(line string) { fmt.Fprintln(e.Stderr, "vCenter: "+backends.Clean(strings.TrimSpace(line))) }
	id, err := s.VC.Deploy(ctx, file, f.wish.Deployment, warn, progress)
	switch {
	case err != nil && id != "":
		return f.remove(ctx, s, id, err)
	case err != nil:
		return err
	}
	setters := s.VC.Setters()
	for _, a := range recipe.ApplianceChanges(file.Appliance, f.wish, inv) {
		fmt.Fprintf(e.Stderr, "%s: %s\n", f.wish.Name, a.ID())
		if err := setters[a.Kind].Set(ctx, a.Setting, a.To, nil); err != nil {
			return f.remove(ctx, s, id, err)
		}
	}
	if f.output == "json" {
		return plain.WriteJSON(e.Stdout, map[string]any{"status": "done", "vm": f.wish.Name, "rdma": f.wish.RDMA})
	}
	_ = plain.Printf(e.Stdout,
		"%s is deployed and off.\nnext:  power it on; then name it under vms in the answers and run: rdma-setup check -f answers.yaml\nundo:  "+
			"govc vm.destroy %s\n",
		f.wish.Name, plain.ShellWord(f.wish.Name))
	return nil
}

// remove destroys an unfinished VM, also after an interruption.
func (f *deployFlags) remove(ctx context.Context, s *session.Session, id string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := s.VC.RemoveDeployed(ctx, id); err != nil {
		return &console.CodeError{Code: console.ExitPartial, Err: errors.Join(cause, backends.Errorf(backends.KindOf(cause), f.wish.Name,
			"Remove the VM, or add what is missing with: rdma-setup apply",
			"the VM exists, is powered off and has no PVRDMA adapters: it could not be removed: %w", err))}
	}
	return backends.Errorf(backends.KindOf(cause), f.wish.Name, backends.HintOf(cause), "%w; the VM has been removed again", cause)
}
