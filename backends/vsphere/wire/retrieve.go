package wire

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

// pageSize is the maximum number of objects per reply. A host with 300 PCI functions has about 6,000 elements; if a page of such
// hosts exceeds vcenterLimits, Retrieve requests smaller pages.
const (
	pageSize  = 500
	smallPage = 20 // if even such small pages are too long, the reply never ends
)

// An Object is a managed object with the properties that were read. Paths that the server does not have are missing in Props;
// paths that the account may not see are listed in Hidden.
type Object struct {
	Ref    types.ManagedObjectReference
	Props  map[string]any
	Hidden []string
}

// Prop returns the property of a path as T; false if it is absent or of another type.
func Prop[T any](o Object, path string) (T, bool) {
	v, ok := o.Props[path].(T)
	return v, ok
}

// Value returns the property of a path as T, or T's zero value if it is absent.
func Value[T any](o Object, path string) T {
	v, _ := o.Props[path].(T)
	return v
}

// Unknown lists property paths that this server's API does not have, by type.
type Unknown map[string][]string

// Retrieve reads properties in pages and passes on each object once. A path that an older server does not have is dropped and
// returned, instead of failing the whole read.
func (c *Conn) Retrieve(ctx context.Context, specs []types.PropertyFilterSpec, each func(Object)) (Unknown, error) {
	unknown, had, size := Unknown{}, map[types.ManagedObjectReference]bool{}, int32(pageSize)
	for {
		got := map[types.ManagedObjectReference]bool{}
		started, err := c.retrieve(ctx, specs, size, func(o Object) {
			if !had[o.Ref] { // by an earlier attempt, whose pages were too long
				got[o.Ref] = true
				each(o)
			}
		})
		if isLong(err) && size > smallPage {
			maps.Copy(had, got)
			size /= 5
			continue
		}
		bad, ok := FaultOf(err).(*types.InvalidProperty)
		if !ok || started || !drop(specs, bad.Name, unknown) {
			return unknown, err
		}
	}
}

func (c *Conn) retrieve(ctx context.Context, specs []types.PropertyFilterSpec, size int32, each func(Object)) (started bool, err error) {
	pc := c.vim.ServiceContent.PropertyCollector
	res, err := methods.RetrievePropertiesEx(ctx, c.vim, &types.RetrievePropertiesEx{
		This: pc, SpecSet: specs, Options: types.RetrieveOptions{MaxObjects: size},
	})
	if err != nil {
		return false, err
	}
	if res.Returnval == nil {
		return true, nil
	}
	page := *res.Returnval
	for {
		for _, o := range page.Objects {
			read := objectOf(o)
			c.noteParts(read)
			each(read)
		}
		if page.Token == "" {
			return true, nil
		}
		more, err := methods.ContinueRetrievePropertiesEx(ctx, c.vim, &types.ContinueRetrievePropertiesEx{This: pc, Token: page.Token})
		if err != nil {
			return true, err
		}
		page = more.Returnval
	}
}

func objectOf(o types.ObjectContent) Object {
	out := Object{Ref: o.Obj, Props: make(map[string]any, len(o.PropSet))}
	for _, p := range o.PropSet {
		out.Props[p.Name] = p.Val
	}
	for _, m := range o.MissingSet {
		if _, ok := m.Fault.Fault.(*types.InvalidProperty); !ok {
			out.Hidden = append(out.Hidden, m.Path)
		}
	}
	return out
}

// drop removes a path from every spec that contains it.
func drop(specs []types.PropertyFilterSpec, path string, unknown Unknown) bool {
	found := false
	for i := range specs {
		for j := range specs[i].PropSet {
			set := &specs[i].PropSet[j]
			if k := slices.Index(set.PathSet, path); k >= 0 {
				set.PathSet = slices.Delete(slices.Clone(set.PathSet), k, k+1)
				unknown[set.Type] = append(unknown[set.Type], path)
				found = true
			}
		}
	}
	return found
}

// Of returns the spec that reads paths of the given objects, all of one type.
func Of(kind string, refs []types.ManagedObjectReference, paths ...string) types.PropertyFilterSpec {
	spec := types.PropertyFilterSpec{
		PropSet:                       []types.PropertySpec{{Type: kind, PathSet: paths}},
		ReportMissingObjectsInResults: types.NewBool(true),
	}
	for _, ref := range refs {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref})
	}
	return spec
}

// ErrGone means that an object no longer exists.
var ErrGone = errors.New("it does not exist any more")

// One reads properties of one object.
func (c *Conn) One(ctx context.Context, ref types.ManagedObjectReference, paths ...string) (Object, error) {
	var out *Object
	_, err := c.Retrieve(ctx, []types.PropertyFilterSpec{Of(ref.Type, []types.ManagedObjectReference{ref}, paths...)},
		func(o Object) { out = &o })
	if err != nil {
		return Object{}, err
	}
	if out == nil {
		return Object{}, ErrGone
	}
	return *out, nil
}
