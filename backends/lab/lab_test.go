package lab_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v4"

	"github.com/rdma-setup/rdma-setup/backends/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A private lab's vCenter serves a client that dials through the lab, and no port of this machine leads to it.
func TestPrivate(t *testing.T) {
	l := start(t, lab.Options{Hosts: 1, VMs: 1, Private: true})
	taken := func() bool {
		ln, err := net.Listen("tcp", l.URL().Host)
		if err == nil {
			ln.Close()
		}
		return err != nil
	}
	during := taken()
	client := soap.NewClient(l.URL(), true)
	client.DefaultTransport().DialTLSContext = nil
	client.DefaultTransport().DialContext = func(ctx context.Context, _, addr string) (net.Conn, error) { return l.Dial(ctx, addr) }
	vim, err := vim25.NewClient(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if !vim.IsVC() {
		t.Errorf("it is %q, no vCenter", vim.ServiceContent.About.ApiType)
	}
	client.CloseIdleConnections()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if during && !taken() { // else another program has this port
		t.Errorf("the lab listened on the port of %s", l.URL().Host)
	}
}

func start(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	l, err := lab.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

// variables parses the file env as a shell does, for values without quotes.
func variables(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			t.Errorf("line %q", line)
		}
		env[name] = value
	}
	return env
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	l := start(t, lab.Options{Hosts: 3, VMs: 5, Dir: dir})
	env := variables(t, dir)
	for _, name := range []string{"GOVC_URL", "GOVC_USERNAME", "GOVC_PASSWORD", "GOVC_TLS_CA_CERTS", "RDMA_SETUP_KNOWN_HOSTS",
		"RDMA_SETUP_SSH_KEY", "RDMA_SETUP_ESXI_PASSWORD", "RDMA_SETUP_GUEST_PASSWORD", "RDMA_SETUP_SUDO_PASSWORD"} {
		if env[name] == "" {
			t.Errorf("%s is missing", name)
		}
		if !slices.Contains(l.Env(), name+"="+env[name]) {
			t.Errorf("Env and the file env differ in %s", name)
		}
	}
	if u, err := url.Parse(env["GOVC_URL"]); err != nil || u.User != nil || u.String() != l.URL().String() {
		t.Errorf("URL %q", env["GOVC_URL"])
	}
	for _, name := range []string{"GOVC_TLS_CA_CERTS", "RDMA_SETUP_KNOWN_HOSTS", "RDMA_SETUP_SSH_KEY"} {
		if info, err := os.Stat(env[name]); err != nil || !filepath.IsAbs(env[name]) || info.Size() == 0 {
			t.Errorf("%s=%s: %v", name, env[name], err)
		}
	}
	for name, want := range map[string]os.FileMode{dir: 0o700, env["RDMA_SETUP_SSH_KEY"]: 0o600, filepath.Join(dir, "env"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", name, info.Mode(), want)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, lab.Options{Hosts: 3, VMs: 5, Dir: dir})
	for _, mode := range []string{"pvrdma", "sriov", "gpudirect"} {
		text, err := os.ReadFile(filepath.Join(dir, "answers-"+mode+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var a struct {
			APIVersion string `yaml:"apiVersion"`
			Mode       string
			Hosts      struct{ Names []string }
			ESXi       struct{ Addresses map[string]string }
			GPUDirect  struct{ GPUs map[string][]string }
			VMs        []struct {
				Name, IP string
				Guest    struct {
					Address string
					Port    int
					User    string
				}
			}
		}
		if err := yaml.Unmarshal(text, &a); err != nil {
			t.Fatalf("%s: %v\n%s", mode, err, text)
		}
		if a.APIVersion != "rdma-setup/v1" || a.Mode != mode || len(a.Hosts.Names) != 3 || len(a.ESXi.Addresses) != 3 {
			t.Errorf("%s: %+v", mode, a)
		}
		if mode == "gpudirect" { // a VM gets a complete card, so only one VM per host has one
			if len(a.VMs) != 3 || a.VMs[2].Name != "vm-03" || len(a.GPUDirect.GPUs["vm-03"]) != 1 {
				t.Errorf("%s: %+v", mode, a)
			}
			continue
		}
		if len(a.VMs) != 5 {
			t.Errorf("%s: %d VMs", mode, len(a.VMs))
		} else if v := a.VMs[4]; v.Name != "vm-05" || v.IP != "192.168.50.15/24" || v.Guest.Address != "127.0.0.1" || v.Guest.Port == 0 ||
			v.Guest.User == "" {
			t.Errorf("%s: VM %+v", mode, v)
		}
	}
}

func TestTemporaryDirectoryIsRemoved(t *testing.T) {
	t.Parallel()
	l, err := lab.Start(t.Context(), lab.Options{Hosts: 1, VMs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.Dir()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(l.Dir()); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, o := range map[string]lab.Options{
		"scenario":  {Scenario: "nosuch"},
		"fault":     {Faults: []string{"do=explode"}},
		"address":   {Listen: busy.Addr().String()},
		"too large": {Hosts: 100000},
		"system":    {Systems: []string{"ubuntu-22.04", "plan9-4"}},
	} {
		if l, err := lab.Start(t.Context(), o); err == nil {
			t.Errorf("%s was accepted", name)
			_ = l.Close()
		}
	}
}

// Two labs in one process are independent of each other.
func TestLabsAreIndependent(t *testing.T) {
	t.Parallel()
	a, b := start(t, lab.Options{Hosts: 1, VMs: 1}), start(t, lab.Options{Hosts: 1, VMs: 1})
	login(t, a)
	if a.Calls() == 0 || b.Calls() != 0 {
		t.Errorf("calls %d and %d", a.Calls(), b.Calls())
	}
}

func login(t *testing.T, l *lab.Lab) *vim25.Client {
	t.Helper()
	env := map[string]string{}
	for _, line := range l.Env() {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	authority, err := os.ReadFile(env["GOVC_TLS_CA_CERTS"])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	sc := soap.NewClient(l.URL(), false)
	sc.DefaultTransport().TLSClientConfig.RootCAs = x509.NewCertPool()
	sc.DefaultTransport().TLSClientConfig.RootCAs.AppendCertsFromPEM(authority)
	t.Cleanup(sc.CloseIdleConnections)
	c, err := vim25.NewClient(ctx, sc)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.NewManager(c).Login(ctx, url.UserPassword(env["GOVC_USERNAME"], env["GOVC_PASSWORD"])); err != nil {
		t.Fatal(err)
	}
	return c
}

func BenchmarkStart(b *testing.B) {
	for _, size := range []struct{ hosts, vms int }{{4, 8}, {500, 2000}} {
		b.Run(fmt.Sprintf("%d hosts", size.hosts), func(b *testing.B) {
			for b.Loop() {
				l, err := lab.Start(b.Context(), lab.Options{Hosts: size.hosts, VMs: size.vms, Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BELIEFS.md must list every scenario, because a scenario is an assumption about real sites that has to be documented.
func TestEachScenarioIsInBeliefs(t *testing.T) {
	text, err := os.ReadFile("BELIEFS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lab.Scenarios() {
		if !strings.Contains(string(text), "| `"+name+"` |") {
			t.Errorf("BELIEFS.md does not name the scenario %s", name)
		}
	}
}

// Each entry in BELIEFS.md names an existing file, a source and a second witness. Each package of the lab has an entry.
func TestEachPackageHasABelief(t *testing.T) {
	text, err := os.ReadFile("BELIEFS.md")
	if err != nil {
		t.Fatal(err)
	}
	beliefs, _, _ := strings.Cut(string(text), "\n## Scenarios\n")
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([a-z_/]+\\.go)` \\| [^|]+ \\| [^|]+ \\|$")
	rows, named := row.FindAllStringSubmatch(beliefs, -1), map[string]bool{".": true} // the package lab only combines the others
	if all := strings.Count(beliefs, "\n| ") - 2*strings.Count(beliefs, "\n| belief | where | source | second witness |\n"); len(
		rows) != all || all < 80 {
		t.Errorf("%d of %d rows are whole", len(rows), all)
	}
	for _, r := range rows {
		if _, err := os.Stat(r[1]); err != nil {
			t.Errorf("a belief names %s: %v", r[1], err)
		}
		named[path.Dir(r[1])] = true
	}
	if err := fs.WalkDir(os.DirFS("."), ".", func(file string, _ fs.DirEntry, err error) error {
		if dir := path.Dir(file); path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") && !named[dir] {
			t.Errorf("no belief names a file of %s", dir)
			named[dir] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
