// Package containers generates the files for containers over RDMA in guests: a Dockerfile without MLNX_OFED, a script that
// installs Docker, its daemon.json, and the routes between containers. It does no I/O.
package containers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/assets"
	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

// A Daemon is the requested content of Docker's daemon.json (Reference Deployment Guide for RoCE accelerated HPC or ML
// applications with GPUDirect RDMA on vSphere 6.7, NVIDIA/Mellanox, Docker; keys as in dockerd). Zero values are not written.
type Daemon struct {
	Bridge netip.Prefix // address of docker0 with prefix length, 172.30.1.1/24: "bip"
	Range  netip.Prefix // address range of containers: "fixed-cidr"
	MTU    int
	DNS    []netip.Addr
	NVIDIA bool // the runtime of the NVIDIA container toolkit
}

// Check returns an error for settings that dockerd would refuse.
func (d Daemon) Check() error {
	switch {
	case d.Bridge.IsValid() && (!d.Bridge.Addr().Is4() || d.Bridge.Bits() > 30 || d.Bridge.Addr() == d.Bridge.Masked().Addr()):
		return fmt.Errorf("bip %s is not an IPv4 address of a host in its network: write it like 172.30.1.1/24", d.Bridge)
	case d.Range.IsValid() &&
		(!d.Range.Addr().Is4() || !d.Bridge.IsValid() || !d.Bridge.Masked().Contains(d.Range.Addr()) || d.Range.Bits() < d.Bridge.Bits()):
		return fmt.Errorf("fixed-cidr %s does not lie in the network of bip %s", d.Range, d.Bridge)
	case d.MTU != 0 && (d.MTU < 576 || d.MTU > 9216):
		return fmt.Errorf("MTU %d is not between 576 and 9216", d.MTU)
	}
	return nil
}

// members returns the requested settings in the order of the guide.
func (d Daemon) members() object {
	var out object
	add := func(key string, value any) {
		raw, err := json.Marshal(value)
		if err == nil { // strings, numbers and lists of them always can be encoded
			out = append(out, member{key, raw})
		}
	}
	if d.Bridge.IsValid() {
		add("bip", d.Bridge.String())
	}
	if d.Range.IsValid() {
		add("fixed-cidr", d.Range.Masked().String())
	}
	if d.MTU != 0 {
		add("mtu", d.MTU)
	}
	if len(d.DNS) > 0 {
		add("dns", d.DNS)
	}
	if d.NVIDIA {
		add("runtimes", map[string]any{"nvidia": map[string]any{"args": []string{}, "path": "nvidia-container-runtime"}})
	}
	return out
}

// Merge adds the settings to a daemon.json, "" for none. Existing content stays: other keys in their order and spelling, and also
// another value of a requested key, which is then in kept. Merging again changes nothing.
func (d Daemon) Merge(old []byte) (merged []byte, kept []string, err error) {
	if err := d.Check(); err != nil {
		return nil, nil, err
	}
	o := object{}
	if len(bytes.TrimSpace(old)) > 0 {
		if o, err = parseObject(old); err != nil {
			return nil, nil, fmt.Errorf("the daemon.json that is there is not one: %w", err)
		}
	}
	for _, want := range d.members() {
		if want.key == "runtimes" {
			o, kept, err = mergeRuntimes(o, want.value, kept)
			if err != nil {
				return nil, nil, err
			}
			continue
		}
		o, kept = merge(o, want, "", kept)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, o.text(), "", "  "); err != nil {
		return nil, nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), kept, nil
}

// merge adds one member, or reports that another value is kept.
func merge(o object, want member, prefix string, kept []string) (object, []string) {
	i := slices.IndexFunc(o, func(m member) bool { return m.key == want.key })
	switch {
	case i < 0:
		return append(o, want), kept
	case !sameJSON(o[i].value, want.value):
		kept = append(kept, fmt.Sprintf("%s%s stays %s, wanted was %s", prefix, want.key, o[i].value, want.value))
	}
	return o, kept
}

func mergeRuntimes(o object, want json.RawMessage, kept []string) (object, []string, error) {
	i := slices.IndexFunc(o, func(m member) bool { return m.key == "runtimes" })
	if i < 0 {
		return append(o, member{"runtimes", want}), kept, nil
	}
	there, err := parseObject(o[i].value)
	if err != nil {
		return nil, nil, fmt.Errorf("runtimes in the daemon.json that is there: %w", err)
	}
	wanted, err := parseObject(want)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range wanted {
		if slices.ContainsFunc(there, func(t member) bool { return t.key == m.key }) {
			continue // its path and arguments are those of the toolkit or the operator
		}
		there = append(there, m)
	}
	o = slices.Clone(o)
	o[i].value = there.text()
	return o, kept, nil
}

// An object is a JSON object that preserves the order of its members and the text of their values.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// text writes the members in order, without the HTML escapes of encoding/json.
func (o object) text() json.RawMessage {
	var b bytes.Buffer
	keys := json.NewEncoder(&b)
	keys.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if keys.Encode(m.key) == nil { // a string can always be encoded
			b.WriteByte(':')
			b.Write(m.value)
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

// parseObject parses one JSON object. A duplicate key is an error, because it is unclear which one counts.
func parseObject(text []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	o := object{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: t.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(o, func(x member) bool { return x.key == m.key }) {
			return nil, fmt.Errorf("it has %q twice", m.key)
		}
		o = append(o, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after its end")
	}
	return o, nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// A Setup is a script that installs and uninstalls Docker's engine and the NVIDIA container toolkit from their makers'
// repositories (Reference Deployment Guide for RoCE accelerated HPC or ML applications with GPUDirect RDMA on vSphere 6.7,
// NVIDIA/Mellanox, Docker and nvidia-docker; RDG: RoCE accelerated ML and HPC on Kubernetes with vGPU and PVRDMA,
// NVIDIA/Mellanox, 2019, container toolkit). The guides use apt-key, which was removed; the script stores each key in a keyring
// for its own repository and compares Docker's with the fingerprint in the guide.
type Setup struct {
	Distribution  bool // Docker of the distribution (docker.io of Debian and Ubuntu), from the guest's configured repositories
	NVIDIA        bool // the container toolkit too
	RemoveOld     bool // another Docker than the requested one is removed; its images and containers stay in /var/lib/docker
	RemoveNVIDIA1 bool // nvidia-docker 1 is removed, with every container that uses its volumes
}

// DockerKey is the fingerprint of Docker's key for apt (Reference Deployment Guide for RoCE accelerated HPC or ML
// applications with GPUDirect RDMA on vSphere 6.7, NVIDIA/Mellanox, without its spaces).
const DockerKey = "9DC858229FC7DD38854AE2D88D81803C0EBFCD88"

// Script writes a POSIX shell script. It supports apt and dnf, and detects which one exists when it runs.
func (d Setup) Script(o generate.Origin) string {
	yes := map[bool]string{false: "no", true: "yes"}
	engine := "docker-ce"
	if d.Distribution {
		engine = "distribution"
	}
	return "#!/bin/sh\n" + o.Comment("#") + strings.NewReplacer(
		"@ENGINE@", engine, "@NVIDIA@", yes[d.NVIDIA], "@REMOVE_OLD@", yes[d.RemoveOld], "@REMOVE_NVIDIA1@", yes[d.RemoveNVIDIA1], "@KEY@",
		DockerKey,
	).Replace(assets.Template("docker-setup.sh"))
}
