package transcript_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rdma-setup/rdma-setup/backends/transcript"
)

// tools returns the parser of every tool by its id.
func tools() map[string]func(string) any {
	all := map[string]func(string) any{}
	for _, tool := range transcript.Tools() {
		all[tool.ID] = func(text string) any { return tool.Parse(text) }
	}
	return all
}

// TestTools holds the ids that scripts rely on.
func TestTools(t *testing.T) {
	want := strings.Fields(`esxcli_software_vib_install flint ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_write_bw ib_write_lat ibv_devinfo ip_addr
lspci mlnx_qos mlxconfig mlxfwmanager mst nvidia_smi_q nvidia_smi_topo ofed_info vsphere_error`)
	var ids []string
	for _, tool := range transcript.Tools() {
		ids = append(ids, tool.ID)
	}
	if !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
}

// TestNothingOfTheTool parses an empty text, a shell's error message and words from long noise with every tool: all fail.
func TestNothingOfTheTool(t *testing.T) {
	for _, tool := range transcript.Tools() {
		for _, text := range []string{"", "\n \r\n", "-bash: " + tool.ID + ": command not found\n", "root@vm-07:~# " + tool.ID + "\n",
			"E_ D{?yRc?Ql\nae95 x\n"} {
			if r := tool.Parse(text); !r.Failed() { // the code: see testdata/ib_send_bw/not-understood.json
				t.Errorf("%s: %q is understood", tool.ID, text)
			}
		}
	}
}

func TestParseFails(t *testing.T) {
	if _, err := transcript.Parse("no_such_tool", strings.NewReader("")); err == nil || !strings.Contains(err.Error(), "no_such_tool") {
		t.Errorf("unknown tool: %v", err)
	}
	broken := errors.New("the disk is gone")
	if _, err := transcript.Parse("ip_addr", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("broken reader: %v", err)
	}
}
