package mlx5

import (
	"context"
	"path"
	"regexp"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/transcript/firmware"
)

// burnLimit bounds the writing of firmware: it takes half a minute to minutes (public transcripts of burns), and ten times that
// on a card with many components. If the time runs out while flint writes, no harm is done: see Burn.
const burnLimit = 30 * time.Minute

// image reads the firmware of a device (-d) or of a file (-i) with flint.
func (s mft) image(ctx context.Context, what string, of ...string) (got backends.FirmwareImage, err error) {
	text, failed, err := s.tool(ctx, "flint", append(of, "query")...)
	if err != nil {
		return got, err
	}
	i := firmware.Flint(text)
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
		return backends.Errorf(backends.KindRefused, s.Host(), "update it from its Arm cores, with the BlueField software bundle (BFB)", "%s: the card is a BlueField in DPU mode", what)
	}
	file, err := s.image(ctx, what+": "+want.File, "-i", want.File)
	switch {
	case err != nil:
		return err
	case file.PSID != has.PSID:
		return backends.Errorf(backends.KindRefused, s.Host(), "name the vendor's image for this board under sriov.firmware: {"+has.PSID+": FILE}",
			"%s: %s is for boards with PSID %s, and the card has PSID %s", what, want.File, file.PSID, has.PSID)
	case file.Version != want.Version:
		return backends.Errorf(backends.KindRefused, s.Host(), "rename the file to the name that its vendor gave it",
			"%s: the name of %s says version %s, but it contains %s", what, want.File, want.Version, file.Version)
	}
	progress.Report(10)
	text, failed, err := s.toolFor(ctx, burnLimit, "flint", "-d", d.name, "-i", want.File, "burn")
	if err != nil {
		return err
	}
	if errs := firmware.Flint(text).Errors; failed && (len(errs) > 0 || errorRow.MatchString(text)) {
		return s.fail(what, errs, text)
	} else if failed {
		return backends.Errorf(backends.KindPermanent, s.Host(), "the card still has its firmware from before; run rdma-setup resume, which writes the new one again",
			"%s: flint stopped before it was done: %s", what, complaint(text))
	}
	if has, err = s.image(ctx, what, "-d", d.name); err == nil && has.Version != want.Version {
		err = backends.Errorf(backends.KindConflict, s.Host(), "look at: "+tools+"flint -d "+d.name+" query on the host",
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
