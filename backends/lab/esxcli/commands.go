package esxcli

import (
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/lab/world"
)

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
