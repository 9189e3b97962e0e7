package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimitsDoNotRunWhileAPersonIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Session{}
		tooSlow := errors.New("too slow")
		ctx, cancel := s.within(t.Context(), 40*time.Second, tooSlow)
		defer cancel()
		time.Sleep(30 * time.Second)
		first, second := s.asking(), s.asking() // two guests prompt at the same time
		time.Sleep(10 * time.Minute)
		first()
		time.Sleep(time.Minute)
		second()
		time.Sleep(9 * time.Second)
		if ctx.Err() != nil {
			t.Fatalf("ended after 39 s of its own: %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if context.Cause(ctx) != tooSlow {
			t.Errorf("after its limit: %v", context.Cause(ctx))
		}
	})
}
