package cmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/kube"
	"github.com/rdma-setup/rdma-setup/checks/catalogue"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/report"
)

// checkKube checks whether MPI jobs over RDMA can run in a Kubernetes cluster, instead of a vCenter.
func (f *checkFlags) checkKube(cmd *cobra.Command, e *console.Env) error {
	if f.output != "text" && f.output != "json" || f.file != "" || f.fix || f.every > 0 || f.save != "" || f.bundle != "" || f.pairs != "" || len(f.sel.Only)+len(f.sel.Skip) > 0 {
		return console.Usage("rdma-setup check --kube CONTEXT [-o json]", "--kube checks only the cluster, and prints -o text and -o json")
	}
	var k *backends.Kubernetes
	if err := console.WithCluster(e, cmd, f.kube, func(client *kube.Client) (err error) {
		k, err = client.Survey(cmd.Context())
		return err
	}); err != nil {
		return err
	}
	findings := catalogue.Kubernetes(k)
	c := &checked{report: &report.Report{Made: e.Now(), Tool: e.Version, Checks: findings}}
	c.code, c.word = judged(findings, nil)
	if err := console.RenderTo(e, f.out, func(w io.Writer) error { return c.render(w, f.output, e.ThemeFor(f.out)) }); err != nil {
		return err
	}
	return console.Exit(c.code)
}
