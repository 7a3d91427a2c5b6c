package raterpc_test

import (
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterpc"
)

// TestCheckLimits has limits of methods that a server has, and of those that it has not.
func TestCheckLimits(t *testing.T) {
	methods := []raterpc.Method{{Name: "/shop.v1.Orders/Place"}, {Name: "/shop.v1.Orders/Watch", Streams: true}}
	rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 1}
	excepts := raterpc.MethodLimit{Method: "/shop.v1.Orders/*", Rule: rule, Except: []string{"/shop.v1.Orders/Place", "/shop.v1.Orders/watch"}}
	want := `the limit of method "/shop.v1.Orders/*" excepts "/shop.v1.Orders/watch", which fits no method of the server: did you mean "/shop.v1.Orders/Watch"?`
	if err := raterpc.CheckLimits(methods, excepts); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, c := range []struct {
		method string
		on     raterpc.Event
		want   string
	}{
		{"*", 0, ""},
		{"*", raterpc.OnSend, ""},
		{"/shop.v1.Orders/*", raterpc.OnSend | raterpc.OnReceive, ""},
		{"/shop.v1.Orders/Place", raterpc.OnReceive, ""},
		{"/shop.v1.Orders/Watch", raterpc.OnSend, ""},
		{"/shop.v1.Orders/Place", raterpc.OnSend, `the limit of method "/shop.v1.Orders/Place" charges what is sent, and no method that it fits sends a stream: leave OnSend out`},
		{"/shop.v1.Orders/place", 0, `the limit of method "/shop.v1.Orders/place" fits no method of the server: did you mean "/shop.v1.Orders/Place"?`},
		{"/shop.v1.orders/*", 0, `the limit of method "/shop.v1.orders/*" fits no method of the server: did you mean "/shop.v1.Orders/*"?`},
		{"/shop.Orders/Watch", 0, `the limit of method "/shop.Orders/Watch" fits no method of the server: did you mean "/shop.v1.Orders/Watch"?`},
		{"/shop.v1.*/Place", 0, `the limit of method "/shop.v1.*/Place" fits no method of the server`},
		{"/a.B/C", 0, `the limit of method "/a.B/C" fits no method of the server`},
	} {
		got := ""
		if err := raterpc.CheckLimits(methods, raterpc.MethodLimit{Method: "*", Rule: rule}, raterpc.MethodLimit{Method: c.method, Rule: rule, On: c.on}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %d: %q, want %q", c.method, c.on, got, c.want)
		}
	}
}
