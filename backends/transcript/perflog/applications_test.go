package perflog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends/transcript/perflog"
)

const (
	nets = `vm-01:2101:2101 [0] NCCL INFO Bootstrap : Using ens160:10.0.0.11<0>
NCCL version 2.21.5+cuda12.4
`
	found    = "vm-01:2101:2118 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB ens160:10.0.0.11<0>\n"
	none     = "vm-01:2101:2118 [0] NCCL INFO NET/IB : No device found.\n"
	usingIB  = "vm-01:2101:2118 [0] NCCL INFO Using network IB\n"
	usingTCP = "vm-01:2101:2118 [0] NCCL INFO NET/Socket : Using [0]ens160:10.0.0.11<0>\nvm-01:2101:2118 [0] NCCL INFO Using network Socket\n"
	direct   = "vm-01:2101:2118 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\nvm-01:2101:2118 [0] NCCL INFO " +
		"Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
	directPCI = "vm-01:2101:2118 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA(PCI)\n"
	shared    = "vm-01:2101:2118 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0(1)/GDRDMA/Shared\n"
	staged    = "vm-01:2101:2118 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0\n"
	overTCP   = "vm-01:2101:2118 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
	extension = "vm-01:2101:2118 [0] NCCL INFO Using network IBext_v8\nvm-01:2101:2118 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via " +
		"NET/IBext_v8/0/GDRDMA\n"
	enabled = "vm-01:2101:2118 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'\n"
	table   = `#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    24.11    0.00    0.00      0    23.90    0.00    0.00      0
  1073741824     268435456     float     sum      -1    93120   11.53   11.53      0    93214   11.52   11.52      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 5.77
`
	// all_gather of nccl-tests 2.0: neither redop nor root, an error in place of a count.
	older = `#       size         count      type     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     134217728     float    93120   11.53    5.77  0e+00    93214   11.52    5.76  0e+00
`
	wrong = `#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    412.0    2.55    2.55     17    410.1    2.56    2.56    N/A
`
)

func TestNCCL(t *testing.T) {
	rows := []perflog.SizeRow{{Bytes: 8}, {Bytes: 1 << 30, Value: 92.24}}
	dev := []string{"mlx5_0:1/RoCE"}
	for name, test := range map[string]struct {
		text string
		want perflog.NCCLResult
	}{
		"GPUDirect RDMA": {nets + found + usingIB + enabled + direct + shared + table,
			perflog.NCCLResult{Rows: rows, Transport: "NET/IB/GDRDMA", Devices: dev}},
		"GPUDirect RDMA by PCI": {nets + found + usingIB + direct +
			"vm-01:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0(1)/GDRDMA(PCI)/Shared\n" + directPCI,
			perflog.NCCLResult{Transport: "NET/IB/GDRDMA", Devices: dev}},
		"through host memory": {nets + found + usingIB + staged + table, perflog.NCCLResult{Rows: rows, Transport: "NET/IB",
			Devices: dev}},
		"some channels without":       {nets + found + usingIB + direct + staged, perflog.NCCLResult{Transport: "NET/IB", Devices: dev}},
		"a plug-in of the same make":  {nets + extension, perflog.NCCLResult{Transport: "NET/IB/GDRDMA"}},
		"no device: sockets":          {nets + none + usingTCP + overTCP, perflog.NCCLResult{Transport: "NET/Socket", NoDevice: true}},
		"no device, nothing beyond":   {nets + none, perflog.NCCLResult{NoDevice: true}},
		"IB off by NCCL_IB_DISABLE":   {nets + usingTCP + overTCP, perflog.NCCLResult{Transport: "NET/Socket"}},
		"the network, and no channel": {nets + found + usingIB, perflog.NCCLResult{Transport: "NET/IB", Devices: dev}},
		"a device is no transport":    {nets + found, perflog.NCCLResult{Devices: dev}},
		"another plug-in": {nets + "vm-01:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0/GDRDMA\n",
			perflog.NCCLResult{Transport: "NET/AWS Libfabric"}},
		"a queue pair that failed": {nets + found + usingIB +
			"\nvm-01:2101:2118 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 192.168.50.12<41210> with status=12 " +
			"opcode=0 len=0 vendor err 129\n",
			perflog.NCCLResult{Transport: "NET/IB", Devices: dev,
				Warning: "NET/IB : Got completion from peer 192.168.50.12<41210> with status=12 opcode=0 len=0 vendor err 129"}},
		"the program failed": {"vm-01: Test NCCL failure common.cu:958 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '\n",
			perflog.NCCLResult{Warning: "Test NCCL failure common.cu:958 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '"}},
		"an older table": {older, perflog.NCCLResult{Rows: []perflog.SizeRow{{Bytes: 1 << 30, Value: 46.16}}}},
		"wrong values":   {wrong, perflog.NCCLResult{Rows: []perflog.SizeRow{{Bytes: 1 << 20, Value: 20.4}}, Wrong: 17}},
		"nothing":        {"", perflog.NCCLResult{}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(test.want, perflog.NCCL(test.text)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestOSU(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want perflog.OSUResult
	}{
		"latency": {
			"# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n0                       1.32\n1                       1.35\n",
			perflog.OSUResult{Latency: true, Rows: []perflog.SizeRow{{Value: 1.32}, {Bytes: 1, Value: 1.35}}}},
		"bandwidth": {
			"# OSU MPI Bandwidth Test v7.3\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n1048576             11500.25\n",
			perflog.OSUResult{Rows: []perflog.SizeRow{{Bytes: 1 << 20, Value: 92.002}}}},
		"all-reduce": {
			"# OSU MPI Allreduce Latency Test v5.9\n# Size       Avg Latency(us)   Min Latency(us)\n4                       3.08      2.11\n",
			perflog.OSUResult{Latency: true, Rows: []perflog.SizeRow{{Bytes: 4, Value: 3.08}}}},
		"rows and no title": {"4096   11.2\n", perflog.OSUResult{}},
		"noise":             {"# Size          Latency (us)\n1 x\n-1 2\n1 -2\n1 NaN\n", perflog.OSUResult{Latency: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(test.want, perflog.OSU(test.text)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Any text can be read: figures are never negative, and a transport is a NET.
func FuzzApplications(f *testing.F) {
	f.Add(nets + found + usingIB + direct + table)
	f.Add(older + none + usingTCP)
	f.Add("# Size      Bandwidth (MB/s)\n1048576             11500.25\n")
	f.Fuzz(func(t *testing.T, text string) {
		n := perflog.NCCL(text)
		if n.Transport != "" && n.Transport[:4] != "NET/" || n.Wrong < 0 {
			t.Errorf("%+v", n)
		}
		for _, r := range append(n.Rows, perflog.OSU(text).Rows...) {
			if !(r.Bytes >= 0 && r.Value >= 0) {
				t.Errorf("%+v", r)
			}
		}
	})
}
