package transcript_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// Parse turns a tool's output into a value, by the tool's name; the command parse prints the same.
func ExampleParse() {
	r, err := transcript.Parse("lsmod", strings.NewReader("Module                  Size  Used by\nvmw_pvrdma             53248  0\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := json.Marshal(r)
	fmt.Println(string(text))
	// Output: {"tool":"lsmod","warnings":[],"errors":[],"modules":[{"name":"vmw_pvrdma","size_bytes":53248,"refcount":0,"used_by":[]}]}
}
