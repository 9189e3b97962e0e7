package props

import (
	"reflect"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/rdma-setup/rdma-setup/backends/lab/vcenter/frame"
)

// A book stores pages of results that were not fetched yet, by token. A token is valid for one session and for one use.
type book struct {
	mu    sync.Mutex
	pages map[string]page
}

type page struct {
	session string
	size    int
	objects []types.ObjectContent
}

// cut returns the first page and a token for the remaining ones, or "" if there are none.
func (b *book) cut(p page) ([]types.ObjectContent, string) {
	if p.size <= 0 || len(p.objects) <= p.size {
		return p.objects, ""
	}
	rest := p
	rest.objects = p.objects[p.size:]
	token := uuid.NewString()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages == nil {
		b.pages = map[string]page{}
	}
	b.pages[token] = rest
	return p.objects[:p.size], token
}

func (b *book) take(session, token string) (page, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.pages[token]
	if !ok || p.session != session {
		return page{}, false
	}
	delete(b.pages, token)
	return p, true
}

func (b *book) drop(match func(token string, p page) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for token, p := range b.pages {
		if match(token, p) {
			delete(b.pages, token)
		}
	}
}

// RetrievePropertiesEx returns the first page.
func (r *Reader) RetrievePropertiesEx(ctx *simulator.Context, req *types.RetrievePropertiesEx) soap.HasFault {
	objects, fault := r.Read(ctx, req.SpecSet)
	if fault != nil {
		return frame.Answer(nil, refusal(fault))
	}
	first, token := r.book.cut(page{ctx.Session.Key, int(req.Options.MaxObjects), objects})
	return frame.Answer(types.RetrievePropertiesExResponse{Returnval: &types.RetrieveResult{Token: token, Objects: first}}, nil)
}

// ContinueRetrievePropertiesEx returns the next page.
func (r *Reader) ContinueRetrievePropertiesEx(ctx *simulator.Context, req *types.ContinueRetrievePropertiesEx) soap.HasFault {
	p, ok := r.book.take(ctx.Session.Key, req.Token)
	if !ok {
		return frame.Answer(nil, frame.Refuse(&types.InvalidPropertyFault{Name: "token"}))
	}
	next, token := r.book.cut(p)
	return frame.Answer(types.ContinueRetrievePropertiesExResponse{Returnval: types.RetrieveResult{Token: token, Objects: next}}, nil)
}

// CancelRetrievePropertiesEx ends a paged read early.
func (r *Reader) CancelRetrievePropertiesEx(_ *simulator.Context, req *types.CancelRetrievePropertiesEx) soap.HasFault {
	r.book.drop(func(token string, _ page) bool { return token == req.Token })
	return frame.Answer(types.CancelRetrievePropertiesExResponse{}, nil)
}

// RetrieveProperties is RetrievePropertiesEx without paging, for older clients.
func (r *Reader) RetrieveProperties(ctx *simulator.Context, req *types.RetrieveProperties) soap.HasFault {
	objects, fault := r.Read(ctx, req.SpecSet)
	if fault != nil {
		return frame.Answer(nil, refusal(fault))
	}
	return frame.Answer(types.RetrievePropertiesResponse{Returnval: objects}, nil)
}

// Forget removes the pages of an ended session.
func (r *Reader) Forget(session string) {
	r.book.drop(func(_ string, p page) bool { return p.session == session })
}

func refusal(fault types.BaseMethodFault) error {
	if gone, ok := fault.(*types.ManagedObjectNotFound); ok {
		return frame.Gone(gone.Obj)
	}
	return frame.Refuse(fault)
}

// A copier creates deep copies, so that an object can change while its copy is encoded.
type copier struct{ flat sync.Map } // reflect.Type -> whether a plain assignment is a copy

func (c *copier) copy(x any) any {
	if x == nil {
		return nil
	}
	return c.value(reflect.ValueOf(x)).Interface()
}

func (c *copier) value(v reflect.Value) reflect.Value {
	t := v.Type()
	if c.isFlat(t) {
		return v
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		p := reflect.New(t.Elem())
		p.Elem().Set(c.value(v.Elem()))
		return p
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		out := reflect.New(t).Elem()
		out.Set(c.value(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(t, v.Len(), v.Len())
		if c.isFlat(t.Elem()) {
			reflect.Copy(out, v)
			return out
		}
		for i := range v.Len() {
			out.Index(i).Set(c.value(v.Index(i)))
		}
		return out
	case reflect.Struct:
		out := reflect.New(t).Elem()
		out.Set(v)
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && !c.isFlat(f.Type) {
				out.Field(i).Set(c.value(v.Field(i)))
			}
		}
		return out
	}
	return v
}

// isFlat reports whether an assignment is a complete copy of a value: the type contains nothing that can be changed through a
// reference.
func (c *copier) isFlat(t reflect.Type) bool {
	if known, ok := c.flat.Load(t); ok {
		return known.(bool)
	}
	flat := true
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func:
		flat = false
	case reflect.Array:
		flat = c.isFlat(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			break // its pointer refers to a time zone, which never changes
		}
		for i := range t.NumField() {
			flat = flat && c.isFlat(t.Field(i).Type)
		}
	}
	c.flat.Store(t, flat)
	return flat
}
