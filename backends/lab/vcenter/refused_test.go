package vcenter_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

func newVim(ctx context.Context, sc *soap.Client) (*vim25.Client, error) {
	return vim25.NewClient(ctx, sc)
}

func newSession(vc *vim25.Client) *session.Manager { return session.NewManager(vc) }

// asFault converts a value that was decoded as a non-pointer to a fault.
func asFault(v any) (types.BaseMethodFault, bool) {
	if v == nil {
		return nil, false
	}
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	f, ok := p.Interface().(types.BaseMethodFault)
	return f, ok
}

// refused checks the type of a fault ("*types.NotFound") and its text.
func refused(t *testing.T, err error, kind, text string) types.BaseMethodFault {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want %s", kind)
	}
	f, message := fault(err)
	if got := fmt.Sprintf("%T", f); got != "*types."+kind {
		t.Fatalf("fault %s (%v), want %s", got, err, kind)
	}
	if message != text {
		t.Errorf("text %q, want %q", message, text)
	}
	return f
}
