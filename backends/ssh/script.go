package ssh

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/backends"
)

// Quote makes one word of s for a POSIX shell, whatever s holds. A NUL byte cannot be passed to any program and is
// dropped.
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

// bootstrap is what the login shell gets to read. The login shell may be bash, fish, csh or zsh, which agree on little: in single
// quotes, a backslash stands for itself unless a quote, a backslash, a newline or ! follows (fish and csh). None of these is left in
// the script: printf brings them back from its octal escapes (POSIX printf, %b).
func bootstrap(script string) string {
	return `exec /bin/sh -c 'eval "$(printf %b "$1")"' sh '` + escapes.Replace(script) + `'`
}

var escapes = strings.NewReplacer("\x00", "", `\`, `\0134`, "'", `\0047`, "!", `\0041`, "\n", `\n`)

// A frame is how a script travels: markers around its output set it apart from what login shells, profiles and sudo
// print, and its process group is told, so that it can be ended.
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

// outer is what the user runs, inner what root or the user runs. The group is told only where it is ours alone: its
// leader is our shell or its sudo, not the server that started it.
func (f frame) outer(script string) string {
	inner := f.inner(script)
	if !f.sudo {
		return environment + "set -- \"$SSH_CONNECTION\" \"$(ulimit -l)\"\n" + inner
	}
	flags := "-n"
	if f.password {
		flags = "-S -p ''"
	}
	return environment + "exec sudo " + flags + " -- /bin/sh -c " + Quote(environment+inner) + " sh \"$SSH_CONNECTION\" \"$(ulimit -l)\"\n"
}

func (f frame) inner(script string) string {
	var b strings.Builder
	b.WriteString(`SSH_CONNECTION=$1 SSH_MEMLOCK=$2
shift 2
rds_g=0
if [ -r /proc/$$/stat ]; then
	read -r rds_x rds_x rds_x rds_x rds_g rds_x </proc/$$/stat
	read -r rds_x </proc/$rds_g/comm || rds_x=
	case $rds_x in *sh|sudo|busybox) ;; *) rds_g=0 ;; esac
fi
printf '%s\n' ` + Quote(f.begin()) + `$rds_g
printf '%s\n' ` + Quote(f.begin()) + ` >&2
`)
	if f.password {
		// Where sudo did not ask, the password is still in the stream: read past it.
		b.WriteString("while IFS= read -r rds_x; do [ \"$rds_x\" = " + Quote(f.mark) + " ] && break; done\n")
	}
	b.WriteString("unset rds_x rds_g\n( eval " + Quote(script) + "\n)\nset -- $?\nprintf '%s\\n' " + Quote(f.end()) + "$1\nexit $1\n")
	return b.String()
}

// killScript ends a process group.
func killScript(group int) string { return Script("kill-group.sh", strconv.Itoa(group)) }

// Script is one of assets/scripts with its arguments.
func Script(name string, args ...string) string {
	return "set -- " + QuoteAll(args...) + "\n" + assets.Script(name)
}

// Excerpt makes what the other side said fit for one line of an error: harmless, and not long.
func Excerpt(s string) string { return backends.Shorten(backends.Clean(strings.TrimSpace(s)), 400) }
