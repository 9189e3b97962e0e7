package coreutils_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rdma-setup/rdma-setup/backends/lab/shell/coreutils"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/sh"
	"github.com/rdma-setup/rdma-setup/backends/lab/shell/vfs"
)

func run(t *testing.T, line string) (string, string, int) {
	t.Helper()
	now := func() time.Time { return time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC) }
	s := &sh.System{FS: vfs.New(now), Programs: coreutils.Programs(), Now: now}
	for name := range s.Programs {
		if err := s.Install(name, "/usr/bin/"+name); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		s.FS.MkdirAll(vfs.Root(), "/data", 0o755), s.FS.MkdirAll(vfs.Root(), "/tmp", 0o777), s.FS.MkdirAll(vfs.Root(), "/etc", 0o755),
		s.FS.WriteFile(vfs.Root(), "/etc/passwd", []byte("root:x:0:0::/root:/bin/sh\nkim:x:7:7::/home/kim:/bin/sh\n"), 0o644),
		s.FS.WriteFile(vfs.Root(), "/etc/group", []byte("root:x:0:\n"), 0o644),
		s.FS.WriteFile(vfs.Root(), "/data/t", []byte("one 1\ntwo 2\nthree 3\ntwo 22\n"), 0o640),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var out, stderr bytes.Buffer
	p := &sh.Proc{Args: []string{"bash", "-c", line}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &stderr, Dir: "/data", Sys: s,
		User: sh.User{Name: "root", GIDs: []int{0}, Home: "/root"}, Session: &sh.Session{}, Env: []string{"PATH=/usr/bin"}}
	status, err := s.Exec(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), stderr.String(), status
}

func TestPrograms(t *testing.T) {
	for line, want := range map[string]string{
		"grep -n two t":                                         "2:two 2\n4:two 22\n",
		"grep -c two t; grep -v two t | wc -l":                  "2\n2\n",
		"grep -q '^three' t && echo yes":                        "yes\n",
		"grep -E -o '[0-9]+$' t | sort -n | tail -1":            "22\n",
		"grep -F 'o 2' t | head -1":                             "two 2\n",
		"grep -w 2 t":                                           "two 2\n",
		"grep -l two /data/t /etc/passwd":                       "/data/t\n",
		"sed -n 's/^two \\(.*\\)/<\\1>/p' t":                    "<2>\n<22>\n",
		"sed -e '/two/d' t":                                     "one 1\nthree 3\n",
		"sed -i 's/one/ONE/' t; head -n1 t; stat -c %a t":       "ONE 1\n640\n",
		"sed '$d' t | tail -1":                                  "three 3\n",
		"cut -d' ' -f2 t | sort -rnu | head -2":                 "22\n3\n",
		"echo a:b:c | cut -d: -f2-":                             "b:c\n",
		"awk '{print $2}' t | head -1":                          "1\n",
		"echo abc | tr a-c A-C":                                 "ABC\n",
		"printf 'a b\\n' | tr -d ' \\n'":                        "ab",
		"echo hi | base64 | base64 -d":                          "hi\n",
		"printf x | sha256sum | cut -c1-8":                      "2d711642\n",
		"cp -p t u; chmod 0700 u; stat -c %a u":                 "700\n",
		"mkdir -p d/e; cp -r d f; ls f":                         "e\n",
		"mv t v; ls":                                            "v\n",
		"ln -s t l; readlink l; cat l | head -1; readlink -f l": "t\none 1\n/data/t\n",
		"f=$(mktemp /tmp/x.XXXX); test -f $f && stat -c %a $f":  "600\n",
		"find /data -type f -name 't*'":                         "/data/t\n",
		"find /data ! -type d -name 't*'":                       "/data/t\n",
		"date -u +%Y-%m-%d":                                     "2024-05-06\n",
		"basename /a/b.conf .conf; dirname /a/b.conf":           "b\n/a\n",
		"echo 1 2 | xargs -n 2 echo got":                        "got 1 2\n",
		"seq 3 | tail -n +2":                                    "2\n3\n",
		"test 2 -gt 1 && test -d /data && echo ok":              "ok\n",
	} {
		t.Run(line, func(t *testing.T) {
			out, stderr, _ := run(t, line)
			if out != want {
				t.Errorf("got %q (%s), want %q", out, stderr, want)
			}
		})
	}
}

func TestComplaints(t *testing.T) {
	for _, tc := range []struct {
		line, want string
		status     int
	}{
		{"cat nope", "cat: nope: No such file or directory", 1},
		{"cat /data", "cat: /data: Is a directory", 1},
		{"rm /data", "rm: cannot remove '/data': Is a directory", 1},
		{"rm nope", "rm: cannot remove 'nope': No such file or directory", 1},
		{"rmdir /", "rmdir: failed to remove '/': Device or resource busy", 1},
		{"mkdir /a/b", "mkdir: cannot create directory '/a/b': No such file or directory", 1},
		{"ls /nope", "ls: cannot access '/nope': No such file or directory", 2},
		{"grep --frob x", "grep: unrecognized option '--frob'", 2},
		{"sed 'y/a/b/' t", "sed: -e expression #1, char 1: unknown command: `y'", 1},
		{"kill 99999", "kill: (99999) - No such process", 1},
		{"kill abc", "kill: abc: arguments must be process or job IDs", 1},
		{"timeout 1 nope", "timeout: failed to run command 'nope': No such file or directory", 127},
		{"chown nobody t", "chown: invalid user: 'nobody'", 1},
		{"awk 'BEGIN{x=1}'", "awk: line 1: syntax error", 2},
		{"cp t", "cp: missing destination file operand after 't'", 1},
		{"mktemp aXX", "mktemp: too few X's in template 'aXX'", 1},
	} {
		t.Run(tc.line, func(t *testing.T) {
			_, stderr, status := run(t, tc.line)
			if !strings.HasPrefix(stderr, tc.want) || status != tc.status {
				t.Errorf("got %q, %d, want %q, %d", stderr, status, tc.want, tc.status)
			}
		})
	}
}
