// Package props reads the properties of the lab's managed objects. It replaces the simulator's own implementation, which copies
// each object by writing it as XML and parsing it again; that is most of the cost of a large read.
package props

import (
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// A Reader reads properties for all sessions. It is safe for concurrent use.
type Reader struct {
	vcenter string
	copies  copier
	book    book
}

// NewReader returns a Reader without open pages. vcenter is the version of the vCenter.
func NewReader(vcenter string) *Reader { return &Reader{vcenter: vcenter} }

// Undeclared calls the function Undeclared with the version of the Reader's vCenter.
func (r *Reader) Undeclared(sets []types.PropertySpec) (path string, found bool) {
	return Undeclared(sets, r.vcenter)
}

// A reading is the state of one call.
type reading struct {
	*Reader
	ctx   *simulator.Context
	sets  []types.PropertySpec
	done  map[types.ManagedObjectReference]bool
	want  func(types.ManagedObjectReference) bool // nil: every object is read
	left  []types.ManagedObjectReference          // selected objects that are not wanted
	named map[string]*types.TraversalSpec
	out   []types.ObjectContent
}

// Read returns the properties that the specs select. Each object is copied while it is locked. A path that is not declared is
// refused.
func (r *Reader) Read(ctx *simulator.Context, specs []types.PropertyFilterSpec) ([]types.ObjectContent, types.BaseMethodFault) {
	out, _, fault := r.ReadWanted(ctx, specs, nil)
	return out, fault
}

// ReadWanted is like Read, but reads only the objects that want selects and returns the others as left. want must select objects
// that may have been removed.
func (r *Reader) ReadWanted(ctx *simulator.Context, specs []types.PropertyFilterSpec, want func(types.ManagedObjectReference) bool) (
	out []types.ObjectContent, left []types.ManagedObjectReference, fault types.BaseMethodFault) {
	rd := &reading{Reader: r, ctx: ctx, want: want, done: map[types.ManagedObjectReference]bool{}, named: map[string]*types.TraversalSpec{}}
	for _, spec := range specs {
		if path, found := Undeclared(spec.PropSet, r.vcenter); found {
			return nil, nil, &types.InvalidProperty{Name: path}
		}
		rd.sets = append(rd.sets, spec.PropSet...)
	}
	var refs []types.ManagedObjectReference
	for _, spec := range specs {
		for _, o := range spec.ObjectSet {
			read := o.SelectSet == nil || !yes(o.Skip)
			known, fault := rd.visit(o.Obj, read, o.SelectSet, &refs)
			if !known && !yes(spec.ReportMissingObjectsInResults) {
				fault = &types.ManagedObjectNotFound{Obj: o.Obj}
			}
			if fault != nil {
				return nil, nil, fault
			}
		}
	}
	if len(rd.done) == 0 && len(refs) > 0 { // it would grow step by step, at each change of one of hundreds of tasks
		rd.done = make(map[types.ManagedObjectReference]bool, len(refs))
	}
	if want != nil {
		rd.left = slices.Grow(rd.left, len(refs))
	}
	for _, ref := range refs {
		if rd.done[ref] || rd.leave(ref) {
			continue
		}
		rd.locked(ref, func() {
			if v, ok := rd.object(ref); ok {
				rd.collect(ref, v)
			}
		})
	}
	return rd.out, rd.left, nil
}

// leave reports whether an object is not wanted. One that has been removed is: the touch comes before the removal.
func (rd *reading) leave(ref types.ManagedObjectReference) bool {
	if rd.want == nil || rd.want(ref) || rd.ctx.Session.Get(ref) == nil {
		return false
	}
	rd.done[ref] = true
	rd.left = append(rd.left, ref)
	return true
}

// locked calls f with the object locked; the lock is released even if f panics.
func (rd *reading) locked(ref types.ManagedObjectReference, f func()) {
	defer rd.ctx.Map.AcquireLock(rd.ctx, ref)()
	f()
}

func yes(b *bool) bool { return b != nil && *b }

// object returns the property struct of an object: its first embedded type from govmomi's package mo.
func (rd *reading) object(ref types.ManagedObjectReference) (reflect.Value, bool) {
	obj := rd.ctx.Session.Get(ref)
	if obj == nil {
		return reflect.Value{}, false
	}
	if o, ok := obj.(interface{ Get() mo.Reference }); ok {
		obj = o.Get()
	}
	v := solid(reflect.ValueOf(obj))
	for path.Base(v.Type().PkgPath()) != "mo" {
		if v.Kind() != reflect.Struct || v.NumField() == 0 {
			return reflect.Value{}, false
		}
		if v = solid(v.Field(0)); !v.IsValid() {
			return v, false
		}
	}
	return v, true
}

// visit reads an object if it is to be read, and follows the traversal specs from it to others. Each object is locked alone: its
// properties change at any time.
func (rd *reading) visit(ref types.ManagedObjectReference, read bool, set []types.BaseSelectionSpec, refs *[]types.ManagedObjectReference) (
	known bool, fault types.BaseMethodFault) {
	type step struct {
		to types.ManagedObjectReference
		*types.TraversalSpec
	}
	var steps []step
	rd.locked(ref, func() {
		var v reflect.Value
		if v, known = rd.object(ref); !known {
			return
		}
		if read {
			rd.collect(ref, v)
		}
		for _, s := range set {
			if t, ok := s.(*types.TraversalSpec); ok && t.Name != "" {
				rd.named[t.Name] = t
			}
		}
		for _, s := range set {
			t, ok := s.(*types.TraversalSpec)
			if !ok {
				if t = rd.named[s.GetSelectionSpec().Name]; t == nil {
					fault = &types.InvalidArgument{InvalidProperty: "undefined TraversalSpec name"}
					return
				}
			}
			to, err := property(v, t.Path)
			if err != nil {
				continue // the spec is for another type
			}
			for _, r := range references(to) {
				steps = append(steps, step{r, t})
			}
		}
	})
	for _, s := range steps {
		if !yes(s.Skip) {
			*refs = append(*refs, s.to)
		}
		if len(s.SelectSet) == 0 {
			continue
		}
		if _, fault := rd.visit(s.to, false, s.SelectSet, refs); fault != nil {
			return known, fault
		}
	}
	return known, fault
}

func references(x any) []types.ManagedObjectReference {
	switch x := x.(type) {
	case types.ManagedObjectReference:
		return []types.ManagedObjectReference{x}
	case types.ArrayOfManagedObjectReference:
		return x.ManagedObjectReference
	}
	return nil
}

// collect adds the selected properties of an object, once per object.
func (rd *reading) collect(ref types.ManagedObjectReference, v reflect.Value) {
	if rd.done[ref] || rd.leave(ref) {
		return
	}
	rd.done[ref] = true
	content := types.ObjectContent{Obj: ref}
	seen := map[string]bool{}
	match := false
	for _, set := range rd.sets {
		if !isA(v.Type(), ref.Type, set.Type) {
			continue
		}
		match = true
		paths := set.PathSet
		if yes(set.All) {
			paths = every(v.Type())
		}
		for _, p := range paths {
			if seen[p] {
				continue
			}
			seen[p] = true
			x, err := property(v, p)
			switch {
			case err != nil:
				content.MissingSet = append(content.MissingSet, types.MissingProperty{
					Path: p, Fault: types.LocalizedMethodFault{Fault: &types.InvalidProperty{Name: p}},
				})
			case x != nil:
				content.PropSet = append(content.PropSet, types.DynamicProperty{Name: p, Val: rd.copies.copy(x)})
			}
		}
	}
	if match {
		rd.out = append(rd.out, content)
	}
}

// isA reports whether an object has a type, or a type derived from it.
func isA(t reflect.Type, own, want string) bool {
	if want == own || want == t.Name() {
		return true
	}
	f := fieldOf(t, want)
	return f != nil && f.Anonymous
}

// every returns the names of all properties of a type.
func every(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Anonymous:
			out = append(out, every(f.Type)...)
		case f.Name != "Self":
			out = append(out, strings.ToLower(f.Name[:1])+f.Name[1:])
		}
	}
	return out
}
