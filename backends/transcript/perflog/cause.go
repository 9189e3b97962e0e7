package perflog

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// causes are the phrases that name why a test failed. Weak ones are consequences: they count only if the text contains nothing
// more specific.
var causes = []struct {
	phrase, code string
	weak         bool
}{
	{"couldn't connect to remote qp", "qp_rtr_failed", false}, // of the ping-pong tests
	{"couldn't connect to", "connect_failed", false},
	{"name resolution for", "connect_failed", false},
	{"service not known for", "connect_failed", false},
	{"no address associated with hostname for", "connect_failed", false},
	{"couldn't listen to port", "connect_failed", false},
	{"accept() failed", "connect_failed", false},
	{"connection refused", "connect_failed", false},
	{"no route to host", "connect_failed", false},
	{"problem in resolving basic", "connect_failed", true},
	{"unable to open file descriptor for socket", "connect_failed", true},
	{"unable to init the socket connection", "connect_failed", true},
	{"ib device not found", "bad_device", false},
	{"unable to find the infiniband", "bad_device", false},
	{"no ib devices found", "bad_device", false},
	{"did not detect devices", "bad_device", false},
	{"failed to get ib devices list", "bad_device", false},
	{"no such device id", "cuda_unsupported", false}, // for a GPU
	{"no such device", "bad_device", false},
	{"unable to query port", "bad_device", false},
	{"couldn't get context for", "bad_device", true},
	{"couldn't set the link layer", "bad_device", true},
	{"can't read sgid", "gid_missing", false},
	{"has no gid", "gid_missing", false},
	{"incompatibility issue with gid", "gid_missing", false},
	{"cuda dma-buf cannot be used without cuda", "bad_option", false},
	{"unrecognized option", "bad_option", false},
	{"invalid option", "bad_option", false},
	{"requires an argument", "bad_option", false},
	{"supports cuda only", "bad_option", false},
	{"supports cuda latency tests", "bad_option", false},
	{"parser function exited", "bad_option", true},
	{"invalid command line", "bad_option", false},
	{"support cuda", "cuda_unsupported", false},
	{"without cuda support", "cuda_unsupported", false},
	{"not compiled with cuda", "cuda_unsupported", false},
	{"not built with cuda", "cuda_unsupported", false},
	{"cuda is not supported", "cuda_unsupported", false},
	{"cuda not supported", "cuda_unsupported", false},
	{"cuda isn't supported", "cuda_unsupported", false},
	{"no cuda device", "cuda_unsupported", false},
	{"no cuda-capable device", "cuda_unsupported", false},
	{"cuinit(0) returned", "cuda_unsupported", false},
	{"cuinit() failed", "cuda_unsupported", false},
	{"cudevicegetcount() returned", "cuda_unsupported", false},
	{"couldn't allocate mr", "mr_failed", false},
	{"failed to create mr", "mr_failed", false},
	{"failed to register mr", "mr_failed", false},
	{"couldn't register mr", "mr_failed", false},
	{"failed to reg mr", "mr_failed", false},
	{"couldn't get device attributes", "qp_create_failed", false},
	{"unable to query device attributes", "qp_create_failed", false},
	{"failed to query device", "qp_create_failed", false},
	{"query device extended attributes", "qp_create_failed", false},
	{"unable to create qp", "qp_create_failed", false},
	{"failed to create qp", "qp_create_failed", false},
	{"couldn't create qp", "qp_create_failed", false},
	{"can't create qp", "qp_create_failed", false},
	{"couldn't create ib resources", "qp_create_failed", true},
	{"unable to connect the hca", "qp_rtr_failed", false},
	{"completion with error", "completion_error", false},
	{"failed status", "completion_error", false},
	{"bad completion", "completion_error", false},
	{"bad wc status", "completion_error", false},
	{"read_keys:", "exchange_failed", false},
	{"write_keys:", "exchange_failed", false},
	{"read_data:", "exchange_failed", false},
	{"read remote address", "exchange_failed", false},
	{"write remote address", "exchange_failed", false},
	{"send local address", "exchange_failed", false},
	{"client read", "exchange_failed", false},
	{"client write", "exchange_failed", false},
	{"server read", "exchange_failed", false},
	{"server write", "exchange_failed", false},
	{"unable to read to socket", "exchange_failed", false},
	{"unable to read from socket", "exchange_failed", false},
	{"unable to write to socket", "exchange_failed", false},
	{"unable to write from socket", "exchange_failed", false},
	{"failed to exchange", "exchange_failed", false},
	{"failed to close connection between server and client", "exchange_failed", true},
	{"rdma cm event error", "rdma_cm_failed", false},
	{"rdma_cm_event_", "rdma_cm_failed", false},
	{"unexpected cm event", "rdma_cm_failed", false},
	{"handle rdma cm event", "rdma_cm_failed", false},
	{"connect rdma cm", "rdma_cm_failed", false},
	{"rdma_bind_addr failed", "rdma_cm_failed", false},
	{"rdma_resolve_addr failed", "rdma_cm_failed", false},
	{"rdma_resolve_route failed", "rdma_cm_failed", false},
	{"rdma_connect failed", "rdma_cm_failed", false},
	{"rdma_listen failed", "rdma_cm_failed", false},
	{"rdma_accept failed", "rdma_cm_failed", false},
	{"rdma_get_cm_event", "rdma_cm_failed", false},
	{"rdma_cm connection", "rdma_cm_failed", false},
	{"unable to perform rdma_client", "rdma_cm_failed", false},
	{"unable to perform rdma_server", "rdma_cm_failed", false},
	{"failed to initialize rdma contexts", "rdma_cm_failed", true},
}

// failing are the words that make a mention of RDMA CM or of a GID a failure.
var failing = []string{"fail", "unable", "couldn't", "can't", "cannot", "not found", "no gid", "invalid", "empty", "error"}

// cause finds the first line that names why the test failed, and the numbers of a failed completion anywhere.
type cause struct {
	code, text         string
	weakCode, weakText string
	extra              map[string]any
	index              *[256][]int // of causes by the first byte of the phrase

	status, wrID, scnt, ccnt *int64
	syndrome                 *string
}

// line reads one line and reports whether it names a cause.
func (c *cause) line(line, lower string) bool {
	if len(lower) < 8 {
		return false
	}
	c.completion(lower)
	if c.code != "" {
		return false
	}
	if strings.Contains(lower, "could not") {
		lower = strings.ReplaceAll(lower, "could not", "couldn't")
	}
	code, weak := c.phrase(lower)
	if special := specialCause(lower); special != "" && (code == "" || weak) {
		code, weak = special, false
	}
	switch {
	case code == "":
	case weak:
		if c.weakCode == "" {
			c.weakCode, c.weakText = code, line
		}
	default:
		c.code, c.text = code, line
		c.extra = causeKeys(code, line)
	}
	return code != ""
}

// phrase returns the first phrase of causes in the line.
func (c *cause) phrase(lower string) (code string, weak bool) {
	if c.index == nil {
		c.index = new([256][]int)
		for i, k := range causes {
			c.index[k.phrase[0]] = append(c.index[k.phrase[0]], i)
		}
	}
	for at := range len(lower) - 1 {
		for _, i := range c.index[lower[at]] {
			if k := &causes[i]; k.phrase[1] == lower[at+1] && strings.HasPrefix(lower[at:], k.phrase) {
				return k.code, k.weak
			}
		}
	}
	return "", false
}

// specialCause recognizes causes without a fixed phrase.
func specialCause(lower string) string {
	switch {
	case strings.Contains(lower, "port number") && strings.Contains(lower, "state is"):
		return "port_down"
	case strings.Contains(lower, "ib device") && strings.Contains(lower, "not found"):
		return "bad_device"
	case strings.Contains(lower, "modify qp") && strings.Contains(lower, "to rt"):
		return "qp_rtr_failed"
	case strings.Contains(lower, "version") && containsAny(lower, "mismatch", "differ", "conflict", "incompatib", "not compatible", "not the same", "match"):
		return "version_mismatch"
	case strings.Contains(lower, "gid") && containsAny(lower, failing...):
		return "gid_missing"
	case (strings.Contains(lower, "rdma cm") || strings.Contains(lower, "rdma_cm")) && !strings.Contains(lower, "socket") && containsAny(lower, failing...):
		return "rdma_cm_failed"
	}
	return ""
}

func containsAny(s string, phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// causeKeys returns the further keys that the line itself contains.
func causeKeys(code, line string) map[string]any {
	switch code {
	case "connect_failed":
		return map[string]any{"peer": peer(line)}
	case "mr_failed":
		return map[string]any{"errno": numberAfter(strings.ToLower(line), "error", "errno")}
	}
	return nil
}

// peer finds host:port after "to" or "for".
func peer(line string) *string {
	for _, mark := range []string{"onnect to ", " for "} {
		rest, ok := scan.After(line, mark)
		if !ok {
			continue
		}
		word, _, _ := strings.Cut(rest, " ")
		word = strings.TrimRight(word, ".,;)")
		if i := strings.LastIndexByte(word, ':'); i > 0 && isInteger(word[i+1:]) {
			return &word
		}
	}
	return nil
}

// completionWords are the names of the completion status codes (ibv_wc_status_str), in the order of the codes.
var completionWords = [...]string{"status success", "local length error", "local qp operation error", "local ee context operation error",
	"local protection error", "work request flushed error", "memory management operation error", "bad response error", "local access error",
	"remote invalid request error", "remote access error", "remote operation error", "transport retry counter exceeded",
	"rnr retry counter exceeded", "local rdd violation error", "remote invalid rd request", "aborted error",
	"invalid ee context number", "invalid ee context state", "fatal error", "response timeout error", "general error"}

func (c *cause) completion(lower string) {
	if strings.Contains(lower, "status") && (strings.Contains(lower, "fail") || strings.Contains(lower, "wr_id") || strings.Contains(lower, "bad ")) {
		first(&c.status, numberAfter(lower, "status"))
		if s, ok := scan.Between(lower, "(", ")"); ok {
			first(&c.status, scan.Int(s))
		}
		for code, words := range completionWords {
			if c.status == nil && strings.Contains(lower, words) {
				n := int64(code)
				c.status = &n
			}
		}
	}
	if strings.Contains(lower, "wr_id") {
		first(&c.wrID, numberAfter(lower, "wr_id"))
	}
	if rest, ok := scan.After(lower, "syndrom"); ok && c.syndrome == nil {
		if f := strings.Fields(strings.TrimLeft(rest, "e:= ")); len(f) > 0 && strings.HasPrefix(f[0], "0x") {
			s := strings.TrimRight(f[0], ",.;")
			c.syndrome = &s
		}
	}
	if strings.Contains(lower, "cnt") {
		first(&c.scnt, numberAfter(lower, "scnt"))
		first(&c.ccnt, numberAfter(lower, "ccnt"))
	}
}

// numberAfter reads the number after the first mark that is followed by one: "error=14", "status 12:", "wr_id: 3".
func numberAfter(lower string, marks ...string) *int64 {
	for _, m := range marks {
		if rest, ok := scan.After(lower, m); ok {
			if n := scan.LeadingInt(strings.TrimLeft(rest, ":=- ")); n != nil {
				return n
			}
		}
	}
	return nil
}

func (c *cause) report(e *scan.Envelope) {
	if c.code == "" {
		c.code, c.text = c.weakCode, c.weakText
		c.extra = causeKeys(c.code, c.text)
	}
	if c.code == "" {
		return
	}
	if c.code == "completion_error" {
		c.extra = map[string]any{"status": c.status, "wr_id": c.wrID, "syndrome": c.syndrome, "scnt": c.scnt, "ccnt": c.ccnt}
	}
	e.Fail(c.code, c.text, c.extra)
}
