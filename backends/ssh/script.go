package ssh

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
)

// Quote quotes s as one word for a POSIX shell, whatever s contains. NUL bytes cannot be passed to a program and are dropped.
func Quote(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	if s != "" && strings.IndexFunc(s, needsQuotes) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func needsQuotes(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:,+@", r))
}

// QuoteAll quotes each argument and joins them with blanks.
func QuoteAll(argv ...string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = Quote(a)
	}
	return strings.Join(words, " ")
}

// bootstrap returns the command for the login shell without its last word, the mark, which is the script's second argument. The
// login shell may be bash, fish, csh or zsh. They agree on little: in single quotes, a backslash is literal unless a quote, a
// backslash, a newline or ! follows (fish and csh). So the script contains none of these: printf restores them from octal escapes
// (POSIX printf, %b).
func bootstrap(script string) string {
	return `exec /bin/sh -c 'eval "$(printf %b "$1")"' sh '` + escapes.Replace(script) + `' `
}

// framed identifies a script in its frame: many guests run the same ones.
type framed struct {
	script         string
	sudo, password bool
}

// keptCommands bounds the commands in each of the two maps of a pool, each of some 10 KB.
const keptCommands = 64

// command returns the command for the login shell that runs a script in a frame.
func (p *Pool) command(f frame, script string) string {
	key := framed{script, f.sudo, f.password}
	p.mu.Lock()
	text, recent := p.framed[key]
	known := recent
	if !recent {
		text, known = p.framedBefore[key]
	}
	p.mu.Unlock()
	if !known {
		text = bootstrap(f.outer(script))
	}
	if !recent {
		p.mu.Lock()
		if len(p.framed) >= keptCommands { // those that only one guest ran are forgotten with the older map
			p.framed, p.framedBefore = map[framed]string{}, p.framed
		}
		p.framed[key] = text
		p.mu.Unlock()
	}
	return text + f.mark
}

var escapes = strings.NewReplacer("\x00", "", `\`, `\0134`, "'", `\0047`, "!", `\0041`, "\n", `\n`)

// A frame wraps a script: markers around its output separate it from the output of login shells, profiles and sudo, and its
// process group is reported so that it can be ended. The mark is an argument, so that a script has one text each time it runs.
type frame struct {
	mark     string
	sudo     bool
	password bool // sudo will read one from standard input
}

func newFrame() frame {
	b := make([]byte, 8)
	rand.Read(b)
	return frame{mark: hex.EncodeToString(b)}
}

func (f frame) begin() string { return "<<" + f.mark + " " }
func (f frame) end() string   { return ">>" + f.mark + " " }

const environment = `PATH="${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LC_ALL=C LANGUAGE= HISTFILE=
export PATH LC_ALL LANGUAGE
unset ENV BASH_ENV
`

// outer is run by the user, inner by root or the user. The process group is reported only if it belongs to this command alone:
// its leader is this shell or its sudo, not the server that started it.
func (f frame) outer(script string) string {
	inner := f.inner(script)
	if !f.sudo {
		return environment + "set -- \"$SSH_CONNECTION\" \"$(ulimit -l)\" \"$2\"\n" + inner
	}
	flags := "-n"
	if f.password {
		flags = "-S -p ''"
	}
	return environment + "exec sudo " + flags + " -- /bin/sh -c " + Quote(environment+inner) +
		" sh \"$SSH_CONNECTION\" \"$(ulimit -l)\" \"$2\"\n"
}

func (f frame) inner(script string) string {
	var b strings.Builder
	b.WriteString(`SSH_CONNECTION=$1 SSH_MEMLOCK=$2 rds_m=$3
shift 3
rds_g=0
if [ -r /proc/$$/stat ]; then
	read -r rds_x rds_x rds_x rds_x rds_g rds_x </proc/$$/stat
	read -r rds_x </proc/$rds_g/comm || rds_x=
	case $rds_x in *sh|sudo|busybox) ;; *) rds_g=0 ;; esac
fi
printf '%s\n' "<<$rds_m $rds_g"
printf '%s\n' "<<$rds_m " >&2
`)
	if f.password {
		// If sudo did not ask, the password is still in the stream: skip it.
		b.WriteString("while IFS= read -r rds_x; do [ \"$rds_x\" = \"$rds_m\" ] && break; done\n")
	}
	b.WriteString("unset rds_x rds_g\n( eval " + Quote(script) + "\n)\nset -- $?\nprintf '%s\\n' \">>$rds_m $1\"\nexit $1\n")
	return b.String()
}

func killScript(group int) string { return Script("kill-group.sh", strconv.Itoa(group)) }

// Script returns a script of assets/scripts with its arguments.
func Script(name string, args ...string) string {
	return "set -- " + QuoteAll(args...) + "\n" + assets.Script(name)
}

// Excerpt makes remote output safe and short enough for one line of an error.
func Excerpt(s string) string { return backends.Clean(backends.Shorten(strings.TrimSpace(s), 400)) }

// Put writes a file as root atomically: to a temporary file in the same directory that replaces it when it is complete. owner is
// "user:group", "" for root. The directory must exist.
func (c *Conn) Put(ctx context.Context, name string, content []byte, mode fs.FileMode, owner string) error {
	if !path.IsAbs(name) {
		return backends.Usagef(c.target.String(), "", "write %s: the path is not absolute", name)
	}
	r, err := c.Run(ctx, Command{Script: PutScript(name, len(content), mode, owner), Stdin: content, Sudo: true})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return c.fileError("write", name, r)
}

// PutScript returns the script of Put, which reads the content from standard input.
func PutScript(name string, size int, mode fs.FileMode, owner string) string {
	if owner == "" {
		owner = "0:0"
	}
	return Script("put-file.sh", name, strconv.Itoa(size), fmt.Sprintf("%04o", mode.Perm()), owner)
}

const exitMissing = 44

// ReadFile reads a file as root, at most 1 MiB; fs.ErrNotExist is in the error chain if there is none.
func (c *Conn) ReadFile(ctx context.Context, name string) ([]byte, error) {
	q := Quote(name)
	r, err := c.Run(ctx, Command{Script: fmt.Sprintf("[ -e %s ] || [ -L %[1]s ] || exit %d\ncat %[1]s", q, exitMissing), Sudo: true})
	if errors.Is(err, ErrTooMuch) {
		return nil, backends.Permanentf(c.target.String(), "", "read %s: it is longer than %s", name, inBytes(defaultOutput))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if r.ExitCode == exitMissing {
		return nil, backends.Permanentf(c.target.String(), "", "read %s: %w", name, fs.ErrNotExist)
	}
	return []byte(r.Stdout), c.fileError("read", name, r)
}

func (c *Conn) fileError(verb, name string, r Result) error {
	if r.ExitCode == 0 {
		return nil
	}
	said := Excerpt(r.Stderr)
	hint := ""
	kind := backends.KindPermanent
	switch {
	case strings.Contains(said, "No space left"):
		hint = "Free some space on that file system."
	case strings.Contains(said, "Read-only file system"):
		hint = "The file system is mounted read-only. Check the kernel log for errors."
	case strings.Contains(said, "ermission denied"), strings.Contains(said, "not permitted"):
		kind = backends.KindPermission
	case said == "":
		said = fmt.Sprintf("exit code %d", r.ExitCode)
	}
	return backends.Errorf(kind, c.target.String(), hint, "%s %s: %w", verb, name, errors.New(said))
}
