package generate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/assets"
)

// A Monitoring runs check from a timer for node_exporter's textfile collector, and alerts in Prometheus on its result.
type Monitoring struct {
	Program string // path of rdma-setup
	Answers string // path of the answers; %i is the name of the site
	Dir     string // directory of the textfile collector
	Every   time.Duration
}

// A MonitoringFile is one of the files of a Monitoring.
type MonitoringFile struct{ Name, Place, Text string }

// oldAfter is after how many missed results a document counts as old.
const oldAfter = 3

// unitPath is a path that needs no quotes in a unit (systemd.service(5), Command lines). %i stands for the name of the site.
var unitPath = regexp.MustCompile(`^/([A-Za-z0-9._/@:+=,-]|%i)+$`)

// Files returns the service, the timer and the rules of the alerts.
func (m Monitoring) Files(o Origin) ([]MonitoringFile, error) {
	for _, path := range []string{m.Program, m.Answers, m.Dir} {
		if !unitPath.MatchString(path) {
			return nil, fmt.Errorf("%q is not a full path of letters, digits and . _ / @ : + = , -", path)
		}
	}
	if m.Every < time.Minute || m.Every > 24*time.Hour {
		return nil, fmt.Errorf("every %s: use one minute to 24 hours", m.Every)
	}
	seconds := int(m.Every.Seconds())
	values := strings.NewReplacer("@PROGRAM@", m.Program, "@ANSWERS@", m.Answers, "@DIR@", m.Dir, "@EVERY@", strconv.Itoa(seconds), "@OLD@",
		strconv.Itoa(oldAfter*seconds))
	files := []MonitoringFile{
		{Name: "rdma-setup-check@.service", Place: "/etc/systemd/system"}, {Name: "rdma-setup-check@.timer", Place: "/etc/systemd/system"},
		{Name: "rdma-setup.rules.yml", Place: "a directory of rule_files in prometheus.yml"},
	}
	for i := range files {
		files[i].Text = o.Comment("#") + values.Replace(assets.Template(files[i].Name))
	}
	return files, nil
}
