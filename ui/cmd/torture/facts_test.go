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

// passing matches facts of the lab's world that may differ for the same state: keys, certificates and addresses that are generated,
// times, counters, and the host of a VM, which DRS chooses, and its
// virtual function, which that host chooses at power-on.
var passing = regexp.MustCompile(
	`(^VMs\.[^.]+\.(Host|Adapters\.\d+\.VF)|BootTime|\.Booted|\.Boots|\.Changes|\.ID|\.ShellAddr|Guest\.Port|\.UUID|\.Created|\.Installed|Key|\.MAC|\.Stats\..*|\.Logs\..*)$`)

// numbered matches names that vCenter generates from such keys.
var numbered = regexp.MustCompile(`DVUplinks-[0-9]+`)

// facts returns the complete state: the world of the lab, field by field, and every file of every guest by its hash.
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

// flatten makes one entry of each leaf. The keys of a list of named elements contain their names.
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
	case nil: // an empty list and no list are equal
	default:
		out[at] = numbered.ReplaceAllString(fmt.Sprint(v), "DVUplinks")
	}
}

// look is the command that prints the state of a guest: files by hash, enabled units, loaded modules, packages.
const look = `for d in /boot /etc /home /lib /opt /root /srv /usr /var; do find $d -type f 2>/dev/null; done | sort | while read -r f; do sha256sum "$f"; done
echo modules $(cut -d " " -f 1 /proc/modules | sort)
echo units $(systemctl list-unit-files --state=enabled --no-legend 2>/dev/null | sort)`

// volatile matches files that a guest writes by itself, the key of the lab, and images that contain a date.
var volatile = regexp.MustCompile(
	`^/var/(cache|lib/apt/lists|lib/dpkg|lib/rpm|lib/dnf|lib/systemd|log|tmp)/|/[.]ssh/authorized_keys$|^/boot/initrd`)

// atBoot matches modules that the units of rdma-core and of the NVIDIA driver load at boot, or that nvidia-smi loads. Whether the
// guest has booted since the packages were installed may differ for the same state.
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

// ask runs a command in a guest that may still be starting.
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
	cfg := &ssh.ClientConfig{User: v.Guest.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		Timeout: 10 * time.Second}
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
