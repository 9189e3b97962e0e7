package generate

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

func newMonitoringCmd(e *console.Env) *cobra.Command {
	var m generate.Monitoring
	var dir string
	c := &cobra.Command{
		Use:   "monitoring",
		Short: "Print the systemd timer of a regular check, and alert rules for Prometheus",
		Long: `Print three files: a systemd service that runs check and writes its result for the textfile collector of node_exporter, its
timer, and alert rules for Prometheus: the verdict, failed checks, and a result that is absent or old. With --dir they are written
to a directory.

The units are templates, and the name of the instance is the site: rdma-setup-check@east checks /etc/rdma-setup/east.yaml, and logs
in with the variables in /etc/rdma-setup/east.env. Several sites can share one node_exporter.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("file") {
				path, err := filepath.Abs(m.Answers)
				if err != nil {
					return err
				}
				m.Answers = path
			}
			files, err := m.Files(origin(e, "monitoring", m.Answers))
			if err != nil {
				return console.Usage("see: rdma-setup generate monitoring --help", "%v", err)
			}
			for i, f := range files {
				if dir != "" {
					err = os.MkdirAll(dir, 0o755)
					if path := filepath.Join(dir, f.Name); err == nil {
						err = renameio.WriteFile(path, []byte(f.Text), 0o644)
					}
					if err != nil {
						return console.NotWritable(filepath.Join(dir, f.Name), err)
					}
					continue
				}
				if i > 0 {
					fmt.Fprintln(e.Stdout)
				}
				if _, err := fmt.Fprintf(e.Stdout, "# %s, in %s\n%s", f.Name, f.Place, f.Text); err != nil {
					return err
				}
			}
			if dir != "" {
				fmt.Fprintln(e.Stderr, "start it for the site east: systemctl daemon-reload; systemctl enable --now rdma-setup-check@east.timer")
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVarP(&m.Answers, "file", "f", "/etc/rdma-setup/%i.yaml", "answers file that the check reads; %i is the name of the site")
	fl.StringVar(&m.Dir, "textfiles", "/var/lib/prometheus/node-exporter",
		"directory of node_exporter's --collector.textfile.directory (default: Debian's)")
	fl.StringVar(&m.Program, "program", "/usr/local/bin/rdma-setup", "path of rdma-setup")
	fl.DurationVar(&m.Every, "every", 15*time.Minute, "time between two checks; a result that is three times as old raises an alert")
	fl.StringVar(&dir, "dir", "", "directory to write the files to, instead of stdout")
	return c
}
