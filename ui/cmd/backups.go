package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/session"
	"github.com/rdma-setup/rdma-setup/wizard/engine/journal"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
	"github.com/rdma-setup/rdma-setup/wizard/plan/rollback"
)

// Limits for what is saved before a run: in total, per target, and in parallel.
const (
	backupTime   = 5 * time.Minute
	targetTime   = time.Minute
	backupAtOnce = 8
	backupSize   = 512 << 20 // bytes
)

// backups are made before the first change of a run, so that everything can be undone without this program.
type backups struct {
	s    *session.Session
	run  string
	page rollback.Page

	mu   sync.Mutex
	size int
}

// saveBefore saves the configuration of the targets of a plan, and the page of manual steps. Targets that cannot be saved cause a
// warning; if nothing can be written beside the journal, it is an error. Stop ends it immediately: nothing has changed yet.
func saveBefore(ctx context.Context, stop <-chan struct{}, s *session.Session, p *planned, run string) (*backups, error) {
	h := &backups{s: s, run: run, page: rollback.Page{Run: run, VCenter: p.inv.VCenter.URL, Steps: rollback.ByHand(p.plan.Changes, nil)}}
	jobs := h.jobs(p)
	if vms := targetsOf(p.plan)[backends.TypeVM]; len(vms) > 0 {
		jobs = append(jobs, h.devices(1, vms))
	}
	if err := h.saveAll(ctx, stop, jobs); err != nil {
		return nil, err
	}
	if err := h.write(); err != nil {
		return nil, err
	}
	fmt.Fprintf(s.Env.Stderr, "backups and manual undo steps: %s\n", filepath.Join(journal.Dir(s.Set.StateDir, run), journal.BackupDir))
	return h, nil
}

// saveRest saves targets that a resume touches and no earlier attempt has touched. Existing backups stay as they were before the
// run, and targets that were already changed are not saved.
func saveRest(ctx context.Context, stop <-chan struct{}, s *session.Session, p *planned, st *journal.State) (*backups, error) {
	run := st.Header.Run
	h := &backups{s: s, run: run, page: rollback.Page{Run: run, VCenter: p.inv.VCenter.URL}}
	changed := map[string]bool{}
	before := recordedChanges(st)
	for _, job := range h.jobs(&planned{inv: p.inv, plan: &plan.Plan{Changes: before}}) {
		changed[job.file] = true
	}
	var rest []backup
	for _, job := range h.jobs(&planned{inv: p.inv, plan: &plan.Plan{Changes: slices.Concat(before, p.plan.Changes)}}) {
		switch file, saved := journal.Backup(s.Set.StateDir, run, job.file); {
		case len(saved) > 0:
			h.page.Saved = append(h.page.Saved, file+": "+job.what)
		case changed[job.file]:
			h.page.Missing = append(h.page.Missing, job.what+": the run had changed it before it could be saved")
		default:
			rest = append(rest, job)
		}
	}
	rest = append(rest, h.moreDevices(before, p.plan.Changes)...)
	for _, host := range targetsOf(&plan.Plan{Changes: before})[backends.TypeHost] {
		if file, saved := journal.Backup(s.Set.StateDir, run, "host-"+host+".tgz"); len(saved) > 0 { // an earlier version saved it
			h.page.Saved = append(h.page.Saved,
				file+": configuration of host "+host+", with its password hashes and keys (restore it by KB 2042141)")
		}
	}
	return h, h.saveAll(ctx, stop, rest)
}

// moreDevices saves the virtual hardware of VMs that a resume touches and no earlier attempt has touched, in a separate file,
// because existing backups are not changed.
func (h *backups) moreDevices(before, next []plan.Change) []backup {
	saved := map[string]bool{}
	n := 1
	for ; ; n++ {
		file, b := journal.Backup(h.s.Set.StateDir, h.run, devicesFile(n))
		if len(b) == 0 {
			break
		}
		var vms map[string]json.RawMessage
		if err := json.Unmarshal(b, &vms); err != nil {
			h.page.Missing = append(h.page.Missing, fmt.Sprintf("%s cannot be read: %v", file, err))
			continue
		}
		delete(vms, "_typeName") // of the map itself
		for name := range vms {
			saved[name] = true
		}
		h.page.Saved = append(h.page.Saved, file+": "+devicesOf(len(vms)))
	}
	for _, c := range before { // the hardware of a VM with changes only in its guest is unchanged
		if name := c.Target.Name; c.Target.Type == backends.TypeVM && !saved[name] {
			saved[name] = true
			h.page.Missing = append(h.page.Missing, "virtual hardware of VM "+name+": the run had changed it before it could be saved")
		}
	}
	rest := slices.DeleteFunc(targetsOf(&plan.Plan{Changes: next})[backends.TypeVM], func(name string) bool { return saved[name] })
	if len(rest) == 0 {
		return nil
	}
	return []backup{h.devices(n, rest)}
}

// saveAll makes backups and warns of what could not be saved.
func (h *backups) saveAll(ctx context.Context, stop <-chan struct{}, jobs []backup) error {
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	within, cancel := context.WithTimeout(ctx, backupTime)
	defer cancel()
	go func() {
		select {
		case <-stop:
			interrupt(errors.New("interrupted"))
		case <-within.Done():
		}
	}()
	var g errgroup.Group
	g.SetLimit(backupAtOnce)
	for _, job := range jobs {
		g.Go(func() error {
			h.save(within, job)
			return nil
		})
	}
	_ = g.Wait() // every job stores its own error
	slices.Sort(h.page.Saved)
	slices.Sort(h.page.Missing)
	for _, line := range h.warnings() {
		fmt.Fprintln(h.s.Env.Stderr, "WARNING: "+backends.Clean(line))
	}
	select {
	case <-stop:
		interrupt(errors.New("interrupted"))
	default:
	}
	if ctx.Err() != nil {
		return backends.Interruptedf("", "", "ended before the first change: %w", context.Cause(ctx))
	}
	return nil
}

// A backup is one file to be created.
type backup struct {
	file, what string
	make       func(ctx context.Context) ([]byte, error)
}

// jobs returns the backups of the cards and switches that a plan touches.
func (h *backups) jobs(p *planned) []backup {
	var jobs []backup
	touched := targetsOf(p.plan)
	for _, host := range touched[backends.TypeHost] {
		if in := p.inv.Host(host); in != nil && in.System != nil && len(in.System.Firmware) > 0 {
			jobs = append(jobs, backup{"firmware-" + host + ".json", "firmware settings of the cards of host " + host,
				func(context.Context) ([]byte, error) {
					return json.MarshalIndent(in.System.Firmware, "", "  ")
				}})
		}
	}
	for _, name := range touched[backends.TypeSwitch] {
		if slices.ContainsFunc(p.inv.Switches, func(d backends.Switch) bool { return d.Name == name }) {
			jobs = append(jobs, backup{"switch-" + name + ".json", "configuration of switch " + name + " and its port groups",
				func(ctx context.Context) ([]byte, error) {
					return h.s.VC.ExportSwitch(ctx, name)
				}})
		}
	}
	return jobs
}

// devices returns the backup of the virtual hardware of VMs, the n-th of its run.
func (h *backups) devices(n int, vms []string) backup {
	return backup{devicesFile(n), devicesOf(len(vms)), func(ctx context.Context) ([]byte, error) { return h.s.VC.DeviceLists(ctx, vms) }}
}

func devicesFile(n int) string {
	if n == 1 {
		return "vms.json"
	}
	return fmt.Sprintf("vms-%d.json", n)
}

func devicesOf(vms int) string { return fmt.Sprintf("virtual hardware of the VMs (%d)", vms) }

// targetsOf returns the targets of a plan by type, sorted; a guest counts as its VM, a membership also for its switch.
func targetsOf(p *plan.Plan) map[backends.TargetType][]string {
	out := map[backends.TargetType][]string{}
	add := func(t backends.TargetType, name string) {
		if !slices.Contains(out[t], name) {
			out[t] = append(out[t], name)
		}
	}
	for _, c := range p.Changes {
		switch t := c.Target; t.Type {
		case backends.TypeGuest:
			add(backends.TypeVM, t.Name)
		default:
			add(t.Type, t.Name)
		}
		var group backends.PortGroupSpec
		switch {
		case c.Kind == backends.KindMember:
			add(backends.TypeSwitch, c.Name)
		case c.Kind == backends.KindPortGroup && c.To.Decode(&group) == nil:
			add(backends.TypeSwitch, group.Switch)
		}
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}

func (h *backups) save(ctx context.Context, job backup) {
	ctx, cancel := context.WithTimeout(ctx, targetTime)
	defer cancel()
	b, err := job.make(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	file := ""
	if h.size += len(b); err == nil && h.size > backupSize {
		err = fmt.Errorf("all backups together are larger than %s", backends.SizeText(backupSize))
	}
	if err == nil {
		file, err = journal.WriteBackup(h.s.Set.StateDir, h.run, job.file, b)
	}
	if err != nil {
		h.page.Missing = append(h.page.Missing, job.what+": "+err.Error())
		return
	}
	h.page.Saved = append(h.page.Saved, file+": "+job.what)
}

// warnings prints what could not be saved: at most five, the rest is on the page.
func (h *backups) warnings() []string {
	const most = 5
	var out []string
	for i, line := range h.page.Missing {
		if i == most {
			return append(out, fmt.Sprintf("and %d more not saved before the run: see undo.md", len(h.page.Missing)-most))
		}
		out = append(out, "not saved before the run: "+line)
	}
	return out
}

func (h *backups) write() error {
	_, err := journal.WriteBackup(h.s.Set.StateDir, h.run, "undo.md", []byte(h.page.Markdown()))
	return err
}

// after writes the page again from the journal, which has the values that were read directly before each change.
func (h *backups) after(j *journal.Journal) {
	st := j.State()
	var changes []plan.Change
	kept := map[string]*backends.Kept{}
	stages := map[int]map[string]plan.Change{} // by id; a plan is large and has many entries, so each is parsed once
	for _, e := range st.Entries() {
		if stages[e.Stage] == nil {
			var at plan.Plan
			stages[e.Stage] = map[string]plan.Change{}
			if json.Unmarshal(e.Plan, &at) == nil {
				for _, c := range at.Changes {
					stages[e.Stage][c.ID()] = c
				}
			}
		}
		c := plan.Change{Setting: e.Setting, From: e.Prior, To: e.To}
		if was, known := stages[e.Stage][e.Node]; known {
			c.Irreversible, c.State = was.Irreversible, was.State
		}
		changes = append(changes, c)
		kept[c.ID()] = e.Kept
	}
	if len(changes) == 0 {
		return
	}
	h.page.Steps, h.page.Complete = rollback.ByHand(changes, kept), true
	if err := h.write(); err != nil {
		fmt.Fprintf(h.s.Env.Stderr, "WARNING: the page of manual undo steps could not be brought up to date: %v\n", err)
	}
}
