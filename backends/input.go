package backends

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// An Input is a kind of file or stream that the program reads. Its limit is enforced while reading, so that neither /dev/zero nor
// a wrong file name exhausts the memory. assets/docs/security.md lists all of them under "Limits of inputs".
type Input struct {
	Name   string // "a password file"
	Limit  int64  // bytes
	Secret bool   // only the owner may have access
	Script bool   // it controls what the program does: only the owner may write to it

	Mounted bool // container runtimes mount it, readable by everyone in the container
}

// The inputs of the program, each with its limit.
var (
	InputPassword   = Input{Name: "a password file", Limit: 64 << 10, Secret: true, Mounted: true}
	InputKey        = Input{Name: "a private key", Limit: 1 << 20, Secret: true}
	InputPublicKey  = Input{Name: "a public key", Limit: 1 << 20}
	InputSettings   = Input{Name: "the settings file", Limit: 1 << 20, Script: true}
	InputSSHConfig  = Input{Name: "the SSH client configuration", Limit: 4 << 20, Script: true}
	InputKnownHosts = Input{Name: "a known_hosts file", Limit: 16 << 20}
	InputCA         = Input{Name: "a file with CA certificates", Limit: 4 << 20}
	InputAnswers    = Input{Name: "answers", Limit: 2 << 20}
	InputProperty   = Input{Name: "the value of a property of an appliance", Limit: 1 << 20}
	InputPlan       = Input{Name: "a saved plan", Limit: 64 << 20}
	InputBaseline   = Input{Name: "a baseline", Limit: 64 << 20}
	InputDaemon     = Input{Name: "the daemon.json to merge", Limit: 1 << 20}
	InputState      = Input{Name: "a state file of this program", Limit: 1 << 20}
)

// ErrTooLarge is in the error chain of inputs that exceed their limit.
var ErrTooLarge = errors.New("too large")

const (
	secretsDir    = "/run/secrets"
	readOnlyMount = 1 // ST_RDONLY of statfs(2)
)

// pipeWait is how long to wait for the first byte of a named pipe.
const pipeWait = 10 * time.Second

// Read reads all of r. name is what errors call it.
func (in Input) Read(r io.Reader, name string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, in.Limit+1))
	if err == nil && int64(len(b)) > in.Limit {
		err = in.tooLarge(name)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (in Input) tooLarge(name string) error {
	return Errorf(KindUsage, "", "Name the correct file.", "%s is %w: the limit for %s is %s", name, ErrTooLarge, in.Name, SizeText(in.Limit))
}

// ReadFile reads a file, or a pipe such as /dev/stdin or a process substitution. A secret that others may read, or a file that
// others may write and that controls the program, is refused, as OpenSSH does.
func (in Input) ReadFile(path string) ([]byte, error) {
	f, info, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := in.permitted(path, info); err != nil {
		return nil, err
	}
	if info.Mode()&os.ModeNamedPipe == 0 || inherited(path) {
		return in.Read(f, path)
	}
	return in.readPipe(f, path)
}

// inherited reports whether a path names an open file of this process, such as the pipe of "--password-file <(command)". The pipe
// has a writer from the start and its end is final (pipe(7)), so it is read to the end without a timeout: a password manager may
// first prompt for its own password.
func inherited(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// Fits checks that a path is a regular file and not too large, before a library reads it. /dev/null counts as an empty file.
func (in Input) Fits(path string, info os.FileInfo) error {
	switch {
	case path == os.DevNull:
		return nil
	case !info.Mode().IsRegular():
		return Errorf(KindUsage, "", "Name a regular file.", "%s is not a regular file", path)
	case info.Size() > in.Limit:
		return in.tooLarge(path)
	}
	return in.permitted(path, info)
}

// open opens a file without blocking on a named pipe that has no writer.
func open(path string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &os.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

// readPipe reads a pipe, with a time limit for the first byte. A pipe without a writer reads as empty until a writer opens it.
func (in Input) readPipe(f *os.File, path string) ([]byte, error) {
	end := time.Now().Add(pipeWait)
	for {
		_ = f.SetReadDeadline(end) // not every pipe supports deadlines; the read then waits for the writer
		b, err := in.Read(f, path)
		if errors.Is(err, os.ErrDeadlineExceeded) || err == nil && len(b) == 0 && time.Now().After(end) {
			return nil, fmt.Errorf("%s is a pipe, and nothing was written to it for %s", path, pipeWait)
		}
		if err != nil || len(b) > 0 {
			return b, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// permitted applies the rules of OpenSSH: sshkey_perm_ok in authfile.c refuses a private key of this user that group or others
// may access (mode & 077); read_config_file in readconf.c refuses a configuration that group or others may write (mode & 022), or
// that belongs to neither this user nor root. As in Debian and Ubuntu, whose umask is 0002, a group without other members may
// write (their patch user-group-modes to OpenSSH). Permissions of pipes and devices are not checked.
func (in Input) permitted(path string, info os.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return nil
	}
	mode, me := info.Mode().Perm(), os.Getuid()
	if in.Secret && int(st.Uid) == me && mode&0o077 != 0 && !(in.Mounted && containerSecret(path, st.Uid, mode)) {
		return Errorf(KindUsage, "", "Run: chmod 600 "+path, "permissions %#o of %s, %s, are too open: only its owner may have access", mode,
			path, in.Name)
	}
	writable := mode & 0o022
	if writable == 0o020 && privateGroup(st.Gid, st.Uid) {
		writable = 0
	}
	if in.Script && writable != 0 {
		return Errorf(KindUsage, "", "Run: chmod go-w "+path, "permissions %#o of %s, %s, are too open: others may write to it", mode, path,
			in.Name)
	}
	if in.Script && st.Uid != 0 && int(st.Uid) != me {
		return Errorf(KindUsage, "", "Change its owner to your user, or name another file.", "%s, %s, belongs to another user (uid %d)", path,
			in.Name, st.Uid)
	}
	return nil
}

// containerSecret reports whether a file is a secret mounted by a container runtime: it belongs to root, only root may write to
// it, and it is below /run/secrets, where Docker and Podman mount secrets with mode 0444 (Docker documentation, "Manage sensitive
// data with Docker secrets"; podman-secret-create(1)), or on a read-only mount, like the volumes of Kubernetes secrets with mode
// 0644 (Kubernetes documentation, "Secrets", "Mounted Secrets"). Only the processes of the container can read it there.
func containerSecret(path string, uid uint32, mode os.FileMode) bool {
	if uid != 0 || mode&0o022 != 0 {
		return false
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // Kubernetes mounts links to ..data/NAME; /var/run is a link to /run
	}
	if abs, err := filepath.Abs(path); err == nil && strings.HasPrefix(abs, secretsDir+"/") {
		return true
	}
	var fs syscall.Statfs_t
	return syscall.Statfs(path, &fs) == nil && fs.Flags&readOnlyMount != 0
}

// privateGroup reports whether a group has no member but one user, by /etc/group and /etc/passwd. It returns false if they cannot
// be read.
func privateGroup(gid, uid uint32) bool {
	group, err := os.ReadFile("/etc/group")
	if err != nil {
		return false
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return false
	}
	id, owner := strconv.FormatUint(uint64(gid), 10), strconv.FormatUint(uint64(uid), 10)
	name := ""
	for line := range strings.Lines(string(passwd)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		switch {
		case len(f) < 4:
		case f[2] == owner:
			name = f[0]
		case f[3] == id:
			return false
		}
	}
	for line := range strings.Lines(string(group)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 4 && f[2] == id {
			return name != "" && (f[3] == "" || f[3] == name)
		}
	}
	return false
}

// SizeText formats a number of bytes for display: 64 KiB, 2.5 GiB.
func SizeText(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.size {
			if n%u.size == 0 {
				return fmt.Sprintf("%d %s", n/u.size, u.name)
			}
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// A JSONLimit bounds the structure of a JSON text in addition to its size: two bytes can encode a list element that takes
// hundreds of bytes in memory. 1,000 hosts with 10,000 VMs and their guests need less than half of InventoryJSON.
type JSONLimit struct {
	Rows    int // elements or members of one list or object at the top or the second level
	Objects int // objects, lists and nulls in total
	Values  int // values in total
}

// The limits for bundles and baselines, and for saved plans, which list every change of every target.
var (
	InventoryJSON = JSONLimit{Rows: 20_000, Objects: 400_000, Values: 3_000_000}
	PlanJSON      = JSONLimit{Rows: 250_000, Objects: 600_000, Values: 3_000_000}
)

// Check counts without decoding. It does not detect invalid JSON; the decoder does.
func (l JSONLimit) Check(text []byte) error {
	var rows [3]int
	depth, objects, values := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			objects++
			values++
			if depth < len(rows) {
				rows[depth] = 1
			}
		case '}', ']':
			depth--
		case 'n':
			objects++
		case ',':
			values++
			if depth > 0 && depth < len(rows) {
				if rows[depth]++; rows[depth] > l.Rows {
					return fmt.Errorf("%w: a list has more than %d elements", ErrTooLarge, l.Rows)
				}
			}
		}
		if objects > l.Objects || values > l.Values {
			return fmt.Errorf("%w: it has more than %d objects or %d values", ErrTooLarge, l.Objects, l.Values)
		}
	}
	return nil
}
