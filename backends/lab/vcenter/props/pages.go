package props

import (
	"sync"

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
