package verbs

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// GIDsResult is the text of show_gids (mlnx-tools).
type GIDsResult struct {
	scan.Envelope
	GIDs          []GID  `json:"gids"`
	CountReported *int64 `json:"count_reported"` // n_gids_found
}

// GID is one line of the GID tables.
type GID struct {
	Device  string  `json:"device"`
	Port    int64   `json:"port"`
	Index   int64   `json:"index"`
	GID     string  `json:"gid"`
	IPv4    *string `json:"ipv4"`
	Version *string `json:"version"` // RoCE "v1" or "v2"
	Netdev  *string `json:"netdev"`
}

// GIDs parses the text of show_gids. The first four columns make a row; each of the others may be empty, and may be on the next
// line.
func GIDs(text string) GIDsResult {
	r := GIDsResult{GIDs: []GID{}}
	r.Envelope, text = scan.Begin("show_gids", text)
	understood := false
	var open *GID
	for line := range scan.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			open = nil
			continue
		}
		if len(words) >= 4 && strings.EqualFold(words[1], "port") && strings.EqualFold(words[2], "index") {
			understood = true
			for len(words) > 0 && rowAt(words) == nil && !strings.HasPrefix(words[0], "n_gids_found") {
				words = words[1:]
			}
			line = strings.Join(words, " ")
		}
		if n, ok := scan.After(line, "n_gids_found="); ok {
			r.CountReported, understood = scan.LeadingInt(n), true
			line, _, _ = strings.Cut(line, "n_gids_found=")
			words = strings.Fields(line)
		}
		if open != nil && len(words) > 0 && rowAt(words) == nil && scan.IPv4(words[0]) == nil && !isVersion(words[0]) && (len(words) > 1 || !isDeviceName(words[0])) {
			open = nil
		}
		for i := 0; i < len(words); i++ {
			if row := rowAt(words[i:]); row != nil {
				r.GIDs = append(r.GIDs, *row)
				open = &r.GIDs[len(r.GIDs)-1]
				i += 3
				continue
			}
			if open == nil {
				continue
			}
			switch w := words[i]; {
			case open.IPv4 == nil && open.Version == nil && scan.IPv4(w) != nil:
				open.IPv4 = scan.IPv4(w)
			case open.Version == nil && isVersion(w):
				open.Version = new(strings.ToLower(w))
			default:
				scan.Keep(&open.Netdev, scan.Str(w))
				open = nil
			}
		}
	}
	r.NotUnderstood(understood || len(r.GIDs) > 0, text)
	return r
}

func isVersion(w string) bool { return strings.EqualFold(w, "v1") || strings.EqualFold(w, "v2") }

// rowAt reads device, port, index and GID; an address directly after the GID, which fills its column, is separated.
func rowAt(words []string) *GID {
	if len(words) < 4 || !isDeviceName(words[0]) {
		return nil
	}
	port, index := scan.Int(words[1]), scan.Int(words[2])
	if port == nil || index == nil {
		return nil
	}
	text, ipv4 := words[3], ""
	if width := len("fe80:0000:0000:0000:0000:0000:0000:0001"); len(text) > width && strings.Count(text[:width], ":") == 7 {
		text, ipv4 = text[:width], text[width:]
	}
	gid := scan.GID(text)
	if gid == nil {
		return nil
	}
	return &GID{Device: words[0], Port: *port, Index: *index, GID: *gid, IPv4: scan.IPv4(ipv4)}
}
