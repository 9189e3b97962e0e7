package generate_test

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

func horovod() generate.Horovod {
	return generate.Horovod{
		Hosts: []netip.Addr{netip.MustParseAddr("192.168.50.11"), netip.MustParseAddr("192.168.50.12")}, Image: "horovod/horovod:0.28.1", GPUs: 2,
		Net: generate.NCCL{Path: generate.SRIOV, Device: "mlx5_1", GID: 3, Class: 106},
	}
}

// The script runs in a real shell; ssh and ssh-keygen are stand-ins, and every argument of ssh is recorded.
func TestHorovodScript(t *testing.T) {
	const sound = "[1,0]<stdout>:vm-01:NCCL INFO Using network IB\n[1,0]<stdout>:vm-01:1:2 [0] NCCL INFO NET/IB : Using " +
		"[0]mlx5_1:1/RoCE\n[1,0]<stdout>:Total img/sec on 4 GPU(s): 700.1 +-3.0\n"
	for name, c := range map[string]struct {
		log, devices, there string
		args                []string
		code                int
		says                string
	}{
		"sound":                  {sound, "1 HCA found:", "", nil, 0, "VGG16 over NET/IB: Total img/sec on 4 GPU(s): 700.1 +-3.0"},
		"silent fallback to TCP": {strings.ReplaceAll(sound, "NET/IB", "NET/Socket"), "1 HCA found:", "", nil, 1, "NCCL did not use NET/IB"},
		"no device inside":       {sound, "0 HCAs found:", "", nil, 1, "the container in 192.168.50.11 sees no RDMA device"},
		"no result":              {"boom\n", "1 HCA found:", "", nil, 1, "the benchmark came to no result"},
		"somebody is at work": {sound, "1 HCA found:", "192.168.50.12", nil, 1,
			"a container rdma-setup-horovod is in 192.168.50.12 already"},
		"stop": {sound, "1 HCA found:", "", []string{"stop"}, 0, ""},
		"IB failed, in NCCL's words": {strings.ReplaceAll(sound, "NET/IB : Using [0]mlx5_1:1/RoCE", "NET/IB : No device found."), "1 HCA found:",
			"", nil, 1, "NCCL did not use NET/IB"},
		"GPUDirect, and no GDRDMA": {sound, "1 HCA found:", "", nil, 1, "NCCL did not use NET/IB with GDRDMA"},
		"GPUDirect": {sound + "vm-01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n", "1 HCA found:",
			"", nil, 0, "VGG16 over NET/IB with GDRDMA"},
		"a poor image": {sound, "1 HCA found:", "", nil, 1, "horovod/horovod:0.28.1 in 192.168.50.11 lacks ibv_devinfo sshd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h := horovod()
			if strings.HasPrefix(name, "GPUDirect") {
				h.Net.Path = generate.GPUDirect
			}
			text, err := h.Script(origin)
			if err != nil {
				t.Fatal(err)
			}
			for file, body := range map[string]string{
				"ssh-keygen": `for f; do :; done; echo private >"$f"; echo public >"$f.pub"`,
				"ssh": `while [ "${1#-}" != "$1" ]; do shift 2; done
echo "$1 $2" >>"$W/log"
case "$2" in
*"docker run --rm"*) [ -z "$LACKS" ] || echo "$LACKS" ;;
*inspect*) [ "$1" = "$THERE" ] ;;
*ibv_devinfo*) echo "$DEVICES" ;;
*"find "*) echo /horovod/examples/tensorflow2/tensorflow2_synthetic_benchmark.py ;;
*horovodrun*) printf '%s' "$RESULT" ;;
*"exec -i"*) cat >>"$W/log" ;;
esac`,
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("/bin/sh", append([]string{"-s", "--"}, c.args...)...)
			cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "W=" + dir, "TMPDIR=" + dir, "RESULT=" + c.log, "DEVICES=" + c.devices,
				"THERE=" + c.there}
			if name == "a poor image" {
				cmd.Env = append(cmd.Env, "LACKS=ibv_devinfo sshd")
			}
			cmd.Stdin = strings.NewReader(text)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(out.String(), c.says) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s", code, c.code, c.says, out.String())
			}
			b, err := os.ReadFile(filepath.Join(dir, "log"))
			if err != nil {
				t.Fatal(err)
			}
			log := string(b)
			if left, _ := filepath.Glob(filepath.Join(dir, "tmp.*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if name == "somebody is at work" || name == "a poor image" {
				if strings.Contains(log, "docker run -d") || strings.Contains(log, "rm -f") {
					t.Errorf("touched what is not its own:\n%s", log)
				}
				return
			}
			for _, h := range []string{"192.168.50.11", "192.168.50.12"} {
				if !strings.Contains(log, h+" sudo -n docker rm -f rdma-setup-horovod") {
					t.Errorf("the container of %s stays:\n%s", h, log)
				}
			}
			if name == "sound" {
				for _, want := range []string{
					"docker exec -e NCCL_DEBUG=INFO -e NCCL_IB_DISABLE=0 -e NCCL_NET_GDR_LEVEL=LOC -e NCCL_IB_HCA==mlx5_1 -e NCCL_IB_GID_INDEX=3 -e " +
						"NCCL_IB_TC=106 rdma-setup-horovod " +
						"horovodrun -np 4 -H 192.168.50.11:2,192.168.50.12:2 -p 12345", "--model VGG16", "--ulimit memlock=-1", "private", "public"} {
					if !strings.Contains(log, want) {
						t.Errorf("%q is missing in:\n%s", want, log)
					}
				}
			}
		})
	}
}

func TestHorovodRefusesWhatCannotRun(t *testing.T) {
	for why, change := range map[string]func(*generate.Horovod){
		"one guest":     func(h *generate.Horovod) { h.Hosts = h.Hosts[:1] },
		"a guest twice": func(h *generate.Horovod) { h.Hosts[1] = h.Hosts[0] },
		"an image":      func(h *generate.Horovod) { h.Image = "a; reboot" },
		"a model":       func(h *generate.Horovod) { h.Model = "$(reboot)" },
		"GPUs":          func(h *generate.Horovod) { h.GPUs = 0 },
		"a port":        func(h *generate.Horovod) { h.Port = 70000 },
		"a device":      func(h *generate.Horovod) { h.Net.Device = "a b" },
	} {
		h := horovod()
		change(&h)
		if text, err := h.Script(origin); err == nil {
			t.Errorf("%s: %s", why, text)
		}
	}
}
