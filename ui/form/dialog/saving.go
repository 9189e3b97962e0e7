package dialog

import (
	"cmp"
	"errors"
	"reflect"
	"strings"

	"github.com/rdma-setup/rdma-setup/ui/form/entry"
	"github.com/rdma-setup/rdma-setup/ui/live"
	"github.com/rdma-setup/rdma-setup/wizard/answers"
)

// errAgain means that an earlier question is asked again.
var errAgain = errors.New("ask again")

// save writes the answers. If a file with other answers exists, the difference is shown, and it is overwritten only after a yes.
func (q *questions) save() error {
	path, err := q.o.Fabric.SaveAnswers(q.a, live.AskFirst)
	if exists, ok := errors.AsType[*live.Exists](err); ok {
		q.page(exists.Diff)
		q.say("%s", exists)
		how, was := live.Beside, q.editable
		q.editable = false
		yes, err := q.yesOr("Overwrite it", "no")
		if q.editable = was; err != nil {
			return err
		}
		if yes {
			how = live.Overwrite
		}
		if path, err = q.o.Fabric.SaveAnswers(q.a, how); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	q.outcome.Path = path
	q.say("answers saved: %s", path)
	return nil
}

// edit opens the answers in the operator's editor, and then shows what is wrong with them.
func (q *questions) edit() error {
	var b strings.Builder
	err := answers.Save(&b, q.a)
	if err != nil {
		return err
	}
	c, read, err := q.o.Fabric.Editor(cmp.Or(q.rough, b.String()))
	if err != nil {
		return err
	}
	err = c.Run()
	text, readErr := read()
	if err = errors.Join(err, readErr); err != nil {
		q.say("the editor failed, the answers are as before: %s", err)
		return nil
	}
	text = entry.Unmarked(text)
	a, wrong := answers.Edited(b.String(), text)
	if len(wrong) == 0 {
		wrong = entry.Missing(a, q.inv, text)
	}
	if q.rough = ""; len(wrong) > 0 {
		q.rough = entry.Marked(text, wrong)
		for _, p := range wrong {
			q.say("%s", answers.Problems{p}.Error())
		}
		return nil
	}
	q.again = firstChanged(q.a, a)
	q.a = a
	return errAgain
}

// firstChanged returns the first question whose answer differs: hosts, mode, pNICs, switch and settings of the mode, VMs. Changes
// to other answers only change the plan.
func firstChanged(old, edited *answers.Answers) int {
	parts := func(a *answers.Answers) []any {
		rest := *a
		rest.APIVersion, rest.Unused, rest.VCenter, rest.Measure, rest.Run, rest.VMs = "", nil, answers.VCenter{}, answers.Measure{},
			answers.Run{}, nil
		return []any{a.Hosts, a.Mode, []any{a.NIC, a.Rails}, rest, a.VMs}
	}
	before := parts(old)
	for i, part := range parts(edited) {
		if !reflect.DeepEqual(part, before[i]) {
			return i
		}
	}
	return len(before)
}
