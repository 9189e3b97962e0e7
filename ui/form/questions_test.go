package form

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"testing/synctest"
	"time"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/backends/testclass"
	"github.com/rdma-setup/rdma-setup/checks"
	"github.com/rdma-setup/rdma-setup/ui/form/dialog"
	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
	"github.com/rdma-setup/rdma-setup/wizard/plan"
)

// answer runs the plain questions with these lines as the input.
func answer(f *world, lines ...string) (entry.Outcome, string, error) {
	input := ""
	if len(lines) > 0 {
		input = strings.Join(lines, "\n") + "\n"
	}
	return answerFrom(f, strings.NewReader(input))
}

// On a terminal, lines are broken between words, and commands to be copied are not broken.
func TestPlainQuestionsFitTheTerminal(t *testing.T) {
	testclass.Plain(t)
	input := strings.Join(defaults(), "\n") + "\n"
	_, wide, _ := answerOn(&world{}, strings.NewReader(input), 0)
	_, text, _ := answerOn(&world{}, strings.NewReader(input), 60)
	for _, l := range strings.Split(text, "\n") {
		if w := lipgloss.Width(l); w > 60 && !strings.HasPrefix(l, "again: ") {
			t.Errorf("%d columns: %q", w, l)
		}
	}
	if got, want := strings.Fields(text), strings.Fields(wide); !slices.Equal(got, want) {
		t.Errorf("words are broken or missing:\n%s", text)
	}
}

// An echo returns one line per read and prints it, as a terminal does.
type echo struct {
	in  *bufio.Reader
	out io.Writer
}

func (e *echo) Read(b []byte) (int, error) {
	line, err := e.in.ReadString('\n')
	_, _ = io.WriteString(e.out, line)
	return copy(b, line), err
}

func answerFrom(f *world, input io.Reader) (entry.Outcome, string, error) {
	return answerOn(f, input, 0)
}

func answerOn(f *world, input io.Reader, width int) (entry.Outcome, string, error) {
	var out bytes.Buffer
	in := &echo{bufio.NewReader(input), &out}
	passwords := []string{"wrong", "right", "root"}
	got, err := dialog.Run(context.Background(), dialog.Options{Fabric: f, Answers: answers.Default(answers.PVRDMA), In: in, Out: &out,
		Width: width, Secret: func(string) (string, error) {
			p := passwords[0]
			passwords = passwords[1:]
			return p, nil
		}})
	return got, out.String(), err
}

// defaults answers every question with Enter except the last, which requires a word.
func defaults() []string {
	return append(make([]string, 12), "yes")
}

func TestQuestionsCompleteTheFlow(t *testing.T) {
	f := &world{}
	got, text, err := answer(f, defaults()...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if f.applied != 1 || got.Report == nil || got.Result.Run == "" || f.saved == nil || len(f.saved.VMs) != 2 {
		t.Errorf("applied %d times, outcome %+v", f.applied, got)
	}
	golden(t, filepath.Join("testdata", "questions.txt"), text)
	for _, r := range text {
		if r > 0x7e || r < 0x20 && r != '\n' {
			t.Errorf("%U in plain text", r)
		}
	}
}

func TestQuestionsTakeAnswers(t *testing.T) {
	f := &world{}
	_, text, err := answer(f,
		"", "", // address, account
		"esx-09", "esx-03", ",", "esx-02, esx-02", // hosts: unknown, unavailable, none, valid
		"roce", "pvrdma",
		"nn", "no", "vmnic7", "vmnic0", "vmnic2",
		"DVS-2", "PG-2",
		"big", "70000", "1500", // MTU
		"9999", "7", // VLAN
		"vmk9", "vmk0",
		"vm-01", "vm-02", // on a host that is not selected
		"no", "10.9.0.1", "192.168.7.2/24",
		"u@1.2.3.4:x", "u@1.2.3.4:2022",
		"yes")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	a := f.saved
	if a.Switch.Name != "DVS-2" || a.Switch.PortGroup != "PG-2" || a.Switch.MTU != 1500 || a.Switch.VLAN != 7 || len(a.Hosts.Names) != 1 ||
		a.Hosts.Names[0] != "esx-02" {
		t.Errorf("%+v %+v", a.Switch, a.Hosts)
	}
	if len(a.VMs) != 1 || a.VMs[0].IP.String() != "192.168.7.2/24" ||
		a.VMs[0].Guest != (answers.VMGuest{Address: "1.2.3.4", Port: 2022, User: "u"}) {
		t.Errorf("%+v", a.VMs)
	}
	for _, said := range []string{"there is no host esx-09", "esx-03 is disconnected", "name at least one", `there is no mode "roce"`,
		`esx-02 has no pNIC "vmnic7"`, "vmnic0 cannot be chosen: it carries management",
		"expected a number", `no vmknic "vmk9" on esx-02`, "vm-01 is on esx-01, which is not one of the selected hosts",
		"expected an address with its prefix length", `"x" is not a port`} {
		if !strings.Contains(text, said) {
			t.Errorf("%q is not said:\n%s", said, text)
		}
	}
}

func TestEndOfInputChangesNothing(t *testing.T) {
	all := defaults()
	for n := range all {
		f := &world{}
		_, _, err := answer(f, all[:n]...)
		if backends.KindOf(err) != backends.KindUsage || f.applied != 0 {
			t.Errorf("after %d lines: applied %d times, %v", n, f.applied, err)
		}
	}
	f := &world{}
	if _, _, err := answerFrom(f, strings.NewReader(strings.Repeat("\n", len(all)-1)+"yes")); err == nil || f.applied != 0 {
		t.Errorf("half a line was taken for consent: applied %d times, %v", f.applied, err)
	}
}

func TestOnlyYesIsConsent(t *testing.T) {
	for _, word := range []string{"", "no", "y", "ja", "yes please"} {
		f := &world{}
		lines := defaults()
		lines[len(lines)-1] = word
		_, text, err := answer(f, lines...)
		if err != nil || f.applied != 0 || !strings.Contains(text, "nothing was changed") {
			t.Errorf("%q: applied %d times, %v", word, f.applied, err)
		}
	}
}

// Measuring loads the fabric: as on the plan page, Enter alone does not start it.
func TestQuestionsWithNothingToChangeAskBeforeTheyMeasure(t *testing.T) {
	for word, measured := range map[string]bool{"": false, "no": false, "yes": true} {
		lines := defaults()
		lines[len(lines)-1] = word
		if got, text, err := answer(&world{nothing: true}, lines...); err != nil || (got.Report != nil) != measured {
			t.Errorf("%q: %v\n%s", word, err, text)
		}
	}
}

func TestQuestionsRefuse(t *testing.T) {
	for name, f := range map[string]*world{
		"the plan": {refuse: &plan.Refused{Refusals: []plan.Refusal{{Target: backends.HostRef("esx-02"), Why: "vmnic2 has no link",
			Remedy: "Check the cable."}}}},
		"a check": {findings: []checks.Finding{{ID: "HOST-LINK-003", Target: backends.HostRef("esx-02"), Status: checks.Fail,
			Evidence: "vmnic2 has no link", Remedy: "Check the cable."}}},
		"certificate": {unknownCert: true},
	} {
		_, text, err := answer(f, defaults()...)
		if err == nil || f.applied != 0 {
			t.Errorf("%s: applied %d times, %v", name, f.applied, err)
		}
		if name != "certificate" && (!strings.Contains(text, "vmnic2 has no link") || !strings.Contains(text, "Check the cable.")) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

func TestQuestionsTrustACertificateAfterConsent(t *testing.T) {
	f := &world{unknownCert: true}
	lines := append([]string{"", "", "y"}, defaults()[2:]...)
	if _, text, err := answer(f, lines...); err != nil || f.saved.VCenter.Thumbprint != "AB:CD:EF" || !strings.Contains(text, "AB:CD:EF") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestStopIsNoticedWithoutInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, typed := io.Pipe()
		stop := make(chan struct{})
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, err = dialog.Run(context.Background(), dialog.Options{Fabric: &world{}, Answers: answers.Default(answers.PVRDMA), In: in,
				Out: io.Discard, Stop: stop})
		}()
		synctest.Wait()
		close(stop)
		select {
		case <-ended:
		case <-time.After(time.Hour):
			t.Fatal("the questions go on")
		}
		if backends.KindOf(err) != backends.KindInterrupted {
			t.Error(err)
		}
		typed.CloseWithError(errors.New("gone"))
	})
}
