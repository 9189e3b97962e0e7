//go:build e2e

package realtest_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"
)

// toolkit adds a stand-in for NVIDIA's container toolkit to the guest's repository. Its nvidia-ctk does what the Installation Guide
// documents (Configuring Docker): it adds the runtime to daemon.json, keeps the rest, and leaves the restart to its caller. Docker
// accepts --gpus only if it found the hook when it started (moby, daemon/nvidia_linux.go); the hook records that it was called.
const toolkit = `set -e
d=/var/tmp/toolkit
mkdir -p $d/DEBIAN $d/usr/bin
printf 'Package: nvidia-container-toolkit\nVersion: 1.17.0-1\nArchitecture: all\nMaintainer: nobody\nDescription: stand-in\n' >$d/DEBIAN/control
cat >$d/usr/bin/nvidia-ctk <<'EOF'
#!/usr/bin/python3
import json, os, sys
if sys.argv[1:] != ["runtime", "configure", "--runtime=docker"]:
    sys.exit("unknown: %s" % sys.argv)
file = "/etc/docker/daemon.json"
config = json.load(open(file)) if os.path.exists(file) else {}
config.setdefault("runtimes", {})["nvidia"] = {"args": [], "path": "nvidia-container-runtime"}
os.makedirs("/etc/docker", exist_ok=True)
json.dump(config, open(file, "w"), indent=4)
EOF
printf '#!/bin/sh\nexec runc "$@"\n' >$d/usr/bin/nvidia-container-runtime
printf '#!/bin/sh\ncat >/dev/null\necho "$1" >>/run/nvidia-hook\n' >$d/usr/bin/nvidia-container-runtime-hook
chmod 755 $d/usr/bin/*
cd /srv/packages
dpkg-deb --root-owner-group -b $d ./toolkit.deb >/dev/null
{ dpkg-deb -f toolkit.deb; printf 'Filename: ./toolkit.deb\nSize: %s\nSHA256: %s\n\n' "$(stat -c %s toolkit.deb)" "$(sha256sum toolkit.deb | cut -d' ' -f1)"; } >>Packages`

// buildImage builds a container image from the guest's own files: perftest and the tools of an SSH server.
const buildImage = `set -e
r=/var/tmp/image/root
for l in bin sbin lib lib64; do mkdir -p $r/usr/$l; ln -s usr/$l $r/$l; done
mkdir -p $r/tmp $r/root $r/run $r/etc/ssh
files="$(for p in sh cat cut sleep mkdir find env ssh ssh-keygen sshd ib_write_bw ibv_devinfo ping sed grep; do command -v $p; done) /usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so"
cp -L --parents $files $r
for l in $(for f in $files; do ldd $f; done | grep -o '/[^ ]*' | sort -u); do [ -e $r$l ] || cp -L --parents $l $r; done
cp -r /etc/libibverbs.d $r/etc
printf 'root:x:0:0:root:/root:/bin/sh\nsshd:x:101:65534::/run/sshd:/bin/false\n' >$r/etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\n' >$r/etc/group
echo 'UsePAM no' >$r/etc/ssh/sshd_config
cd /var/tmp/image
tar -C root -cf root.tar .
printf 'FROM scratch\nADD root.tar /\n' >Dockerfile
docker build -q -t local/perftest:1 .`

// buildHorovod adds stand-ins for the other programs of a Horovod image. They answer as the real ones do: python3 prints the lines
// of NCCL's log for the transport that the container can use, and horovodrun starts it over SSH (Horovod's documentation, "Run
// Horovod": -np, -H, -p). An image that is named tcp finds no device.
const buildHorovod = `set -e
mkdir -p /var/tmp/horovod
cd /var/tmp/horovod
cat >horovodrun <<'EOF'
#!/bin/sh
set -e
while [ $# -gt 0 ]; do
	case $1 in
	-np) np=$2; shift 2 ;;
	-H) hosts=$2; shift 2 ;;
	-p) port=$2; shift 2 ;;
	--start-timeout) shift 2 ;;
	-*) echo "unknown: $1" >&2; exit 2 ;;
	*) break ;;
	esac
done
rank=0
for h in $(echo "$hosts" | sed 's/,/ /g'); do
	ssh -p "$port" "${h%%:*}" "RANK=$rank SIZE=$np NCCL_DEBUG=$NCCL_DEBUG $*" | sed "s/^/[$rank]<stdout>:/"
	rank=$((rank + 1))
done
[ $rank = "$np" ]
EOF
cat >python3 <<'EOF'
#!/bin/sh
[ "$NCCL_DEBUG" = INFO ] && [ -f "$1" ] || exit 1
if ibv_devinfo -l 2>/dev/null | grep -q '^[1-9]' && [ ! -e /tcp ]; then
	echo "guest:9:9 [0] NCCL INFO NET/IB : Using [0]rxe0:1/RoCE [RO]; OOB ens192:192.168.50.11<0>"
else
	echo "guest:9:9 [0] NCCL INFO NET/Socket : Using [0]ens192:192.168.50.11<0>"
fi
[ "$RANK" != 0 ] || echo "Total img/sec on $SIZE GPU(s): 200.1 +-0.5"
EOF
chmod 755 horovodrun python3
: >tcp
: >tensorflow2_synthetic_benchmark.py
printf 'FROM local/perftest:1\nCOPY horovodrun python3 /usr/bin/\nCOPY tensorflow2_synthetic_benchmark.py /horovod/examples/tensorflow2/\n' >Dockerfile
docker build -q -t local/horovod:1 .
printf 'FROM local/horovod:1\nCOPY tcp /\n' >Dockerfile
docker build -q -t local/horovod:tcp .`

// rdmaContainer runs a container with the RDMA devices and nothing else that it would not have.
const rdmaContainer = "docker run --net=host --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1"

// TestContainers runs the generated scripts for containers and MPI on two guests: the scripts install from the guests' own
// repositories, and no registry is contacted.
func TestContainers(t *testing.T) {
	t.Parallel()
	s := serve(t, 2, false, rail2MACs...) // with two interfaces: the packages for RDMA are installed
	first, second := s.guests[0], s.guests[1]
	for i, m := range s.guests {
		m.run(fmt.Sprintf("ip addr add 192.168.50.%d/24 dev ens192; ip link set ens192 up; ip link set ens224 down", 11+i))
		m.run("umask 77; cat >/root/.ssh/id_ed25519 <<'EOF'\n" + string(s.read("id_ed25519")) +
			"EOF\necho StrictHostKeyChecking accept-new >/root/.ssh/config\n" +
			"cp /root/.ssh/id_ed25519 /root/.ssh/config ~ubuntu/.ssh; chown ubuntu: ~ubuntu/.ssh/*")
	}
	gid := first.run("grep -l c0a8:320b /sys/class/infiniband/rxe0/ports/1/gids/* | xargs -n1 basename")
	bare := s.facts()
	s.containers(first, second, gid)
	s.scenario("undo takes away Docker and what came with it", func(t *testing.T) {
		s.both("systemctl disable -q --now rdma-setup-container-routes; rm -f /etc/systemd/system/rdma-setup-container-routes.service; sh " +
			"/var/tmp/docker-setup.sh undo")
		s.unchanged(bare)
	})
	s.scripted()
}

// put writes a generated file into a guest.
func (s *site) put(m *machine, path string, args ...string) {
	s.t.Helper()
	text, _ := s.must(0, append([]string{"generate"}, args...)...)
	m.run("cat >" + path + " <<'END-OF-FILE'\n" + text + "END-OF-FILE")
}

// scripted runs the scripts that need MPI: generate osu, and the launcher's command of generate mpijob.
func (s *site) scripted() {
	first := s.guests[0]
	over := []string{"--host", "192.168.50.11", "--host", "192.168.50.12"}
	s.scenario("generate osu measures MPI over RDMA", func(t *testing.T) {
		s.both(withMPI)
		s.both("mkdir -p /var/tmp/bin")
		program, err := os.ReadFile("../../../assets/programs/mpi.c")
		if err != nil {
			t.Fatal(err)
		}
		// Debian has no OSU micro-benchmarks; the program that bench --osu builds prints the same columns.
		first.run("cd /var/tmp/bin; cat >mpi.c <<'END-OF-FILE'\n" + string(program) + "END-OF-FILE\nmpicc -o mpi mpi.c\n" +
			`for t in osu_mbw_mr:bandwidth osu_alltoall:allreduce; do printf '#!/bin/sh\nexec /var/tmp/bin/mpi %s 4096 2\n' ${t#*:} >${t%:*}; chmod 755 ${t%:*}; done
			ssh 192.168.50.12 true && scp -q mpi osu_* 192.168.50.12:/var/tmp/bin`)
		s.put(first, "/var/tmp/osu.sh", append([]string{"osu", "--device", "rxe0", "--runs", "1"}, over...)...)
		sent, _ := first.packets()
		out := first.run("export PATH=/var/tmp/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; sh /var/tmp/osu.sh " +
			">/var/tmp/today; cat /var/tmp/today")
		now, _ := first.packets()
		if !regexp.MustCompile(`(?m)^osu_mbw_mr 2 4096 [0-9.]+$`).MatchString(out) || !strings.Contains(out, "osu_alltoall 2 ") ||
			now-sent < 100 {
			t.Errorf("%d packets:\n%s", now-sent, out)
		}
	})
	s.scenario("the launcher's command of generate mpijob starts a rank in each guest", func(t *testing.T) {
		text, _ := s.must(0, "generate", "mpijob", "--gpus", "0", "--slots", "1", "--device", "rxe0", "--", "sh", "-c",
			`echo "@ $(hostname) $OMPI_COMM_WORLD_RANK $NCCL_IB_HCA"`)
		var job struct {
			Spec struct {
				Replicas map[string]struct {
					Template struct {
						Spec struct{ Containers []struct{ Command []string } }
					}
				} `yaml:"mpiReplicaSpecs"`
			}
		}
		if err := yaml.Unmarshal([]byte(text), &job); err != nil {
			t.Fatal(err)
		}
		var command []string
		for _, w := range job.Spec.Replicas["Launcher"].Template.Spec.Containers[0].Command {
			command = append(command, "'"+strings.ReplaceAll(strings.ReplaceAll(w, "$$(", "$("), "'", `'\''`)+"'") // as Kubernetes expands it
		}
		// The operator passes the list of hosts to the launcher in these variables (mpi-operator,
		// pkg/controller/mpi_job_controller.go).
		out := first.run(`printf '192.168.50.11 slots=1\n192.168.50.12 slots=1\n' >/var/tmp/hostfile
export OMPI_MCA_orte_keep_fqdn_hostnames=true OMPI_MCA_orte_default_hostfile=/var/tmp/hostfile OMPI_MCA_plm_rsh_args='-o ConnectionAttempts=10'
` + strings.Join(command, " "))
		for _, want := range []string{"@ guest-1 0 =rxe0", "@ guest-2 1 =rxe0"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is missing in:\n%s", want, out)
			}
		}
	})
	s.both(withoutMPI)
}

// containers runs the scripts that need Docker.
func (s *site) containers(first, second *machine, gid string) {
	started := "systemctl show docker -p MainPID -p ExecMainStartTimestampMonotonic; docker info -f '{{.Containers}} {{.Images}} {{json " +
		".Runtimes}}'"
	installed := s.scenario("the script installs Docker from the guests' own repositories, and a second run changes nothing",
		func(t *testing.T) {
			s.both(toolkit)
			for _, m := range s.guests {
				s.put(m, "/var/tmp/docker-setup.sh", "docker-setup", "--distribution", "--nvidia")
			}
			s.both("sh /var/tmp/docker-setup.sh >/var/tmp/log 2>&1 || { tail -n 20 /var/tmp/log; exit 1; }")
			if t.Failed() {
				return
			}
			once := s.facts()
			before := []string{first.run(started), second.run(started)}
			s.both("sh /var/tmp/docker-setup.sh")
			s.unchanged(once)
			for i, m := range s.guests {
				if now := m.run(started); now != before[i] || !strings.Contains(now, `"nvidia"`) {
					t.Errorf("%s: Docker was\n%s\nand is\n%s", m.name, before[i], now)
				}
			}
		})
	if !installed {
		return
	}
	s.scenario("an image of the guests' own files sends over RDMA between containers", func(t *testing.T) {
		s.both(buildImage)
		if t.Failed() {
			t.FailNow()
		}
		send := " local/perftest:1 ib_write_bw -d rxe0 -x " + gid + " -s 65536 -n 64 -u 20 -F"
		second.run(rdmaContainer + " -d --name server" + send +
			"\nuntil grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.5; [ -n \"$(docker ps -q)\" ] || { docker logs server; exit " +
			"1; }; done")
		sent, _ := first.packets()
		out := first.run(rdmaContainer + " --rm" + send + " 192.168.50.12")
		now, _ := first.packets()
		t.Logf("%d packets\n%s", now-sent, lastPart(out, 4))
		if !regexp.MustCompile(`(?m)^ 65536 +64 +[0-9.]+`).MatchString(out) || now-sent < 64*16 {
			t.Errorf("%d packets:\n%s", now-sent, out)
		}
		if out := second.run("docker wait server; docker rm server >/dev/null"); out != "0" {
			t.Errorf("the server ended with %s", out)
		}
		if out, err := first.try("docker run --rm local/perftest:1 ibv_devinfo -l"); err == nil && !strings.Contains(out, "0 HCAs") {
			t.Errorf("a container without devices sees %s", out) // otherwise the flags above prove nothing
		}
	})
	s.scenario("containers behind Docker's bridges reach each other by the generated daemon.json and routes", func(t *testing.T) {
		of := []string{"--host", "guest-1=192.168.50.11", "--host", "guest-2=192.168.50.12"}
		for _, m := range s.guests {
			m.run("cp /etc/docker/daemon.json /var/tmp/daemon.json")
			s.put(m, "/etc/docker/daemon.json", slices.Concat([]string{"daemon-json", "--for", m.name, "--nvidia"}, of)...)
			s.put(m, "/etc/systemd/system/rdma-setup-container-routes.service", slices.Concat([]string{"container-routes", "--for", m.name}, of)...)
		}
		ping := "docker run --rm local/perftest:1 ping -c 3 -W 5 "
		s.both("systemctl restart docker; docker info -f '{{json .Runtimes}}' | grep -q nvidia")
		second.run("docker run -d --name far local/perftest:1 sleep infinity")
		far := second.run("docker inspect -f '{{.NetworkSettings.IPAddress}}' far")
		if out, err := first.try(ping + far); err == nil {
			t.Errorf("%s was reached before there was a route:\n%s", far, out)
		}
		s.both("systemctl daemon-reload; systemctl enable -q --now rdma-setup-container-routes")
		if out := first.run(ping + far); !strings.HasPrefix(far, "172.30.2.") || !strings.Contains(out, " 0% packet loss") {
			t.Errorf("%s:\n%s", far, out)
		}
		s.both("systemctl stop rdma-setup-container-routes")
		if out, err := first.try(ping + far); err == nil {
			t.Errorf("%s is reached without the unit:\n%s", far, out)
		}
		second.run("docker rm -f far")
		s.both("cp /var/tmp/daemon.json /etc/docker/daemon.json; systemctl restart docker")
	})
	s.scenario("generate horovod runs a rank in a container of each guest, and says when NCCL used TCP", func(t *testing.T) {
		s.both(buildHorovod)
		if t.Failed() {
			t.FailNow()
		}
		run := func(image string) (string, error) {
			s.put(first, "/var/tmp/horovod.sh", "horovod", "--mode", "sriov", "--image", image, "--host", "192.168.50.11", "--host", "192.168.50.12")
			return first.try("rm -f /run/nvidia-hook; sh /var/tmp/horovod.sh 2>&1")
		}
		out, err := run("local/horovod:1")
		if err != nil || !strings.Contains(out, "\nVGG16 over NET/IB: Total img/sec on 2 GPU(s): 200.1") ||
			!strings.Contains(out, "[1]<stdout>:guest:9:9 [0] NCCL INFO NET/IB") {
			t.Errorf("%v\n%s", err, out)
		}
		if out := first.run("cat /run/nvidia-hook"); !strings.Contains(out, "prestart") {
			t.Errorf("the container had no GPUs: %q", out)
		}
		if out, err := run("local/horovod:tcp"); err == nil || !strings.Contains(out, "error: NCCL did not use NET/IB") {
			t.Errorf("NCCL over TCP passes: %v\n%s", err, out)
		}
		s.both("[ -z \"$(docker ps -aq)\" ]")
	})
}
