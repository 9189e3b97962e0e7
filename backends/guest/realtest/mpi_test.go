//go:build e2e

package realtest_test

import (
	"strconv"
	"strings"
	"testing"
)

// withMPI mounts Debian's Open MPI, UCX and a compiler over the guest's /usr, from the second disk: an emulated processor takes
// minutes to install them. UCX drops datagrams from soft-RoCE because it takes the reported destination for another host's (UCX
// 1.13.1, Linux 6.1: with its check, connections time out; without it, they are established). The check is therefore disabled, and
// the timeouts allow for an emulated processor.
const withMPI = `mkdir /mpi && mount -o ro /dev/disk/by-label/mpi /mpi
for d in usr etc/alternatives; do mount -t overlay -o ro,lowerdir=/mpi/$d:/$d overlay /$d || exit 1; done
mkdir -p /etc/ucx && printf '%s\n' UCX_UD_ETH_DGID_CHECK=n UCX_UD_TIMEOUT=150s UCX_RC_TIMEOUT=10s >/etc/ucx/ucx.conf`

const withoutMPI = `umount -l /etc/alternatives /usr /mpi; rmdir /mpi; rm -r /etc/ucx
if ls -d /tmp/rdma-setup-mpi-* || pgrep 'orted|mpirun'; then echo 'MPI has left something' >&2; exit 1; fi`

const rxeCounters = "cd /sys/class/infiniband/rxe0/ports/1/hw_counters && cat sent_pkts rcvd_pkts"

// packets returns how many packets soft-RoCE has sent and received in a guest.
func (m *machine) packets() (sent, received int) {
	m.t.Helper()
	f := strings.Fields(m.run(rxeCounters))
	sent, _ = strconv.Atoi(f[0])
	received, _ = strconv.Atoi(f[len(f)-1])
	return sent, received
}

// mpi builds the program that replaces the OSU micro-benchmarks in the guests, runs it between them with Open MPI, and proves that
// its messages used RDMA: the kernel's soft-RoCE has counted them at both ends.
func (s *site) mpi(answers string) {
	s.scenario("bench --osu runs MPI between the guests over RDMA", func(t *testing.T) {
		s.both(brief)
		defer s.both("rm /usr/local/bin/ib_send_bw")
		s.both(withMPI)
		defer s.both(withoutMPI)
		file := s.measure(answers, "answers-mpi.yaml", "\nmeasure: {bandwidth: true, latency: false}\n")
		first, second := s.guests[0], s.guests[1]
		sent, _ := first.packets()
		_, received := second.packets()
		all, code := s.bench("-f", file, "--osu")
		nowSent, _ := first.packets()
		_, nowReceived := second.packets()
		t.Logf("exit %d: %+v; packets sent: %d, received: %d", code, all, nowSent-sent, nowReceived-received)
		got := ""
		for _, m := range all {
			got += m.Test + " " + strconv.Itoa(len(m.Rows)) + "\n"
			if m.Error != "" {
				t.Errorf("%s: %s (%s)", m.Test, m.Error, m.Hint)
			}
			if m.Test == "mpi_bw" && (m.AchievedGbps <= 0 || m.ExpectedGbps <= 0 || m.Verdict == "unknown") {
				t.Errorf("MPI is not held against RDMA: %+v", m)
			}
		}
		// Sizes grow by a factor of four: from 1 byte to 64 KiB and 1 MiB, and for sums from one float to 64 KiB.
		if want := "ib_send_bw 1\nmpi_lat 9\nmpi_bw 11\nmpi_allreduce_lat 8\n"; got != want {
			t.Errorf("measured\n%swant\n%s", got, want)
		}
		// MPI's bandwidth test sends two windows of every size at least, 46 MB in packets of 4096 bytes; perftest sends 6 MB.
		if nowSent-sent < 10_000 || nowReceived-received < 10_000 {
			t.Errorf("soft-RoCE has sent %d packets and received %d: MPI went another way", nowSent-sent, nowReceived-received)
		}
	})
}
