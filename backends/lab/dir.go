package lab

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"embed"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/vmware/govmomi/vim25/types"
	"golang.org/x/crypto/ssh"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter"
	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

//go:embed answers.yaml.tmpl
var templates embed.FS

// modes are the modes for which a lab writes an answers file.
var modes = []string{"pvrdma", "sriov", "gpudirect"}

// A key is the SSH key that guests and ESXi shells accept.
type key struct {
	private    []byte // PEM
	authorized string
}

func newKey() (key, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return key{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "rdma-setup lab")
	if err != nil {
		return key{}, err
	}
	signer, err := ssh.NewPublicKey(public)
	if err != nil {
		return key{}, err
	}
	return key{private: pem.EncodeToMemory(block), authorized: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer)))}, nil
}

// write writes the files of the lab's directory.
func (l *Lab) write(k key, authority []byte) error {
	at := func(name string) string { return filepath.Join(l.dir, name) }
	l.env = []string{
		"GOVC_URL=" + l.vc.URL.String(),
		"GOVC_USERNAME=" + l.User(),
		"GOVC_PASSWORD=" + vcenter.Password,
		"GOVC_TLS_CA_CERTS=" + at("ca.pem"),
		"RDMA_SETUP_KNOWN_HOSTS=" + at("known_hosts"),
		"RDMA_SETUP_SSH_KEY=" + at("id_ed25519"),
		"RDMA_SETUP_ESXI_PASSWORD=" + l.world.Secrets.ESXi,
		"RDMA_SETUP_GUEST_PASSWORD=" + l.world.Secrets.Guest,
		"RDMA_SETUP_SUDO_PASSWORD=" + l.world.Secrets.Sudo,
	}
	var env strings.Builder
	for _, line := range l.env {
		name, value, _ := strings.Cut(line, "=")
		fmt.Fprintf(&env, "%s=%s\n", name, shellWord(value))
	}
	files := map[string][]byte{
		"ca.pem":      authority,
		"known_hosts": l.shells.KnownHosts(),
		"id_ed25519":  k.private,
		"env":         []byte(env.String()),
	}
	for _, mode := range modes {
		text, err := l.answers(mode)
		if err != nil {
			return err
		}
		files["answers-"+mode+".yaml"] = text
	}
	for name, content := range files {
		// Writing to an existing file does not change its mode, so the file is removed first.
		if err := os.Remove(at(name)); err != nil && !os.IsNotExist(err) {
			return err
		}
		if err := os.WriteFile(at(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// answers returns the answers file for a mode, with all hosts and VMs of the lab.
func (l *Lab) answers(mode string) ([]byte, error) {
	t, err := template.New("answers.yaml.tmpl").Funcs(template.FuncMap{"quote": strconv.Quote, "number": func(i int) int { return i + 1 }}).
		ParseFS(templates, "answers.yaml.tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	l.world.View(func(s *world.State) {
		a := labAnswers{Mode: mode, URL: l.vc.URL.String(), User: user(s), Listed: s.Asked(), GPUs: s.GPUs, State: s}
		if mode == "gpudirect" && s.HCA == "" {
			a.Listed, a.GPUs = s.OneEach()
		}
		err = t.Execute(&out, a)
	})
	return out.Bytes(), err
}

// labAnswers contains the values for the answers template.
type labAnswers struct {
	Mode, URL, User string
	Listed          []*world.VM
	GPUs            map[string][]string
	*world.State
}

// Exit returns the exit code of apply if it must refuse these answers, or "" if nothing prevents it.
func (a labAnswers) Exit() string { return a.Refused[a.Mode] }

// User returns the account that users log in to vCenter with.
func (l *Lab) User() (name string) {
	l.world.View(func(s *world.State) { name = user(s) })
	return name
}

func user(s *world.State) string {
	if s.Reader {
		return vcenter.ReadOnly
	}
	return vcenter.Admin
}

// shellWord quotes a value for a POSIX shell if necessary.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@,+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// internalMethods are those of vCenter that esxcli uses. The public API does not contain them.
var internalMethods = []string{"ExecuteSoap", "RetrieveManagedMethodExecuter", "RetrieveDynamicTypeManager"}

// IsMethod reports whether the vSphere Web Services API has a method, with or without _Task.
func IsMethod(name string) bool {
	if slices.Contains(internalMethods, name) {
		return true
	}
	_, ok := types.TypeFunc()(strings.TrimSuffix(name, "_Task") + "RequestType")
	return ok
}

// IsFault reports whether the vSphere Web Services API has a fault.
func IsFault(name string) bool {
	t, ok := types.TypeFunc()(name)
	if !ok {
		return false
	}
	_, ok = reflect.New(t).Interface().(types.BaseMethodFault)
	return ok
}

// allVMs is the directory of guest files that every VM gets.
const allVMs = "all"

// layFiles adds the files below dir to the guests: dir/all/PATH to all of them, then dir/VM/PATH to one. Symbolic links stay links.
func layFiles(w *world.World, dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := map[string][]world.File{}
	for _, e := range list {
		if found[e.Name()], err = filesBelow(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return w.Update(func(s *world.State) ([]world.Event, error) {
		for name := range found {
			if name != allVMs && s.VM(name) == nil {
				return nil, fmt.Errorf("%s: the lab has no VM %q", filepath.Join(dir, name), name)
			}
		}
		for _, v := range s.VMs {
			v.Guest.Files = append(append(v.Guest.Files, found[allVMs]...), found[v.Name]...)
		}
		return nil, nil
	})
}

func filesBelow(dir string) ([]world.File, error) {
	var files []world.File
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f := world.File{Path: strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(dir)), Mode: 0o644}
		switch {
		case f.Path == "":
			return fmt.Errorf("%s: expected a directory with the name of a VM", name)
		case e.Type()&fs.ModeSymlink != 0:
			f.Link, err = os.Readlink(name)
		case e.Type().IsRegular():
			var text []byte
			text, err = os.ReadFile(name)
			f.Text = string(text)
		default:
			return fmt.Errorf("%s: neither a file nor a symbolic link", name)
		}
		// netplan warns about files that others can read; NetworkManager ignores them (nm-settings-keyfile(5)).
		if parent := filepath.Base(filepath.Dir(name)); parent == "netplan" || parent == "system-connections" {
			f.Mode = 0o600
		}
		files = append(files, f)
		return err
	})
	return files, err
}
