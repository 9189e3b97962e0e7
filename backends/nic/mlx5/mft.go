package mlx5

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript"
	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// tools is where the VIB mft installs its programs; it is not in the PATH.
const tools = "/opt/mellanox/bin/"

// notFound is the exit status of the ESXi shell for a missing program.
const notFound = 127

// mft runs the tools of MFT on one host.
type mft struct{ backends.HostShell }

func (Family) Tools(s backends.HostShell) backends.FirmwareTools { return mft{s} }

// tool runs a program of MFT and returns its output from both streams. A missing program is an error; a program that fails prints
// the reason in its output.
func (s mft) tool(ctx context.Context, name string, args ...string) (text string, failed bool, err error) {
	return s.toolFor(ctx, 0, name, args...)
}

// toolFor is tool with a time limit of its own.
func (s mft) toolFor(ctx context.Context, limit time.Duration, name string, args ...string) (text string, failed bool, err error) {
	text, status, err := s.Run(ctx, limit, append([]string{tools + name}, args...)...)
	if err != nil {
		return "", false, err
	}
	if status == notFound {
		return "", false,
			backends.Permanentf(s.Host(),
				"install MFT and NMST (set their files under sriov.components in the answers) and reboot the host",
				"run %s%s: the Mellanox firmware tools (MFT) are not in the running image: %w", tools, name, backends.ErrNoFirmwareTools)
	}
	return text, status != 0, nil
}

// A device is a card as the tools name it on this host: indexes differ between hosts and between boots.
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
	state := transcript.MST(text)
	if started := state.Started != nil && *state.Started; state.Failed() || failed && !started { // it may have been loaded already
		return nil, s.fail("start mst", state.Errors, text)
	}
	text, failed, err = s.tool(ctx, "mst", "status", "-vv")
	if err != nil {
		return nil, err
	}
	state = transcript.MST(text)
	if failed || state.Failed() {
		return nil, s.fail("list the cards", state.Errors, text)
	}
	var out []device
	for _, d := range state.Devices {
		if d.Name == nil || d.PCIAddress == nil || !strings.HasSuffix(*d.PCIAddress, ".0") {
			continue // the other functions share the card's configuration
		}
		if slices.ContainsFunc(out, func(o device) bool { return o.pci == *d.PCIAddress }) {
			continue // older cards are listed once for each access method
		}
		out = append(out, device{name: *d.Name, pci: *d.PCIAddress})
	}
	if len(out) == 0 {
		return nil, backends.Permanentf(s.Host(), "look at: "+tools+"mst status -vv on the host",
			"list the cards: mst shows no PCI address")
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
	return device{},
		backends.Permanentf(s.Host(),
			"it has cards at "+strings.Join(seen, ", ")+"; run it again to plan from the current state", "there is no card at %s", pci)
}

// remedies maps error codes of the parsers to what to do about errors of the firmware tools.
var remedies = map[string]string{
	transcript.CodeModuleLoad: "install NMST beside MFT, both of the same release, and reboot the host; with UEFI Secure Boot an " +
		"unsigned module does not load",
	scan.CodeNoDevices: "check that NMST is installed, that the host was rebooted since, and that esxcli hardware pci list " +
		"shows the card",
	transcript.CodeCannotOpen:  "start mst again on the host; if it persists, the card needs a power cycle",
	transcript.CodeUnsupported: "use a release of MFT that supports this card",
	transcript.CodeUnknownParameter: "the card's firmware does not have this key; update the firmware with the vendor's image, or do not " +
		"set the key",
}

// fail describes the failure of a tool: by the parser's result, else by the tool's own line.
func (s mft) fail(what string, errs []scan.Message, text string) error {
	if busy.MatchString(text) {
		return backends.Transientf(s.Host(), "another tool is working on the card; run rdma-setup resume when it has ended",
			"%s: %s", what, complaint(text))
	}
	for _, e := range errs {
		if hint, known := remedies[e.Code]; known {
			return backends.Permanentf(s.Host(), hint, "%s: %s", what, excerpt(e.Text))
		}
	}
	return backends.Permanentf(s.Host(), "run the tool by hand on the host; it is in "+strings.TrimSuffix(tools, "/"),
		"%s: %s", what, complaint(text))
}

var (
	busy     = regexp.MustCompile(`(?i)semaphore|resource temporarily|is locked|busy`)
	errorRow = regexp.MustCompile(`(?m)^\s*(?:-[EWF]-|FATAL\s*-)\s*(.*)$`)
)

func complaint(text string) string {
	if m := errorRow.FindStringSubmatch(text); m != nil {
		return excerpt(m[1])
	}
	if text = excerpt(text); text != "" {
		return text
	}
	return "the tool failed without any output"
}

func excerpt(s string) string { return backends.Shorten(backends.Clean(strings.TrimSpace(s)), 400) }

// burnLimit bounds the writing of firmware: it takes half a minute to minutes (public transcripts of burns), and ten times that
// on a card with many components. If the time runs out while flint writes, no harm is done: see Burn.
const burnLimit = 30 * time.Minute

// image reads the firmware of a device (-d) or of a file (-i) with flint.
func (s mft) image(ctx context.Context, what string, of ...string) (got backends.FirmwareImage, err error) {
	text, failed, err := s.tool(ctx, "flint", append(of, "query")...)
	if err != nil {
		return got, err
	}
	i := transcript.Flint(text)
	if failed || i.Failed() || i.PSID == nil || i.FWVersion == nil {
		return got, s.fail(what, i.Errors, text)
	}
	got = backends.FirmwareImage{PSID: *i.PSID, Version: *i.FWVersion}
	if i.FWVersionRunning != nil && *i.FWVersionRunning != got.Version {
		got.Running = *i.FWVersionRunning
	}
	return got, nil
}

// Image returns the firmware in a card's flash, and the running firmware: flint prints the latter if it differs (mstflint,
// flint/subcommands.cpp, QuerySubCommand::printInfo).
func (s mft) Image(ctx context.Context, pci string) (backends.FirmwareImage, error) {
	d, err := s.device(ctx, pci)
	if err != nil {
		return backends.FirmwareImage{}, err
	}
	return s.image(ctx, "query the firmware of "+pci, "-d", d.name)
}

// Burn compares the file with the card and with its own name, writes it, and reads the flash back.
//
// flint writes the new image beside the existing one and marks it valid at the end (MFT documentation, flint: the default burn is
// failsafe, "burns a single image (in alternating locations)"). If the write is interrupted, the card keeps its previous firmware
// and can be written again. No flag that overrides a check of flint is used: not -y, -nofs, -allow_psid_change or
// -clear_semaphore. flint asks for confirmation before it writes firmware that is not newer; without input it takes the answer as
// no.
func (s mft) Burn(ctx context.Context, pci string, want backends.FirmwareImage, progress backends.Progress) error {
	what := "update the firmware of " + pci
	d, err := s.device(ctx, pci)
	if err != nil {
		return err
	}
	has, err := s.image(ctx, what, "-d", d.name)
	if err != nil || has.Version == want.Version {
		return err
	}
	if keys, err := s.config(ctx, d); err != nil {
		return err
	} else if mode := (Family{}).Firmware(); keys.Current[mode.Mode] != "" && keys.Current[mode.Mode] != mode.NICMode {
		return backends.Refusedf(s.Host(), "update it from its Arm cores, with the BlueField software bundle (BFB)",
			"%s: the card is a BlueField in DPU mode", what)
	}
	file, err := s.image(ctx, what+": "+want.File, "-i", want.File)
	switch {
	case err != nil:
		return err
	case file.PSID != has.PSID:
		return backends.Refusedf(s.Host(), "name the vendor's image for this board under sriov.firmware: {"+has.PSID+
			": FILE}",
			"%s: %s is for boards with PSID %s, and the card has PSID %s", what, want.File, file.PSID, has.PSID)
	case file.Version != want.Version:
		return backends.Refusedf(s.Host(), "rename the file to the name that its vendor gave it",
			"%s: the name of %s says version %s, but it contains %s", what, want.File, want.Version, file.Version)
	}
	progress.Report(10)
	text, failed, err := s.toolFor(ctx, burnLimit, "flint", "-d", d.name, "-i", want.File, "burn")
	if err != nil {
		return err
	}
	errs := slices.DeleteFunc(transcript.Flint(text).Errors, func(m scan.Message) bool { return m.Code == scan.CodeNotUnderstood }) // no query
	if failed && (len(errs) > 0 || errorRow.MatchString(text)) {
		return s.fail(what, errs, text)
	} else if failed {
		return backends.Permanentf(s.Host(),
			"the card still has its firmware from before; run rdma-setup resume, which writes the new one again",
			"%s: flint stopped before it was done: %s", what, complaint(text))
	}
	if has, err = s.image(ctx, what, "-d", d.name); err == nil && has.Version != want.Version {
		err = backends.Conflictf(s.Host(), "look at: "+tools+"flint -d "+d.name+" query on the host",
			"%s: flint reported success, but the card holds %s, not %s", what, has.Version, want.Version)
	}
	progress.Report(100)
	return err
}

// release matches the version after "rel" in the name of a firmware file:
// fw-ConnectX5-rel-16_35_8008-MCX556A-ECU_Ax-UEFI-14.29.15.bin. Files of server vendors use the same form: IBM's
// fw-ConnectX4-rel-12_17_2010-00WT039_Ax.bin, HPE's fw-ConnectX3Pro-rel-2_42_5700-764285-B21_Ax.
var release = regexp.MustCompile(`(?i)-rel-([0-9]+)_([0-9]+)_([0-9]+)(?:-.*)?\.bin$`)

// imageVersion returns the firmware version in a file name, such as 16.35.8008; "" if there is none.
func imageVersion(file string) string {
	m := release.FindStringSubmatch(path.Base(file))
	if m == nil {
		return ""
	}
	return m[1] + "." + m[2] + "." + m[3]
}
