package torture

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// passing are facts of the lab's world that differ from one way to the same state to another: keys and addresses that
// vCenter makes up, times, counters.
var passing = regexp.MustCompile(`(BootTime|\.Booted|\.Boots|\.Changes|\.ID|\.ShellAddr|Guest\.Port|\.UUID|\.Created|\.Installed|Key|\.MAC|\.Stats\..*|\.Logs\..*)$`)

// numbered are names that vCenter makes up from such keys.
var numbered = regexp.MustCompile(`DVUplinks-[0-9]+`)

// facts is everything that is there: the whole world of the lab, field by field, and every file of every guest by its
// hash.
func (s *site) facts() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	s.lab.World().View(func(st *world.State) {
		b, err := json.Marshal(st)
		if err != nil {
			s.t.Fatal(err)
		}
		var tree any
		if err := json.Unmarshal(b, &tree); err != nil {
			s.t.Fatal(err)
		}
		flatten("", tree, out)
	})
	for key := range out {
		if passing.MatchString(key) {
			delete(out, key)
		}
	}
	for _, v := range s.vms {
		if out["VMs."+v.Name+".On"] == "true" {
			s.guest(v, out)
		}
	}
	return out
}

// flatten makes one entry of each leaf. A list of named things has their names in its keys.
func flatten(at string, tree any, out map[string]string) {
	join := func(name string) string {
		return strings.TrimPrefix(at+"."+numbered.ReplaceAllString(name, "DVUplinks"), ".")
	}
	switch v := tree.(type) {
	case map[string]any:
		for name, sub := range v {
			flatten(join(name), sub, out)
		}
	case []any:
		for i, sub := range v {
			name := strconv.Itoa(i)
			if m, is := sub.(map[string]any); is {
				for _, key := range []string{"Name", "Device"} {
					if text, is := m[key].(string); is && text != "" {
						name = text
						break
					}
				}
			}
			flatten(join(name), sub, out)
		}
	case nil: // an empty list and none are the same
	default:
		out[at] = numbered.ReplaceAllString(fmt.Sprint(v), "DVUplinks")
	}
}

// look is the command that tells what a guest has: files by hash, enabled units, loaded modules, packages.
const look = `for d in /boot /etc /home /lib /opt /root /srv /usr /var; do find $d -type f 2>/dev/null; done | sort | while read -r f; do sha256sum "$f"; done
echo modules $(cut -d " " -f 1 /proc/modules | sort)
echo units $(systemctl list-unit-files --state=enabled --no-legend 2>/dev/null | sort)`

// volatile are files that a guest writes by itself, the key of the lab, and images with a date in them.
var volatile = regexp.MustCompile(`^/var/(cache|lib/apt/lists|lib/dpkg|lib/rpm|lib/dnf|lib/systemd|log|tmp)/|/[.]ssh/authorized_keys$|^/boot/initrd`)

// atBoot are modules that the units of rdma-core and of the NVIDIA driver load when a guest boots, or nvidia-smi when it is
// asked: whether that has been since the packages came differs from one way to the same state to another.
var atBoot = regexp.MustCompile(`\b(rpcrdma|sunrpc|nvidia(_drm|_modeset|_uvm)?)( |$)`)

func (s *site) guest(v answers.VM, out map[string]string) {
	s.t.Helper()
	var text string
	s.until("guest "+v.Name+" answers", func() (ok bool) {
		var err error
		text, err = s.ask(v, fmt.Sprintf("echo '%s' | sudo -S -p '' sh -c '%s'", s.env["RDMA_SETUP_SUDO_PASSWORD"], look))
		return err == nil
	})
	files := strings.Count(text, "\n")
	if files < 20 {
		s.t.Fatalf("guest %s has only %d files:\n%s", v.Name, files, text)
	}
	for line := range strings.Lines(text) {
		first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch rest = strings.TrimSpace(rest); {
		case first == "modules":
			out["guest "+v.Name+" "+first] = atBoot.ReplaceAllString(rest, "")
		case first == "units":
			out["guest "+v.Name+" "+first] = rest
		case !volatile.MatchString(rest):
			out["guest "+v.Name+" "+rest] = first
		}
	}
}

// ask runs a command in a guest, which may be starting still.
func (s *site) ask(v answers.VM, command string) (string, error) {
	s.t.Helper()
	key, err := os.ReadFile(filepath.Join(s.lab.Dir(), "id_ed25519"))
	if err != nil {
		s.t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := &ssh.ClientConfig{User: v.Guest.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 10 * time.Second}
	c, err := ssh.Dial("tcp", net.JoinHostPort(v.Guest.Address, strconv.Itoa(v.Guest.Port)), cfg)
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
