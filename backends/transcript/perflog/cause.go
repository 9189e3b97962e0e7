package perflog

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// causes are the phrases that name why a test failed, by code. Weak ones are consequences: they count only if the text contains
// nothing more specific. Of two phrases that begin alike, the longer one comes first.
var causes = []struct {
	code    string
	weak    bool
	phrases []string
}{
	{"qp_rtr_failed", false, []string{"couldn't connect to remote qp", "unable to connect the hca"}}, // the first is of the ping-pong tests
	{"cuda_unsupported", false, []string{ // "no such device id" is about a GPU
		"no such device id", "support cuda", "without cuda support", "not compiled with cuda", "not built with cuda",
		"cuda is not supported", "cuda not supported", "cuda isn't supported", "no cuda device", "no cuda-capable device",
		"cuinit(0) returned", "cuinit() failed", "cudevicegetcount() returned",
	}},
	{"connect_failed", false, []string{
		"couldn't connect to", "name resolution for", "service not known for", "no address associated with hostname for",
		"couldn't listen to port", "accept() failed", "connection refused", "no route to host",
	}},
	{"connect_failed", true, []string{
		"problem in resolving basic", "unable to open file descriptor for socket", "unable to init the socket connection",
	}},
	{"bad_device", false, []string{
		"ib device not found", "unable to find the infiniband", "no ib devices found", "did not detect devices",
		"failed to get ib devices list", "no such device", "unable to query port",
	}},
	{"bad_device", true, []string{"couldn't get context for", "couldn't set the link layer"}},
	{"gid_missing", false, []string{"can't read sgid", "has no gid", "incompatibility issue with gid"}},
	{"bad_option", false, []string{
		"cuda dma-buf cannot be used without cuda", "unrecognized option", "invalid option", "requires an argument",
		"supports cuda only", "supports cuda latency tests", "invalid command line",
	}},
	{"bad_option", true, []string{"parser function exited"}},
	{"mr_failed", false, []string{
		"couldn't allocate mr", "failed to create mr", "failed to register mr", "couldn't register mr", "failed to reg mr",
	}},
	{"qp_create_failed", false, []string{
		"couldn't get device attributes", "unable to query device attributes", "failed to query device",
		"query device extended attributes", "unable to create qp", "failed to create qp", "couldn't create qp", "can't create qp",
	}},
	{"qp_create_failed", true, []string{"couldn't create ib resources"}},
	{"completion_error", false, []string{"completion with error", "failed status", "bad completion", "bad wc status"}},
	{"exchange_failed", false, []string{
		"read_keys:", "write_keys:", "read_data:", "read remote address", "write remote address", "send local address",
		"client read", "client write", "server read", "server write", "unable to read to socket", "unable to read from socket",
		"unable to write to socket", "unable to write from socket", "failed to exchange",
	}},
	{"exchange_failed", true, []string{"failed to close connection between server and client"}},
	{"rdma_cm_failed", false, []string{
		"rdma cm event error", "rdma_cm_event_", "unexpected cm event", "handle rdma cm event", "connect rdma cm",
		"rdma_bind_addr failed", "rdma_resolve_addr failed", "rdma_resolve_route failed", "rdma_connect failed",
		"rdma_listen failed", "rdma_accept failed", "rdma_get_cm_event", "rdma_cm connection", "unable to perform rdma_client",
		"unable to perform rdma_server",
	}},
	{"rdma_cm_failed", true, []string{"failed to initialize rdma contexts"}},
}

// failing are the words that make a mention of RDMA CM or of a GID a failure.
var failing = []string{"fail", "unable", "couldn't", "can't", "cannot", "not found", "no gid", "invalid", "empty", "error"}

// cause finds the first line that names why the test failed, and the numbers of a failed completion anywhere.
type cause struct {
	code, text         string
	weakCode, weakText string
	extra              map[string]any

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
	code, weak := phrase(lower)
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
func phrase(lower string) (code string, weak bool) {
	first := len(lower)
	for _, k := range causes {
		for _, text := range k.phrases {
			if at := strings.Index(lower[:min(len(lower), first+len(text))], text); at >= 0 && at < first {
				first, code, weak = at, k.code, k.weak
			}
		}
	}
	return code, weak
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
	case strings.Contains(lower, "version") && containsAny(lower, "mismatch", "differ", "conflict", "incompatib", "not compatible",
		"not the same", "match"):
		return "version_mismatch"
	case strings.Contains(lower, "gid") && containsAny(lower, failing...):
		return "gid_missing"
	case (strings.Contains(lower, "rdma cm") || strings.Contains(lower, "rdma_cm")) && !strings.Contains(lower, "socket") &&
		containsAny(lower, failing...):
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
	if strings.Contains(lower, "status") && containsAny(lower, "fail", "wr_id", "bad ") {
		scan.Keep(&c.status, numberAfter(lower, "status"))
		if s, ok := scan.Between(lower, "(", ")"); ok {
			scan.Keep(&c.status, scan.Int(s))
		}
		for code, words := range completionWords {
			if c.status == nil && strings.Contains(lower, words) {
				c.status = new(int64(code))
			}
		}
	}
	if strings.Contains(lower, "wr_id") {
		scan.Keep(&c.wrID, numberAfter(lower, "wr_id"))
	}
	if rest, ok := scan.After(lower, "syndrom"); ok && c.syndrome == nil {
		if f := strings.Fields(strings.TrimLeft(rest, "e:= ")); len(f) > 0 && strings.HasPrefix(f[0], "0x") {
			c.syndrome = new(strings.TrimRight(f[0], ",.;"))
		}
	}
	if strings.Contains(lower, "cnt") {
		scan.Keep(&c.scnt, numberAfter(lower, "scnt"))
		scan.Keep(&c.ccnt, numberAfter(lower, "ccnt"))
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
