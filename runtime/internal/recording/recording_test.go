package recording

import (
	"context"
	"testing"
)

// Nothing is looked up in a context before some context has a function, and each kind of function
// is found by itself, the innermost first.
func TestFunctions(t *testing.T) {
	ctx := context.WithValue(t.Context(), key[int]{}, &List[int]{Func: 1})
	was := Anyone.Swap(false)
	defer func() { Anyone.Store(was || Anyone.Load()) }()
	if Anyone.Load() || Functions[int](ctx) != nil {
		t.Error("the context was asked")
	}
	ctx = With(With(ctx, 2), "another kind")
	if list := Functions[int](ctx); !Anyone.Load() || list == nil || list.Func != 2 || list.Outer == nil || list.Outer.Func != 1 {
		t.Errorf("the context has %+v", list)
	}
	if list := Functions[string](ctx); list == nil || list.Func != "another kind" || list.Outer != nil {
		t.Errorf("the context has %+v of the other kind", list)
	}
}
