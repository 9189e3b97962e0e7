package perflog

import (
	"regexp"
	"strconv"
	"strings"
)

// A SizeRow is one message size of an application's benchmark.
type SizeRow struct {
	Bytes int64
	Value float64 // microseconds, or Gb/s
}

// OSUResult is the text of an OSU micro-benchmark, or of the program that replaces them.
type OSUResult struct {
	Latency bool // values are microseconds; otherwise Gb/s
	Rows    []SizeRow
}

// OSU reads two columns below a heading such as "# OSU MPI Bandwidth Test v7.3" and "# Size Bandwidth (MB/s)". A MB is a million
// bytes (OSU micro-benchmarks, c/mpi/pt2pt/standard/osu_bw.c). Further columns, as with -f, are ignored.
func OSU(text string) OSUResult {
	var r OSUResult
	inTable := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "#" && strings.EqualFold(words[1], "size") {
			heading := strings.ToLower(line)
			r.Latency = strings.Contains(heading, "(us)")
			inTable = r.Latency || strings.Contains(heading, "(mb/s)")
			continue
		}
		if !inTable || len(words) < 2 {
			continue
		}
		size, err := strconv.ParseInt(words[0], 10, 64)
		value, bad := strconv.ParseFloat(words[1], 64)
		if err != nil || bad != nil || size < 0 || !(value >= 0 && value < 1e15) {
			continue
		}
		if !r.Latency {
			value *= 8.0 / 1000
		}
		r.Rows = append(r.Rows, SizeRow{size, value})
	}
	return r
}

// NCCLResult is the text of a program of nccl-tests that ran with NCCL_DEBUG=INFO.
type NCCLResult struct {
	Rows  []SizeRow // bus bandwidth of the out-of-place run, Gb/s
	Wrong int64     // number of values that a collective has computed wrongly

	// Transport is how data leaves the guests: "NET/IB/GDRDMA", "NET/IB" (through host memory), "NET/Socket", "NET/NAME" of a
	// plug-in; "" if the log does not show it, as within one guest.
	Transport string
	Devices   []string // that NCCL's IB transport uses: "mlx5_0:1/RoCE"
	NoDevice  bool     // the IB transport has found no device
	Warning   string   // the first warning of NCCL, or the failure of the program; ""
}

// The lines of NCCL's log, by its source (v2.18 to v2.27): src/transport/net_ib.cc prints "NET/IB : No device found." and
// "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB ens192:..."; src/init.cc and src/plugin/net.cc "Using network IB";
// src/transport/net.cc "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA", since 2.27 also "/GDRDMA(PCI)"; src/graph/topo.cc (xml.cc
// before) "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'". A plug-in's name begins as the transport that it replaces: IBext_v8.
var (
	ncclVia     = regexp.MustCompile(` via NET/([A-Za-z0-9_ -]+?)/\d+(?:\(\d+\))?(/GDRDMA(?:\([A-Z0-9]+\))?)?(?:/\S*)?\s*$`)
	ncclUsing   = regexp.MustCompile(`NCCL INFO Using network (\S.*?)\s*$`)
	ncclDevices = regexp.MustCompile(`NET/IB : Using (\[0\].*)$`)
	ncclDevice  = regexp.MustCompile(`\[\d+\]([A-Za-z0-9_.+-]+:\d+/[A-Za-z]+)`)
)

// networkName is IB for NCCL's own transport and the plug-in of the same make (nccl-rdma-sharp-plugins).
func networkName(name string) string {
	if name == "IB" || strings.HasPrefix(name, "IBext") {
		return "IB"
	}
	return name
}

// NCCL parses the table and the log of nccl-tests, which may be mixed in one text.
func NCCL(text string) NCCLResult {
	var r NCCLResult
	var columns []string
	var direct, staged int
	using, other := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := ncclVia.FindStringSubmatch(line); m != nil {
			switch {
			case networkName(m[1]) != "IB":
				other = "NET/" + m[1]
			case m[2] != "":
				direct++
			default:
				staged++
			}
			continue
		}
		if m := ncclUsing.FindStringSubmatch(line); m != nil {
			using = "NET/" + networkName(m[1])
			continue
		}
		if m := ncclDevices.FindStringSubmatch(line); m != nil && r.Devices == nil {
			for _, d := range ncclDevice.FindAllStringSubmatch(m[1], -1) {
				r.Devices = append(r.Devices, d[1])
			}
			continue
		}
		r.NoDevice = r.NoDevice || strings.Contains(line, "NET/IB : No device found")
		if at := strings.Index(line, "NCCL WARN "); at >= 0 && r.Warning == "" {
			r.Warning = strings.TrimSpace(line[at+len("NCCL WARN "):])
		} else if at := strings.Index(line, "Test NCCL failure"); at >= 0 && r.Warning == "" {
			r.Warning = strings.TrimSpace(line[at:])
		}
		words := strings.Fields(line)
		if len(words) > 2 && words[0] == "#" && words[1] == "size" && strings.Contains(line, "busbw") {
			columns = words[1:]
			continue
		}
		r.row(words, columns)
	}
	switch {
	case other != "":
		r.Transport = other
	case staged > 0:
		r.Transport = "NET/IB"
	case direct > 0:
		r.Transport = "NET/IB/GDRDMA"
	default:
		r.Transport = using
	}
	return r
}

// row reads a row of the table by the names of its columns: older releases have no column root, and all_gather no redop. The
// column of wrong values was "error", a difference, before 2.13.
func (r *NCCLResult) row(words, columns []string) {
	if len(words) == 0 || len(words) != len(columns) {
		return
	}
	size, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || size < 0 {
		return
	}
	seen := false
	for i, name := range columns {
		switch name {
		case "busbw":
			if gigabytes, err := strconv.ParseFloat(words[i], 64); err == nil && !seen && gigabytes >= 0 && gigabytes < 1e9 {
				r.Rows = append(r.Rows, SizeRow{size, 8 * gigabytes})
				seen = true
			}
		case "#wrong":
			if n, err := strconv.ParseInt(words[i], 10, 64); err == nil && n > 0 {
				r.Wrong += n
			}
		}
	}
}
