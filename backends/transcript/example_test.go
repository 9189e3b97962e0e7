package transcript_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// Parse turns a tool's output into a value, by the tool's name; the command parse prints the same.
func ExampleParse() {
	r, err := transcript.Parse("ofed_info", strings.NewReader("MLNX_OFED_LINUX-5.8-1.0.1.1:\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _ := json.Marshal(r)
	fmt.Println(string(text))
	// Output: {"tool":"ofed_info","warnings":[],"errors":[],"prefix":"MLNX_OFED_LINUX","version":"5.8-1.0.1.1","internal":false}
}
