package containers_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
	"github.com/rdma-setup/rdma-setup/wizard/generate/containers"
)

const ngc = "nvcr.io/nvidia/tensorrt:20.12-py3"

// An instruction of a Dockerfile.
type instruction struct{ name, args string }

// instructions parses a Dockerfile by its grammar: comments, continued lines, one word of a fixed list.
func instructions(t *testing.T, text string) []instruction {
	t.Helper()
	known := strings.Fields("FROM RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL HEALTHCHECK SHELL")
	var out []instruction
	var open string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "#") || open == "" && strings.TrimSpace(line) == "" {
			continue
		}
		if body, more := strings.CutSuffix(line, "\\"); more {
			open += body
			continue
		}
		name, args, _ := strings.Cut(open+line, " ")
		open = ""
		if !slices.Contains(known, name) {
			t.Fatalf("%q is no instruction", name)
		}
		out = append(out, instruction{name, strings.TrimSpace(args)})
	}
	if open != "" {
		t.Fatal("the last line goes on")
	}
	return out
}

// lint checks a Dockerfile against hadolint's rules, named by their numbers.
func lint(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(strings.SplitN(text, "\n", 2)[0], "=") {
		t.Error("the first line would be read as a parser directive")
	}
	ins := instructions(t, text)
	if ins[0].name != "FROM" {
		t.Error("DL3061: it does not begin with FROM")
	}
	pipefail := false
	for _, i := range ins {
		switch i.name {
		case "FROM":
			if !strings.ContainsAny(path.Base(i.args), ":@") || strings.HasSuffix(i.args, ":latest") {
				t.Errorf("DL3006, DL3007: %s", i.args)
			}
		case "SHELL":
			pipefail = strings.Contains(i.args, "pipefail")
		case "WORKDIR":
			if !path.IsAbs(i.args) {
				t.Errorf("DL3000: %s", i.args)
			}
		case "ADD":
			if !strings.Contains(i.args, "https://") {
				t.Errorf("DL3020: %s", i.args)
			}
		case "RUN":
			if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(i.args), ""); err != nil {
				t.Errorf("%v in %s", err, i.args)
			}
			for rule, bad := range map[string]bool{
				"DL3027: apt is for people":     regexp.MustCompile(`\bapt (install|update|purge)`).MatchString(i.args),
				"DL3004: sudo":                  strings.Contains(i.args, "sudo"),
				"DL3003: cd instead of WORKDIR": regexp.MustCompile(`(^|[;&] *)cd `).MatchString(i.args),
				"DL3014: no -y":                 strings.Contains(i.args, "apt-get install") && !strings.Contains(i.args, "apt-get install -y"),
				"DL3015: recommends": strings.Contains(i.args, "apt-get install") &&
					!strings.Contains(i.args, "--no-install-recommends"),
				"DL3009: apt lists stay": strings.Contains(i.args, "apt-get update") && !strings.Contains(i.args, "rm -rf") ||
					strings.Count(i.args, "apt-get update") > 1,
				"DL3040: dnf clean all":           strings.Contains(i.args, "dnf install") && !strings.Contains(i.args, "dnf clean all"),
				"DL3038: dnf without -y":          regexp.MustCompile(`dnf (install|remove) [^-]`).MatchString(i.args),
				"DL4006: a pipe without pipefail": strings.Contains(i.args, " | ") && !pipefail,
				"update without install after it": strings.Contains(i.args, "apt-get update") && !strings.Contains(i.args, "apt-get install"),
				"apt asks where nobody can answer": strings.Contains(i.args, "apt-get install") &&
					!strings.Contains(i.args, "DEBIAN_FRONTEND=noninteractive"),
				"a variable that hides in a quote?": strings.Count(i.args, `"`)%2 != 0,
			} {
				if bad {
					t.Errorf("%s: %s", rule, i.args)
				}
			}
		}
	}
}

func dockerfiles() map[string]containers.Dockerfile {
	return map[string]containers.Dockerfile{
		"the guide's": {Base: ngc, Codename: "focal", Name: "ubuntu2004-tensorrt:20.12-py3-bf-pvrdma", Sample: true,
			Bitfusion: containers.BitfusionClient, Timezone: "America/Los_Angeles",
			Packages: []string{"rdma-core", "libibverbs1", "ibverbs-providers", "infiniband-diags", "ibverbs-utils", "libcapstone3", "perftest"}},
		"only the base": {Base: ngc},
		"a digest":      {Base: "registry.example:5000/ml/pytorch@sha256:" + strings.Repeat("a", 64)},
		"EL":            {Base: "registry.access.redhat.com/ubi9/ubi:9.4", EL: true},
		"checked":       {Base: "ubuntu:22.04", Bitfusion: "https://example.com/x.deb", SHA256: strings.Repeat("b", 64)},
	}
}

func TestDockerfilesPassTheLinter(t *testing.T) {
	for name, d := range dockerfiles() {
		t.Run(name, func(t *testing.T) {
			text, err := d.Text(origin)
			if err != nil {
				t.Fatal(err)
			}
			lint(t, text)
		})
	}
}

// The Dockerfile contains every step of the guide's, in its order (PVRDMA and vSphere Bitfusion, VMware, 2021, Using PVRDMA in an
// NGC container).
func TestDockerfileHasTheGuidesSteps(t *testing.T) {
	text, err := dockerfiles()["the guide's"].Text(origin)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, step := range []string{
		"FROM nvcr.io/nvidia/tensorrt:20.12-py3", "ibverbs-providers ibverbs-utils libibverbs-dev libibverbs1;", "apt-get purge -y",
		"-t focal rdma-core libibverbs1 ibverbs-providers infiniband-diags ibverbs-utils libcapstone3 perftest",
		"WORKDIR /workspace/tensorrt/samples", "RUN make -j4", "RUN /opt/tensorrt/python/python_setup.sh",
		"WORKDIR /workspace/tensorrt/data/mnist",
		"RUN python download_pgms.py", "WORKDIR /workspace\n", "bitfusion-client-ubuntu2004_3.0.1-4_amd64.deb", "TZ=America/Los_Angeles",
		"bitfusion run -n 1 -l",
	} {
		i := strings.Index(text[at:], step)
		if i < 0 {
			t.Fatalf("no %q after\n%s", step, text[:at])
		}
		at += i
	}
	for _, flag := range []string{"--net=host", "--ipc=host", "--pid=host", "--privileged", "--cap-add=IPC_LOCK", "--ulimit memlock=-1"} {
		if !strings.Contains(text, flag) {
			t.Errorf("the line to run it lacks %s", flag)
		}
	}
}

// The libraries come from the distribution, never from MLNX_OFED, and the build itself proves the provider.
func TestDockerfileBringsTheProvider(t *testing.T) {
	for name, d := range dockerfiles() {
		text, err := d.Text(origin)
		if err != nil {
			t.Fatal(err)
		}
		var purge, install, proof int
		for n, i := range instructions(t, text) {
			switch {
			case strings.Contains(i.args, "purge") || strings.Contains(i.args, "dnf remove"):
				purge = n
			case strings.Contains(i.args, "rdma-core"):
				install = n
			case strings.Contains(i.args, "vmw_pvrdma.driver"):
				proof = n
			}
		}
		if purge == 0 || install <= purge || proof <= install {
			t.Errorf("%s: purge %d, install %d, proof %d", name, purge, install, proof)
		}
		if strings.Contains(text, "mlnxofedinstall") {
			t.Errorf("%s: it installs MLNX_OFED", name)
		}
	}
}

func TestDockerfileTellsTheClass(t *testing.T) {
	for want, d := range map[string]containers.Dockerfile{
		"\nENV UCX_IB_TRAFFIC_CLASS=106 NCCL_IB_TC=106 NCCL_IB_GID_INDEX=3\n": {Base: "nvcr.io/nvidia/pytorch:24.05-py3", Class: 106, GID: 3},
		"\nENV UCX_IB_TRAFFIC_CLASS=106 NCCL_IB_TC=106\n":                     {Base: "nvcr.io/nvidia/pytorch:24.05-py3", Class: 106, GID: -1},
	} {
		text, err := d.Text(generate.Origin{})
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: no %q in\n%s", err, want, text)
		}
	}
	if text, err := (containers.Dockerfile{Base: "nvcr.io/nvidia/pytorch:24.05-py3", GID: 3}).Text(generate.Origin{}); err != nil ||
		strings.Contains(text, "ENV ") {
		t.Errorf("%v: a variable without a class in\n%s", err, text)
	}
	if _, err := (containers.Dockerfile{Base: "nvcr.io/nvidia/pytorch:24.05-py3", Class: 256}).Text(generate.Origin{}); err == nil {
		t.Error("traffic class 256 is taken")
	}
}

func TestRefusedDockerfiles(t *testing.T) {
	for name, d := range map[string]containers.Dockerfile{
		"no base":                       {},
		"a base without a tag":          {Base: "nvcr.io/nvidia/tensorrt"},
		"a port is no tag":              {Base: "registry.example:5000/ubuntu"},
		"latest":                        {Base: "ubuntu:latest"},
		"a base with a second line":     {Base: "ubuntu:22.04\nRUN id"},
		"a base with a variable":        {Base: "ubuntu:${TAG}"},
		"a package that is a command":   {Base: ngc, Packages: []string{"perftest;id"}},
		"a package that is a flag":      {Base: ngc, Packages: []string{"-o=x"}},
		"a codename with a quote":       {Base: ngc, Codename: `focal"`},
		"removing a command":            {Base: ngc, Remove: []string{"$(id)"}},
		"a time zone that is a command": {Base: ngc, Timezone: "UTC;id"},
		"Bitfusion over http":           {Base: ngc, Bitfusion: "http://example.com/x.deb"},
		"Bitfusion with a password":     {Base: ngc, Bitfusion: "https://u:p@example.com/x.deb"},
		"Bitfusion with a space":        {Base: ngc, Bitfusion: "https://example.com/x y.deb"},
		"a sum of nothing":              {Base: ngc, SHA256: strings.Repeat("b", 64)},
		"EL with Bitfusion":             {Base: ngc, EL: true, Bitfusion: containers.BitfusionClient},
		"a name in capitals":            {Base: ngc, Name: "Mine"},
	} {
		if text, err := d.Text(origin); err == nil || text != "" {
			t.Errorf("%s is taken", name)
		}
	}
	o := origin
	o.From = []string{"x\nRUN id", `\`}
	text, err := containers.Dockerfile{Base: ngc}.Text(o)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "\nRUN id") {
		t.Error("a name got out of its comment")
	}
	lint(t, text)
}
