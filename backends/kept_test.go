package backends_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdma-setup/rdma-setup/backends"
)

func item(kind backends.ItemKind, name string, state any) backends.Item {
	i := backends.Item{Kind: kind, Name: name, Content: []byte(name)}
	if state != nil {
		i.State = backends.ValueOf(state)
	}
	return i
}

func TestDifferences(t *testing.T) {
	was := backends.Kept{Items: []backends.Item{
		item(backends.ItemFile, "/etc/a", nil), item(backends.ItemFile, "/etc/b", "sum 1"), item(backends.ItemUnit, "/etc/b", "enabled"),
	}}
	runtime := item(backends.ItemInterface, "00:50:56:00:00:01", "mtu 1500")
	runtime.Runtime = true
	was.Items = append(was.Items, runtime)
	is := func(items ...backends.Item) backends.Kept { return backends.Kept{Items: items} }
	for name, c := range map[string]struct {
		is   backends.Kept
		want []string
	}{
		"nothing": {was.Bare(), nil},
		"left behind": {is(item(backends.ItemFile, "/etc/a", "sum 2"), item(backends.ItemFile, "/etc/b", "sum 1"),
			item(backends.ItemUnit, "/etc/b", "enabled"), runtime),
			[]string{"file /etc/a exists, but did not exist before"}},
		"changed and gone": {is(item(backends.ItemFile, "/etc/b", "sum 9")),
			[]string{"file /etc/b is sum 9, but was sum 1", "unit /etc/b does not exist, but existed before"}},
		"runtime state changed": {is(append(was.Items[:3:3], item(backends.ItemInterface, runtime.Name, "mtu 9000"))...),
			[]string{"interface 00:50:56:00:00:01 is mtu 9000, but was mtu 1500"}},
		"in part": {is(append(was.Items[:3:3], item(backends.ItemInterface, runtime.Name, map[string]any{"mtu": 9000}))...),
			[]string{"interface 00:50:56:00:00:01 is mtu 9000, but was mtu 1500"}},
		"not recorded": {was.With(is(item(backends.ItemLink, "/etc/c", "x"))), []string{"link /etc/c exists, but did not exist before"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range backends.Differences(was, c.is) {
				got = append(got, d.String())
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAnEarlierRecordStays(t *testing.T) {
	first := backends.Kept{Items: []backends.Item{item(backends.ItemFile, "/etc/a", nil)}}
	all := first.With(backends.Kept{Items: []backends.Item{item(backends.ItemFile, "/etc/a", "ours"),
		item(backends.ItemFile, "/etc/b", "theirs")}})
	if len(all.Items) != 2 || !all.Items[0].State.IsAbsent() || all.Items[1].State != backends.ValueOf("theirs") || len(first.Items) != 1 {
		t.Errorf("%+v", all)
	}
	if bare := all.Bare(); bare.Items[1].Content != nil || all.Items[1].Content == nil {
		t.Error("contents")
	}
}
