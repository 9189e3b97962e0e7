package guest

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// mark begins a section of the survey's output. No tool prints it.
const mark = "\x1e#"

// Survey reads every fact of a guest in at most two remote commands. It never fails: a guest that could not be asked
// says so in Error, and what a missing tool would have told is absent, but for the kernel's release.
func (g *Guests) Survey(ctx context.Context, vm string) backends.Guest {
	out := backends.Guest{VM: vm}
	c, err := g.conn(ctx, vm)
	if err != nil {
		return unasked(out, err)
	}
	out.Address, out.User = c.Address(), c.User()
	asked := time.Now()
	cmd := ssh.Command{What: "read the facts", Script: g.surveyScript(), Limit: 2 * time.Minute, MaxOutput: 8 << 20}
	mode, err := c.Sudo(ctx)
	var r ssh.Result
	if err == nil {
		cmd.Sudo = true
		r, err = c.Run(ctx, cmd)
	}
	switch backends.KindOf(err) {
	case backends.KindAuth, backends.KindPermission:
		// Nearly everything can be told without root.
		mode, out.SudoError, out.Hint = ssh.SudoNone, err.Error(), backends.HintOf(err)
		cmd.Sudo = false
		asked = time.Now()
		r, err = c.Run(ctx, cmd)
	}
	if err != nil {
		return unasked(out, err)
	}
	out.Sudo = mode
	f := sections(r.Stdout)
	f.fill(&out, g.options)
	if !kernelRelease.MatchString(out.Kernel) {
		return unasked(backends.Guest{VM: vm, Address: out.Address, User: out.User}, backends.Errorf(backends.KindPermanent, label(vm),
			"Log in there as the same user and see what uname -r says.", "uname -r tells no kernel release, by which modules and drivers are chosen: %.60q", out.Kernel))
	}
	out.ClockSkew = f.clockSkew(asked, time.Now())
	out.Commands = 2
	return out
}

// kernelRelease is how uname -r begins: 5.15.0-91-generic, 4.18.0-553.el8_10.x86_64.
var kernelRelease = regexp.MustCompile(`^[0-9]+\.[0-9]+`)

// clockSkew tells how far the guest's clock, which was asked between two moments of ours, is off; nil when it did not say.
func (f facts) clockSkew(from, to time.Time) *int {
	s, err := strconv.ParseInt(f.line("clock"), 10, 64)
	if err != nil {
		return nil
	}
	var off time.Duration // date cuts the second off
	switch t := time.Unix(s, 0); {
	case t.After(to):
		off = t.Sub(to)
	case t.Add(time.Second).Before(from):
		off = t.Add(time.Second).Sub(from)
	}
	return ptr(int(off.Round(time.Second) / time.Second))
}

func unasked(out backends.Guest, err error) backends.Guest {
	out.Error, out.ErrKind, out.Hint = err.Error(), backends.KindOf(err), backends.HintOf(err)
	return out
}

// facts are the sections of a survey by name.
type facts map[string]string

func sections(text string) facts {
	f := facts{}
	for part := range strings.SplitSeq(text, mark) {
		if name, body, ok := strings.Cut(part, "\n"); ok {
			f[name] = body
		}
	}
	return f
}

func (f facts) line(name string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(f[name]), "\n")
	return strings.TrimSpace(first)
}

// section wraps a part of a survey so that its failure is its own.
func section(name, script string) string {
	return "printf '\\036#%s\\n' " + name + "\n{\n" + script + "\n} 2>/dev/null\n"
}

func (g *Guests) surveyScript() string {
	var b strings.Builder
	words := func(list []string) string { return ssh.QuoteAll(list...) }
	for _, s := range [][2]string{
		{"clock", "date +%s"},
		{"os", "cat /etc/os-release || cat /usr/lib/os-release"},
		{"kernel", "uname -r"},
		{"arch", "uname -m"},
		{"boot", "cat " + bootIDFile},
		{"managers", "for c in apt-get dnf yum; do command -v $c; done"},
		{"dpkg", "command -v dpkg-query >/dev/null && dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}|${Provides}\\n'"},
		{"rpm", rpmScript(g.options.Packages)},
		{"modules", "cat /proc/modules || lsmod"},
		{"available", availableScript(words(g.options.Modules))},
		{"memlock", "echo $SSH_MEMLOCK"},
		{"perftest", "command -v ib_send_bw >/dev/null && ib_send_bw --version 2>&1"},
		{"archives", "for f in " + words(g.archives()) + "; do [ -f \"$f\" ] && [ -r \"$f\" ] && echo \"$f\"; done"},
		{"devinfo", "command -v ibv_devinfo >/dev/null && ibv_devinfo -v"},
		{"rdma", rdmaScript},
	} {
		b.WriteString(section(s[0], s[1]))
	}
	b.WriteString(ofedScript())
	b.WriteString(networkScript())
	b.WriteString(persistScript())
	b.WriteString(section("classes", classUnits))
	b.WriteString(healthScript(g.images()))
	b.WriteString(buildFacts())
	return b.String()
}

// availableScript asks for the files of all modules at once: a guest that is emulated or busy takes long to start a program.
// Where one has no file that would tell its name, but "(builtin)" or "(null)", they are asked for one by one.
func availableScript(modules string) string {
	return `found=$(modinfo -n ` + modules + `)
case $found in
*'('*) for m in ` + modules + `; do modinfo -n $m >/dev/null && echo $m; done ;;
*) echo "$found" ;;
esac`
}

// available gives the modules of a list that availableScript has found, by name or by file.
func (f facts) available(modules []string) []string {
	out := []string{}
	found := strings.Fields(f["available"])
	for i, name := range found {
		name, _, _ = strings.Cut(path.Base(name), ".ko")
		found[i] = strings.ReplaceAll(name, "-", "_")
	}
	for _, m := range modules {
		if slices.Contains(found, m) {
			out = append(out, m)
		}
	}
	return out
}

// rpmScript asks rpm for packages by the names that they are asked for: NAME-VERSION-RELEASE.ARCH is one too.
func rpmScript(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		if bare, is := strings.CutSuffix(n, "KERNEL"); is {
			list[i] = ssh.Quote(bare) + `"$(uname -r)"`
		} else {
			list[i] = ssh.Quote(n)
		}
	}
	return `command -v rpm >/dev/null && for p in ` + strings.Join(list, " ") + `; do rpm -q --qf "$p|%{VERSION}-%{RELEASE}\\n" $p || :; done`
}

// images are those that are looked into.
func (g *Guests) images() []string {
	if g.options.Images == nil {
		return nil
	}
	return g.options.Images()
}

func (g *Guests) archives() []string {
	if g.options.Archives == nil {
		return nil
	}
	return g.options.Archives()
}

// rdmaScript walks sysfs, which tells more and more exactly than any tool. read is used for its speed: soft-RoCE has
// a thousand GIDs.
const rdmaScript = `for d in /sys/class/infiniband/*; do
	[ -d "$d" ] || continue
	p=$d/ports/1
	echo "device ${d##*/}"
	x=$(readlink -f "$d/device/driver") && echo "driver ${x##*/}"
	for k in fw_ver; do read -r x <$d/$k && echo "$k $x"; done
	for k in state rate link_layer; do read -r x <$p/$k && echo "$k $x"; done
	c=/sys/kernel/config/rdma_cm
	read -r x <$d/tc/1/traffic_class && echo "class $x"
	if [ -d $c ] && [ ! -d $c/${d##*/} ]; then echo "tos 0"; elif read -r x <$c/${d##*/}/ports/1/default_roce_tos; then echo "tos $x"; fi
	read -r x <$d/parent && echo "netdev $x"
	for n in "$d"/device/net/*; do [ -e "$n" ] && echo "netdev ${n##*/}"; done
	for n in "$p"/gids/*; do
		read -r x <$n || continue
		case $x in 0000:0000:0000:0000:0000:0000:0000:0000|'') continue ;; esac
		i=${n##*/} t= v=
		read -r t <$p/gid_attrs/types/$i
		read -r v <$p/gid_attrs/ndevs/$i
		echo "gid $i|$x|$t|$v"
	done
	x=$(readlink -f "$d/device") && for n in "${x%.*}".0/net/*; do [ -e "$n" ] && echo "netdev ${n##*/}"; done
done`

// networkScript tells about interfaces and everything that configures them. It needs root for netplan's files.
func networkScript() string {
	return networkLinks() +
		section("addresses", "ip addr show") +
		section("routes", "ip -4 route show default; ip -6 route show default") +
		section("connection", "echo $SSH_CONNECTION") +
		section("netconfig", `command -v netplan >/dev/null && echo netplan
ls /etc/netplan/*.yaml >/dev/null && echo netplan-files
command -v nmcli >/dev/null && echo nmcli
command -v ifup >/dev/null && echo ifup
set -- $(systemctl is-active NetworkManager systemd-networkd)
case $1 in active|reloading|refreshing) echo NetworkManager ;; esac
case $2 in active|reloading|refreshing) echo systemd-networkd ;; esac
[ -d /etc/sysconfig/network-scripts ] && echo network-scripts`) +
		section("netfiles", dumpScript(`/lib/netplan/*.yaml /run/netplan/*.yaml /etc/netplan/*.yaml \
	/run/NetworkManager/system-connections/* /etc/NetworkManager/system-connections/* /etc/sysconfig/network-scripts/ifcfg-* \
	/run/systemd/network/*.network /etc/systemd/network/*.network /etc/network/interfaces /etc/network/interfaces.d/*`))
}

// networkLinks lists the interfaces.
func networkLinks() string {
	return section("links", `for d in /sys/class/net/*; do
	[ -e "$d/address" ] || continue
	n=${d##*/} a= m= f= o=
	read -r a <$d/address; read -r m <$d/mtu; read -r f <$d/flags; read -r o <$d/operstate
	p=-; [ -e "$d/device" ] && p=device
	s=-; [ -e "$d/master" ] && { s=$(readlink -f "$d/master"); s=${s##*/}; }
	echo "$n|$a|$m|$f|$o|$p|$s"
done`)
}
