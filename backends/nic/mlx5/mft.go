package mlx5

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript/firmware"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// tools is where the VIB mft puts its programs; it is not in the PATH.
const tools = "/opt/mellanox/bin/"

// notFound is the exit status of ESXi's shell when a program does not exist.
const notFound = 127

// mft runs the tools of MFT on one host.
type mft struct{ backends.HostShell }

// Tools are those of MFT.
func (Family) Tools(s backends.HostShell) backends.FirmwareTools { return mft{s} }

// tool runs a program of MFT and returns what it printed, on either stream. A program that does not exist is an error;
// one that fails gives the reason in its text.
func (s mft) tool(ctx context.Context, name string, args ...string) (text string, failed bool, err error) {
	return s.toolFor(ctx, 0, name, args...)
}

// toolFor is tool with a limit of its own.
func (s mft) toolFor(ctx context.Context, limit time.Duration, name string, args ...string) (text string, failed bool, err error) {
	text, status, err := s.Run(ctx, limit, append([]string{tools + name}, args...)...)
	if err != nil {
		return "", false, err
	}
	if status == notFound {
		return "", false, backends.Errorf(backends.KindPermanent, s.Host(), "install MFT and NMST (set their files under sriov.components in the answers) and reboot the host",
			"run %s%s: the Mellanox firmware tools (MFT) are not in the running image: %w", tools, name, backends.ErrNoFirmwareTools)
	}
	return text, status != 0, nil
}

// A device is a card as the tools call it on this host: indexes differ from host to host and from boot to boot.
type device struct {
	name string // mt4119_pciconf1
	pci  string // 0000:3b:00.0, of function 0
}

// devices loads the tools' module and lists the cards. The module stays loaded until the next boot.
func (s mft) devices(ctx context.Context) ([]device, error) {
	text, failed, err := s.tool(ctx, "mst", "start")
	if err != nil {
		return nil, err
	}
	state := firmware.MST(text)
	if started := state.Started != nil && *state.Started; state.Failed() || failed && !started { // it may have been loaded before
		return nil, s.fail("start mst", state.Errors, text)
	}
	text, failed, err = s.tool(ctx, "mst", "status", "-vv")
	if err != nil {
		return nil, err
	}
	state = firmware.MST(text)
	if failed || state.Failed() {
		return nil, s.fail("list the cards", state.Errors, text)
	}
	var out []device
	for _, d := range state.Devices {
		if d.Name == nil || d.PCIAddress == nil || !strings.HasSuffix(*d.PCIAddress, ".0") {
			continue // the other functions share the card's configuration
		}
		if slices.ContainsFunc(out, func(o device) bool { return o.pci == *d.PCIAddress }) {
			continue // older cards stand there once for each way in
		}
		out = append(out, device{name: *d.Name, pci: *d.PCIAddress})
	}
	if len(out) == 0 {
		return nil, backends.Errorf(backends.KindPermanent, s.Host(), "look at: "+tools+"mst status -vv on the host", "list the cards: mst shows no PCI address")
	}
	return out, nil
}

// device finds a card by the PCI address of its function 0.
func (s mft) device(ctx context.Context, pci string) (device, error) {
	list, err := s.devices(ctx)
	if err != nil {
		return device{}, err
	}
	var seen []string
	for _, d := range list {
		if strings.EqualFold(d.pci, pci) {
			return d, nil
		}
		seen = append(seen, d.pci)
	}
	return device{}, backends.Errorf(backends.KindPermanent, s.Host(), "it has cards at "+strings.Join(seen, ", ")+"; run it again to plan from the current state", "there is no card at %s", pci)
}

// remedies are what to do about the errors of the firmware tools, by the code that the parsers give.
var remedies = map[string]string{
	firmware.CodeModuleLoad:       "install NMST beside MFT, both of the same release, and reboot the host; with UEFI Secure Boot an unsigned module does not load",
	scan.CodeNoDevices:            "check that NMST is installed, that the host was rebooted since, and that esxcli hardware pci list shows the card",
	firmware.CodeCannotOpen:       "start mst again on the host; if it persists, the card needs a power cycle",
	firmware.CodeUnsupported:      "use a release of MFT that supports this card",
	firmware.CodeUnknownParameter: "the card's firmware does not have this key; update the firmware with the vendor's image, or do not set the key",
}

// fail words the failure of a tool: by the parser's reading, else by the tool's own line.
func (s mft) fail(what string, errs []scan.Message, text string) error {
	if busy.MatchString(text) {
		return backends.Errorf(backends.KindTransient, s.Host(), "another tool is working on the card; run rdma-setup resume when it has ended", "%s: %s", what, complaint(text))
	}
	for _, e := range errs {
		if hint, known := remedies[e.Code]; known {
			return backends.Errorf(backends.KindPermanent, s.Host(), hint, "%s: %s", what, excerpt(e.Text))
		}
	}
	return backends.Errorf(backends.KindPermanent, s.Host(), "run the tool by hand on the host; it is in "+strings.TrimSuffix(tools, "/"), "%s: %s", what, complaint(text))
}

var (
	busy     = regexp.MustCompile(`(?i)semaphore|resource temporarily|is locked|busy`)
	errorRow = regexp.MustCompile(`(?m)^\s*(?:-[EWF]-|FATAL\s*-)\s*(.*)$`)
)

// complaint is the line in which a tool says what is wrong.
func complaint(text string) string {
	if m := errorRow.FindStringSubmatch(text); m != nil {
		return excerpt(m[1])
	}
	if text = excerpt(text); text != "" {
		return text
	}
	return "the tool failed without any output"
}

// excerpt cuts a tool's output to what a message can hold.
func excerpt(s string) string { return backends.Shorten(backends.Clean(strings.TrimSpace(s)), 400) }
