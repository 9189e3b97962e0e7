// Package esxcli runs esxcli commands on the lab's world. The simulated vCenter returns their answers as data; the lab's ESXi shells
// have no esxcli.
package esxcli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

// A Field is one value of a row. Name is the title of the column ("Paired Uplink"); the key in the API is the title without
// spaces and hyphens. Sub contains nested fields instead of a value.
type Field struct {
	Name, Value string
	Sub         []Field
	List        []string // if not nil, the values of a list
}

// An Answer is the result of a command.
type Answer struct {
	Type    string // type name of the rows in the API, "RDMADevice"
	Rows    [][]Field
	Message bool // the answer is Text, not rows
	Text    string
	Single  bool // one object, not an array of them
}

// A Param is one option of a command.
type Param struct {
	Name  string // name in the API: nic-name is "nicname"
	Long  string // long option, nic-name
	Short string // short option, n
	Flag  bool   // takes no value
}

// Args contains the values of options by Param.Name. The values of a list are joined by commas. Flags have the value "true".
type Args map[string]string

// A Command is one command of esxcli.
type Command struct {
	Path   []string // command words, network nic list
	Params []Param
	Writes bool
	Run    func(w *world.World, host string, args Args) (Answer, error)
}

// Find returns the command at the beginning of the words and the number of words in its name, or nil if there is none.
func Find(words []string) (*Command, int) {
	for _, c := range Commands() {
		if len(words) >= len(c.Path) && slices.Equal(words[:len(c.Path)], c.Path) {
			return &c, len(c.Path)
		}
	}
	return nil, 0
}

// A Refusal is an error with a message of ESXi.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return Refusal(fmt.Sprintf(format, args...)) }

// Key returns the name of a field in the API.
func (f Field) Key() string { return joined.Replace(f.Name) }

var joined = strings.NewReplacer(" ", "", "-", "", "/", "")

// Commands lists the commands of the lab's esxcli: those of the product, of its pages for doing and undoing by hand, and of govc's
// list. A row has the words, with "!" behind them if the command writes; the options, short and long, with "?" behind those that
// take no value; and what answers. To add a command, add a row.
func Commands() []Command {
	const source = "v viburl, d depot, f force?, - no-sig-check?, - maintenance-mode?, - no-live-install?"
	rows := []struct {
		words, options string
		run            func(w *world.World, host string, args Args) (Answer, error)
	}{
		{"rdma device list", "", rdmaDeviceList},
		{"rdma device protocol list", "", rdmaProtocolList},
		{"rdma device stats get", "d device", rdmaStats},
		{"network nic list", "", nicList},
		{"network nic get", "n nic-name", nicGet},
		{"network nic stats get", "n nic-name", nicStats},
		{"network nic pauseParams list", "n nic-name", pauseList},
		{"network nic pauseParams set!", "n nic-name, r rx, t tx, a auto", pauseSet},
		{"network nic dcb status get", "n nic-name", dcbGet},
		{"network ip interface ipv4 get", "i interface-name", ipv4Get},
		{"network diag ping", "H host, I interface, c count, s size, N netstack, W wait, d df?", ping},
		{"network firewall get", "", firewallGet},
		{"network firewall ruleset set!", "r ruleset-id, e enabled", rulesetSet},
		{"network sriovnic vf list", "n nic-name", vfList},
		{"system settings advanced list", "o option, t tree", advancedList},
		{"system settings advanced set!", "o option, i int-value, s string-value, d default?", advancedSet},
		{"system module list", "", moduleList},
		{"system module parameters list", "m module", parameterList},
		{"system module parameters set!", "m module, p parameter-string, a append?, f force?", parameterSet},
		{"system version get", "", versionGet},
		{"system hostname get", "", hostnameGet},
		{"vsan debug resync summary get", "", resyncSummary},
		{"software vib list", "- rebooting-image?", vibList},
		{"software vib install!", source, vibInstall},
		{"software vib remove!", "n vibname, f force?, - maintenance-mode?, - no-live-install?", vibRemove},
		{"software sources vib list", "d depot", sourceList},
		{"software sources vib get", "d depot, v viburl", sourceGet},
		{"software acceptance get", "", acceptanceGet},
		{"storage core device list", "", deviceList},
	}
	list := make([]Command, 0, len(rows))
	for _, r := range rows {
		words, writes := strings.CutSuffix(r.words, "!")
		c := Command{Path: strings.Fields(words), Writes: writes, Run: r.run}
		for _, option := range strings.FieldsFunc(r.options, func(r rune) bool { return r == ',' }) {
			short, long, _ := strings.Cut(strings.TrimSpace(option), " ")
			long, flag := strings.CutSuffix(long, "?")
			c.Params = append(c.Params, Param{Name: strings.ReplaceAll(long, "-", ""), Long: long, Short: strings.Trim(short, "-"), Flag: flag})
		}
		list = append(list, c)
	}
	return list
}
