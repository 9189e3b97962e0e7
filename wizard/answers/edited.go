package answers

import (
	"errors"
	"slices"
	"strings"
)

// Edited reads answers after an edit and returns their problems, without those that existed before the edit: answers may not be
// complete yet.
func Edited(before, after string) (*Answers, Problems) {
	a, err := LoadDraft(strings.NewReader(after), "")
	var wrong, was Problems
	if errors.As(err, &wrong) {
		return nil, wrong
	}
	if was, err := LoadDraft(strings.NewReader(before), ""); err == nil && a.VCenter.URL != was.VCenter.URL {
		line := slices.IndexFunc(strings.Split(after, "\n"), func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "url:") })
		return nil, Problems{{Line: line + 1, Path: "vcenter.url", What: "the vCenter cannot be changed here: start again with the other one"}}
	}
	if _, err = Load(strings.NewReader(after), ""); !errors.As(err, &wrong) {
		return a, nil
	}
	_, err = Load(strings.NewReader(before), "")
	_ = errors.As(err, &was)
	return a, slices.DeleteFunc(wrong, func(p Problem) bool {
		return slices.ContainsFunc(was, func(q Problem) bool { return q.Path == p.Path && q.What == p.What })
	})
}
