// Package perflog parses the output of linux-rdma/perftest and ibv_rc_pingpong.
package perflog

import (
	"net/netip"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// CodeOverflow is the warning of a table with figures that cannot be measured ones: perftest counts in 32 bits, and a long run
// overflows them (linux-rdma/perftest issue 82).
const CodeOverflow = "counter_overflow"

// Header is what the bandwidth and latency tests print before their table; nil if a value is not printed. Where the output of
// client and server is mixed in one text, the first value seen wins.
type Header struct {
	Device             *string   `json:"device"`
	Bidirectional      *bool     `json:"bidirectional"` // nil without a title line
	DualPort           *bool     `json:"dual_port"`
	NumQPs             *int64    `json:"num_qps"`
	Transport          *string   `json:"transport"`
	Connection         *string   `json:"connection"`
	UsingSRQ           *bool     `json:"using_srq"`
	PCIeRelaxedOrder   *bool     `json:"pcie_relaxed_order"`
	IbvWrAPI           *bool     `json:"ibv_wr_api"`
	TxDepth            *int64    `json:"tx_depth"`
	RxDepth            *int64    `json:"rx_depth"`
	PostList           *int64    `json:"post_list"`
	CQModeration       *int64    `json:"cq_moderation"`
	MTU                *int64    `json:"mtu"`        // bytes
	LinkLayer          *string   `json:"link_layer"` // as printed: IB, Ethernet
	GIDIndex           *int64    `json:"gid_index"`
	MaxInlineDataBytes *int64    `json:"max_inline_data_bytes"`
	OutstandingReads   *int64    `json:"outstanding_reads"`
	RDMACM             *bool     `json:"rdma_cm"` // the QPs are connected by RDMA CM
	DataExchange       *string   `json:"data_exchange"`
	Local              []Address `json:"local"`
	Remote             []Address `json:"remote"`
	WaitingForClient   bool      `json:"waiting_for_client"`
	GPUName            *string   `json:"gpu_name"`
	CUDA               bool      `json:"-"` // the test used GPU memory
	DMABuf             bool      `json:"-"` // through DMA-BUF
}

// Address is one end of a queue pair.
type Address struct {
	LID     *int64  `json:"lid"`
	QPN     *int64  `json:"qpn"`
	PSN     *int64  `json:"psn"`
	GIDIPv4 *string `json:"gid_ipv4"` // nil when the GID is not a mapped IPv4 address

	GID netip.Addr `json:"-"` // the zero Addr if it is not printed whole
}

// BandwidthRow is one message size. A peak of zero means "not measured" and is nil.
type BandwidthRow struct {
	SizeBytes   int64    `json:"size_bytes"`
	Iterations  int64    `json:"iterations"`
	BWPeakGbps  *float64 `json:"bw_peak_gbps"`
	BWAvgGbps   *float64 `json:"bw_avg_gbps"`
	MsgRateMpps *float64 `json:"msg_rate_mpps"`
}

// BandwidthResult is the text of ib_send_bw, ib_write_bw or ib_read_bw.
type BandwidthResult struct {
	scan.Envelope
	Header
	UnitReported *string        `json:"unit_reported"` // "MB/s" (of 2^20 bytes) or "Gb/s"; nil without a heading
	Rows         []BandwidthRow `json:"rows"`
	Complete     bool           `json:"complete"` // a dashed line or the results block ends the table
}

// LatencyRow is one message size. Runs of a fixed duration have only the average and the transactions per second.
type LatencyRow struct {
	SizeBytes  int64    `json:"size_bytes"`
	Iterations int64    `json:"iterations"`
	TMinUs     *float64 `json:"t_min_us"`
	TMaxUs     *float64 `json:"t_max_us"`
	TTypicalUs *float64 `json:"t_typical_us"`
	TAvgUs     *float64 `json:"t_avg_us"`
	TStdevUs   *float64 `json:"t_stdev_us"`
	P99Us      *float64 `json:"p99_us"`
	P999Us     *float64 `json:"p999_us"`
	TPS        *float64 `json:"tps"`
}

// LatencyResult is the text of ib_send_lat, ib_write_lat or ib_read_lat.
type LatencyResult struct {
	scan.Envelope
	Header
	Rows     []LatencyRow `json:"rows"`
	Complete bool         `json:"complete"`
}

// Bandwidth reads the text of a bandwidth test; tool is its id ("ib_send_bw").
func Bandwidth(tool, text string) BandwidthResult {
	p := newParser(tool, text, bandwidth)
	p.run()
	return BandwidthResult{p.envelope, p.header, p.table.unitReported(), p.table.bandwidthRows(), p.table.complete}
}

// Latency reads the text of a latency test; tool is its id ("ib_send_lat").
func Latency(tool, text string) LatencyResult {
	p := newParser(tool, text, latency)
	p.run()
	return LatencyResult{p.envelope, p.header, p.table.latencyRows(), p.table.complete}
}

type parser struct {
	envelope   scan.Envelope
	text       string
	header     Header
	table      table
	cause      cause
	understood bool
	side       *[]Address // the side that the last address line filled
	gidOpen    string     // a GID line that was wrapped
	before     string     // the previous line, if it was not understood
}

func newParser(tool, text string, k kind) *parser {
	p := &parser{table: table{kind: k}}
	p.envelope, p.text = scan.Begin(tool, text)
	p.header.Local, p.header.Remote = []Address{}, []Address{}
	return p
}

func (p *parser) run() {
	for line := range scan.Lines(p.text) {
		p.line(line)
	}
	p.table.finish()
	p.cause.report(&p.envelope)
	if p.table.overflow {
		p.envelope.Warn(CodeOverflow, "a figure is negative: the counters of the tool overflowed")
	}
	p.understood = p.understood || p.table.seen()
	p.envelope.NotUnderstood(p.understood, p.text)
}

func (p *parser) line(line string) {
	line = strings.TrimRight(scan.TrimIndent(line), " \t")
	if len(line) < 3 { // nothing shorter has a meaning
		return
	}
	if c := line[0]; c >= '0' && c <= '9' && p.gidOpen == "" && p.table.numbers(line) {
		// An error message may directly follow the last number of the row.
		if tail := p.table.tail; tail != "" {
			p.words(tail)
		}
		return
	}
	if isOption(line) {
		return
	}
	p.words(line)
}

// words reads a line that is not a row of numbers.
func (p *parser) words(line string) {
	if isDashes(line) {
		p.table.rule()
		return
	}
	if p.gid(line) {
		return
	}
	lower := strings.ToLower(line)
	if p.table.heading(lower) {
		rest := line[strings.LastIndexByte(line, ']')+1:]
		if _, behind, ok := strings.Cut(rest, "average"); ok { // "tps average" has no unit
			rest = behind
		}
		if rest = scan.TrimIndent(rest); rest != line {
			p.table.numbers(rest)
		}
		return
	}
	p.address(line, lower)
	p.title(lower)
	p.fields(line)
	if p.banner(line, lower) || p.cause.line(line, lower) {
		p.before = ""
		return
	}
	if p.before != "" && p.cause.code == "" { // the terminal may have wrapped a message
		joined := p.before + " " + line
		p.banner(joined, strings.ToLower(joined))
		p.cause.line(joined, strings.ToLower(joined))
	}
	p.before = ""
	if len(line) >= 40 && len(line) < 512 && containsAny(lower, "fail", "unable", "couldn't", "inline", "peak", "conflicting", "event",
		"error") {
		p.before = line
	}
}

// isDashes matches a line of three or more dashes, as perftest draws above and below its blocks.
func isDashes(line string) bool { return len(line) >= 3 && strings.Trim(line, "-") == "" }

// isOption recognizes a line of the usage text, which mentions everything that can go wrong.
func isOption(line string) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(line, "-"), "-")
	return len(rest) < len(line) && rest != "" && (rest[0] >= 'a' && rest[0] <= 'z' || rest[0] >= 'A' && rest[0] <= 'Z')
}

func (p *parser) title(lower string) {
	if !strings.Contains(lower, "test") || !strings.Contains(lower, "bw") && !strings.Contains(lower, "latency") {
		return
	}
	words := strings.FieldsFunc(lower, func(r rune) bool { return strings.ContainsRune(" \t_:,\"{-", r) })
	var measured, both bool
	for i, w := range words {
		switch w {
		case "bw", "latency":
			measured = true
		case "bidirectional", "directional":
			both = both || w != "directional" || i > 0 && words[i-1] == "bi"
		case "test":
			if !measured || words[i-1] != "bw" && words[i-1] != "latency" && words[i-1] != "load" {
				continue
			}
			p.understood = true
			if p.header.Bidirectional == nil {
				p.header.Bidirectional = &both
			}
			return
		}
	}
}

// banner reads the messages that are not failures and reports whether the line is one.
func (p *parser) banner(line, lower string) (found bool) {
	if strings.Contains(lower, "waiting for client to connect") {
		p.header.WaitingForClient, p.understood, found = true, true, true
	}
	if name, ok := scan.Between(line, "device name = [", "]"); ok && p.header.GPUName == nil {
		p.header.GPUName, p.understood = scan.Str(name), true
	}
	p.header.CUDA = p.header.CUDA || containsAny(lower, "cuda ctx", "initializing cuda", "gpu buffer")
	p.header.DMABuf = p.header.DMABuf || containsAny(lower, "using dma-buf", "ibv_reg_dmabuf_mr")
	if provider := scan.MissingProvider(line); provider != "" {
		p.envelope.WarnProvider(provider, line)
		return true
	}
	if code := warningOf(lower); code != "" {
		p.envelope.Warn(code, line)
		p.understood, found = true, true
	}
	return found
}

func warningOf(lower string) string {
	switch {
	case strings.Contains(lower, "bw peak") && strings.Contains(lower, "be measured"):
		return "bw_peak_not_measured"
	case strings.Contains(lower, "cpu freq") && containsAny(lower, "conflicting", "is not max"):
		return "cpu_frequency_conflict"
	case strings.Contains(lower, "inline") && containsAny(lower, "implement inline feature", "disabling", "set to 0", "forced to 0",
		"size to 0"):
		return "inline_disabled"
	}
	return ""
}
