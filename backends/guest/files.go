package guest

import (
	"strconv"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A keptFile is a file with its metadata.
type keptFile struct {
	Path    string
	Mode    uint32
	Owner   string // uid:gid
	Content []byte
}

// dumped parses the output of dump.sh.
func dumped(text string) []keptFile {
	var files []keptFile
	for {
		head, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return files
		}
		parts := strings.SplitN(strings.TrimPrefix(head, "file "), "|", 4)
		if !strings.HasPrefix(head, "file ") || len(parts) != 4 {
			text = rest
			continue
		}
		mode, _ := strconv.ParseUint(parts[0], 8, 32)
		size, err := strconv.Atoi(parts[2])
		if err != nil || size < 0 || size > len(rest) {
			return files
		}
		files = append(files, keptFile{Path: parts[3], Mode: uint32(mode), Owner: parts[1], Content: []byte(rest[:size])})
		text = strings.TrimPrefix(rest[size:], "\n")
	}
}

// A fileState is the part of a file that is compared.
type fileState struct {
	Mode   uint32 `json:"mode"`
	Owner  string `json:"owner"` // uid:gid
	SHA256 string `json:"sha256"`
}

// badKept is the error for an invalid journalled value.
func badKept(vm string, err error) error {
	return backends.Errorf(backends.KindPermanent, label(vm), "", "the saved previous state cannot be read: %w", err)
}
