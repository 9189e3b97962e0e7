package guest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/ssh"
)

// memlock sets how much memory a login may lock: KindMemlock. RDMA registers memory, and with the defaults of
// 64 KB, 8 MB (kernel 5.16, commit 9dcc38e2813e) or 64 MB (ulimit -l of Ubuntu 20.04: 65536 KB) ibv_reg_mr fails (openucx 8229, 7930).
type memlock struct{ recorded }

const limitsFile = "/etc/security/limits.d/60-rdma-setup.conf"

// LimitsText returns a file for /etc/security/limits.d. "*" does not include root, so root is named. value is "unlimited" or KB.
func LimitsText(value string) string {
	var b strings.Builder
	b.WriteString(ours)
	for _, who := range []string{"*", "root"} {
		for _, what := range []string{"soft", "hard"} {
			fmt.Fprintf(&b, "%s %s memlock %s\n", who, what, value)
		}
	}
	return b.String()
}

// Read returns the limit of a new login.
func (m memlock) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	r, err := m.g.look(ctx, s.Target.Name, ssh.Command{What: "read the limit of locked memory", Script: "echo $SSH_MEMLOCK"})
	if err != nil {
		return backends.Absent, err
	}
	return backends.ValueOf(limit(memlockKB(strings.TrimSpace(r.Stdout)))), nil
}

func limit(kb int64) string {
	if kb < 0 {
		return "unlimited"
	}
	return strconv.FormatInt(kb, 10)
}

// Set writes the file and logs in again to verify it: the limits of a login are fixed when it begins.
func (m memlock) Set(ctx context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	vm := s.Target.Name
	c, err := m.g.conn(ctx, vm)
	if err != nil {
		return err
	}
	var want string
	if to.IsAbsent() {
		err = m.g.putBack(ctx, vm, backends.Kept{Items: []backends.Item{{Kind: backends.ItemFile, Name: limitsFile}}})
	} else if err = to.Decode(&want); err == nil {
		if _, bad := strconv.ParseUint(want, 10, 63); bad != nil && want != "unlimited" {
			return backends.Usagef(label(vm), "", "the memlock limit %q is neither a number of KB nor unlimited", want)
		}
		err = m.g.put(ctx, vm, limitsFile, []byte(LimitsText(want)), 0o644, "")
	}
	if err != nil {
		return err
	}
	backends.ReadsOf(ctx).Forget() // the answer of the login before
	c.Drop()
	now, err := m.Read(ctx, s)
	if err == nil && want != "" && now != to {
		return backends.Permanentf(label(vm),
			"Check UsePAM in sshd_config, pam_limits in /etc/pam.d/sshd, and LimitMEMLOCK of the sshd unit.",
			"%s was written, but a new login still cannot lock more than %s", limitsFile, now)
	}
	return err
}

// Restore puts the file back.
func (m memlock) Restore(ctx context.Context, s backends.Setting, kept backends.Kept, _ backends.Progress) error {
	if err := m.g.putBack(ctx, s.Target.Name, kept); err != nil {
		return err
	}
	c, err := m.g.conn(ctx, s.Target.Name)
	if err == nil {
		backends.ReadsOf(ctx).Forget()
		c.Drop()
	}
	return err
}

// environment sets the traffic class for applications in a file that every login shell reads: KindEnvironment. Other shells, such
// as those with which mpirun starts remote ranks, do not read it: mpirun -x passes the variables on.
type environment struct{ recorded }

const environmentFile = "/etc/profile.d/rdma-setup.sh"

// EnvironmentText returns the file for a class and the GID index of the RoCE v2 address; a negative index is left out.
func EnvironmentText(class, gid int) string {
	var b strings.Builder
	b.WriteString(ours)
	for _, v := range backends.ClassVariables(class, gid) {
		b.WriteString("export " + v + "\n")
	}
	return b.String()
}

const environmentFacts = "cat " + environmentFile

// commonGID returns the GID index that the RoCE v2 addresses of all RDMA devices with an IPv4 address share; -1 if there is none,
// or they differ and NCCL finds each by itself (2.21 and later).
func commonGID(devices []backends.VerbsDevice) int {
	index := -1
	for _, d := range devices {
		for _, e := range d.GIDs {
			if e.Type != "RoCE v2" || e.IPv4 == "" {
				continue
			}
			if index >= 0 && index != e.Index {
				return -1
			}
			index = e.Index
		}
	}
	return index
}

// environment returns the value of KindEnvironment for these devices.
func (f facts) environment(devices []backends.VerbsDevice) backends.Value {
	text := f["environment"]
	if strings.TrimSpace(text) == "" {
		return backends.Absent
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "export NCCL_IB_TC="); ok {
			if class, err := strconv.Atoi(v); err == nil &&
				strings.TrimSpace(text) == strings.TrimSpace(EnvironmentText(class, commonGID(devices))) {
				return backends.ValueOf(class)
			}
		}
	}
	return backends.Partial(nil)
}

func (e environment) read(ctx context.Context, vm string) (backends.Value, []backends.VerbsDevice, error) {
	f, err := e.g.facts(ctx, vm,
		ssh.Command{Script: section("rdma", script("rdma-devices.sh")) + networkLinks() + section("environment", environmentFacts)})
	if err != nil {
		return backends.Absent, nil, err
	}
	devices := f.devices(f.network().interfaces)
	return f.environment(devices), devices, nil
}

// Read returns the class in the file.
func (e environment) Read(ctx context.Context, s backends.Setting) (backends.Value, error) {
	v, _, err := e.read(ctx, s.Target.Name)
	return v, err
}

// Set writes the file, with the current GID index of the addresses, and reads it back.
func (e environment) Set(ctx context.Context, s backends.Setting, to backends.Value, _ backends.Progress) error {
	vm := s.Target.Name
	now, devices, err := e.read(ctx, vm)
	if err != nil || now == to {
		return err
	}
	if to.IsAbsent() {
		return e.g.putBack(ctx, vm, backends.Kept{Items: []backends.Item{{Kind: backends.ItemFile, Name: environmentFile}}})
	}
	var class int
	if err := to.Decode(&class); err != nil {
		return err
	}
	if class < 0 || class > 255 {
		return backends.Usagef(label(vm), "", "%d is not a traffic class", class)
	}
	if err := e.g.put(ctx, vm, environmentFile, []byte(EnvironmentText(class, commonGID(devices))), 0o644, ""); err != nil {
		return err
	}
	if now, err := e.Read(ctx, s); err != nil || now != to {
		return backends.Permanentf(label(vm), "", "%s was written for traffic class %d, but reads back as %s: %v",
			environmentFile, class, now, err)
	}
	return nil
}
