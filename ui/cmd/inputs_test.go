package cmd_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
)

// mostMemory returns the memory limit of the program for any input; the race detector itself uses up to ten times as much.
func mostMemory() int64 {
	if testclass.Race {
		return 5000 << 20
	}
	return 500 << 20
}

// runMeasured runs the program as a separate process and returns its exit code, its output and its largest resident set.
func runMeasured(t *testing.T, stdin io.Reader, env []string, args ...string) (code int, said string, rss int64) {
	t.Helper()
	dir := t.TempDir()
	peak := filepath.Join(dir, "peak")
	c := exec.CommandContext(t.Context(), "rdma-setup", args...)
	var out bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr, c.Dir = stdin, &out, &out, dir
	c.Env = append(append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir, "GOVC_USERNAME=u", "GOGC=",
		peakVariable+"="+peak), env...)
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	b := testclass.Read(t, peak)
	kib, err := strconv.ParseInt(string(b), 10, 64)
	testclass.OK(t, err)
	return c.ProcessState.ExitCode(), out.String(), kib << 10
}

// repeated is a file that consists of head, as many pieces as fit below size, and tail.
func repeated(t *testing.T, name, head, piece, tail string, size int) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(head)
	for b.Len() < size-len(piece)-len(tail) {
		b.WriteString(piece)
	}
	b.WriteString(strings.TrimRight(piece, ","))
	b.WriteString(tail)
	path := filepath.Join(t.TempDir(), name)
	testclass.OK(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// bundleOf returns a bundle that contains only this inventory.
func bundleOf(t *testing.T, inventory string) string {
	t.Helper()
	texts := map[string]string{"inventory.json": inventory, "guests.json": "null", "pairs.json": "null", "facts.json": "{}"}
	sums := map[string]string{}
	for name, text := range texts {
		sum := sha256.Sum256([]byte(text))
		sums[name] = hex.EncodeToString(sum[:])
	}
	head, err := json.Marshal(map[string]any{"schema": 2, "kind": "rdma-setup bundle", "files": sums})
	testclass.OK(t, err)
	path := filepath.Join(t.TempDir(), "bundle.tgz")
	f, err := os.Create(path)
	testclass.OK(t, err)
	zip := gzip.NewWriter(f)
	w := tar.NewWriter(zip)
	add := func(name, text string) {
		testclass.OK(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o600}))
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	add("bundle.json", string(head))
	for _, name := range []string{"inventory.json", "guests.json", "pairs.json", "facts.json"} {
		add(name, texts[name])
	}
	testclass.OK(t, errors.Join(w.Close(), zip.Close(), f.Close()))
	return path
}

// sparseAppliance is an archive of 2 kB whose descriptor is a sparse file of 13 GB (tar's old GNU format).
func sparseAppliance(t *testing.T) string {
	t.Helper()
	b := make([]byte, 2048)
	for at, text := range map[int]string{0: "x.ovf", 100: "0000600\x00", 124: "00000000000\x00", 136: "00000000000\x00", 148: "        ",
		156: "S", 257: "ustar  \x00", 483: fmt.Sprintf("%011o\x00", int64(98)<<27)} {
		copy(b[at:], text)
	}
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	path := filepath.Join(t.TempDir(), "x.ova")
	testclass.Write(t, path, string(b))
	return path
}

// TestInputsAreLimited exceeds the limit of every input that is read before login.
func TestInputsAreLimited(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	s := fakeVCenter(t, func(w io.Writer, method string) {})
	vc := "--url=" + s.URL + "/sdk"
	answers := filepath.Join(t.TempDir(), "answers.yaml")
	testclass.Write(t, answers, "mode: pvrdma\n")
	row := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	for _, tt := range []struct {
		name string
		code int
		says string
		args []string
	}{
		{"a password file without end", 2, "limit for a password file is 64 KiB", []string{"discover", vc, "--password-file=/dev/zero"}},
		{"a password on stdin without end", 2, "longer than 64 KiB", []string{"discover", vc, "--password-stdin"}},
		{"settings without end", 2, "limit for the settings file is 1 MiB", []string{"discover", "--config=/dev/zero"}},
		{"CA certificates without end", 2, "limit for a file with CA certificates is 4 MiB", []string{"discover", vc, "--ca-certs=/dev/zero"}},
		{"answers without end", 2, "limit for answers", []string{"plan", "-f", "/dev/zero"}},
		{"answers on stdin without end", 2, "limit for answers", []string{"plan", "-f", "-"}},
		{"answers of two million elements", 2, "", []string{"plan", "-f", repeated(t, "answers.yaml", "mode: [", "1,", "]", 2<<20)}},
		{"answers of nested lists", 2, "", []string{"plan", "-f", repeated(t, "answers.yaml", "mode: ", "[", "", 2<<20)}},
		{"a plan without end", 2, "limit for a saved plan is 64 MiB", []string{"apply", vc, "-f", answers, "--plan=/dev/zero"}},
		{"a plan of millions of changes", 2, "more than 250000 elements",
			[]string{"apply", vc, "-f", answers, "--plan", repeated(t, "plan.json", `{"hash":"x","changes":[`, "{},", "]}", 16<<20)}},
		{"daemon.json without end", 2, "limit for the daemon.json", []string{"generate", "daemon-json", "--merge=/dev/zero"}},
		{"an appliance whose descriptor says that it has 13 GB", 2, "not a regular file", []string{"deploy", vc, sparseAppliance(t)}},
		{"a bundle of three million hosts", 3, "20000 rows", []string{"check", "--bundle", bundleOf(t, `{"hosts":[`+row(3_000_000, "{}")+`]}`)}},
		{"a bundle of three million empty hosts", 3, "20000 rows",
			[]string{"check", "--bundle", bundleOf(t, `{"hosts":[`+row(3_000_000, "null")+`]}`)}},
		{"a bundle of many NICs", 3, "too large", []string{"check", "--bundle", bundleOf(t, `{"hosts":[{"nics":[`+row(3_000_000, "{}")+`]}]}`)}},
		{"a bundle of many names", 3, "too large",
			[]string{"check", "--bundle", bundleOf(t, `{"hosts":[{"datastores":[`+row(6_000_000, `""`)+`]}]}`)}},
		{"a bundle that is within all limits", -1, "",
			[]string{"check", "--bundle", bundleOf(t, `{"hosts":[`+row(19_000, "{}")+`,{"nics":[`+row(300_000, "{}")+`]}],"vms":[`+row(19_000, "{}")+
				`]}`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			zero, err := os.Open("/dev/zero")
			testclass.OK(t, err)
			defer zero.Close()
			env := []string{"GOVC_INSECURE=1"}
			if tt.args[0] == "apply" {
				env = append(env, "GOVC_PASSWORD=p")
			}
			code, said, rss := runMeasured(t, zero, env, tt.args...)
			if len(said) > 2000 {
				said = said[:2000]
			}
			if tt.code >= 0 && code != tt.code || !strings.Contains(said, tt.says) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, tt.code, tt.says, said)
			}
			if rss > mostMemory() {
				t.Errorf("it took %s of memory:\n%s", backends.SizeText(rss), said)
			}
			t.Logf("%s of memory", backends.SizeText(rss))
		})
	}
}

// The replies of a vCenter that accepts every password.
const (
	soapHead = `<?xml version="1.0"?><Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><Body>`
	soapTail = `</Body></Envelope>`
	content  = `<returnval><rootFolder type="Folder">f</rootFolder><propertyCollector type="PropertyCollector">p</propertyCollector>` +
		`<viewManager type="ViewManager">v</viewManager><about><name>x</name><fullName>x</fullName><vendor>x</vendor><version>8.0.3</version>` +
		`<build>1</build><osType>x</osType><productLineId>vpx</productLineId><apiType>VirtualCenter</apiType><apiVersion>8.0.3.0</apiVersion></about>` +
		`<sessionManager type="SessionManager">s</sessionManager></returnval>`
	login = `<returnval><key>k</key><userName>u</userName><fullName>u</fullName><loginTime>2026-01-01T00:00:00Z</loginTime>` +
		`<lastActiveTime>2026-01-01T00:00:00Z</lastActiveTime><locale>en</locale><messageLocale>en</messageLocale></returnval>`
)

var methodCalled = regexp.MustCompile(`Body[^>]*><(?:\w+:)?(\w+)`)

// fakeVCenter answers as a vCenter does; reply can write something before each answer.
func fakeVCenter(t *testing.T, reply func(w io.Writer, method string)) *httptest.Server {
	t.Helper()
	known := map[string]string{"RetrieveServiceContent": content, "Login": login,
		"CreateContainerView": `<returnval type="ContainerView">c</returnval>`}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		method := ""
		if m := methodCalled.FindSubmatch(b); m != nil {
			method = string(m[1])
		}
		w.Header().Set("Content-Type", "text/xml")
		reply(w, method)
		fmt.Fprint(w, soapHead, "<", method, `Response xmlns="urn:vim25">`, known[method], "</", method, "Response>", soapTail)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestRepliesAreLimited has vCenters send replies that do not fit into memory, before and after the password is sent.
func TestRepliesAreLimited(t *testing.T) {
	testclass.Full(t)
	t.Parallel()
	type reply struct {
		name, head, piece string
		before            bool // the oversized reply is already the first one
		says              string
	}
	var more []reply
	if testclass.Sized(t) { // these take a while
		more = []reply{
			{"objects before log-in", "", `<about/>`, true, "not a vCenter"},
			{"nested values", `<objects><propSet><name>x</name>`, `<val xsi:type="ArrayOfAnyType"><anyType xsi:type="ArrayOfAnyType">`, false,
				"128 elements in one another"},
			{"one value in quotes", `<token a="`, "x", false, "bytes in one text"},
			{"objects", "", `<objects/>`, false, "1200000 elements"},
			{"properties", `<objects>`, `<propSet/>`, false, "1200000 elements"},
			{"typed values", `<objects>`, `<propSet><name>x</name><val xsi:type="HostConfigInfo"></val></propSet>`, false, "200000 typed elements"},
		}
	}
	for _, tt := range append([]reply{
		{"nested before log-in", "", `<about>`, true, "not a vCenter"},
		{"one word before log-in", "", "x", true, "not a vCenter"},
		{"nested", "", `<objects>`, false, "128 elements in one another"},
		{"one word", `<token>`, "x", false, "bytes in one text"},
		{"long words", `<objects><propSet><name>`, strings.Repeat("x", 1<<20) + `</name></propSet><propSet><name>`, false,
			"longer than 67108864 bytes"},
	}, more...) {
		t.Run(tt.name, func(t *testing.T) {
			piece := strings.Repeat(tt.piece, max(1, (64<<10)/len(tt.piece)))
			s := fakeVCenter(t, func(w io.Writer, method string) {
				if !tt.before && method != "RetrievePropertiesEx" {
					return
				}
				text := soapHead + `<` + method + `Response xmlns="urn:vim25"><returnval>` + tt.head
				for range 512 << 20 / len(piece) {
					if _, err := io.WriteString(w, text); err != nil {
						return
					}
					text = piece
				}
			})
			code, said, rss := runMeasured(t, nil, []string{"GOVC_PASSWORD=p", "GOVC_INSECURE=1"}, "discover", "--url="+s.URL+"/sdk")
			if code == 0 || !strings.Contains(said, tt.says) {
				t.Errorf("exit %d, want %q:\n%s", code, tt.says, said)
			}
			if rss > mostMemory() {
				t.Errorf("it took %s of memory", backends.SizeText(rss))
			}
			t.Logf("%s of memory", backends.SizeText(rss))
		})
	}
}
