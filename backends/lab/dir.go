package lab

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"embed"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

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
	t, err := template.New("answers.yaml.tmpl").Funcs(template.FuncMap{"quote": strconv.Quote, "number": func(i int) int { return i + 1 }}).ParseFS(templates, "answers.yaml.tmpl")
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
