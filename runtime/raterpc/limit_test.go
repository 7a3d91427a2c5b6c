package raterpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterpc"
	"github.com/rategen/rategen/runtime/rule"
)

func TestLimits(t *testing.T) {
	once := func(name string) *runtime.Rule {
		return &runtime.Rule{Name: name, Window: time.Hour, Max: 1, Fail: runtime.FailClosed, Invalid: rule.InvalidRefuse}
	}
	byMsg := func(_ context.Context, msg any) *runtime.Key { return runtime.NewKey().AddString(msg.(string)) }
	const open, receive, send = raterpc.OnOpen, raterpc.OnReceive, raterpc.OnSend
	type event struct {
		method string
		on     raterpc.Event
		msg    any
		refuse error
	}
	for _, test := range []struct {
		name   string
		limit  raterpc.MethodLimit
		events []event
	}{
		{"one method", raterpc.MethodLimit{Method: "/a.S/Get"}, []event{
			{"/a.S/Get", open, nil, nil}, {"/a.S/Get", open, nil, runtime.ErrLimited}, {"/a.S/GetAll", open, nil, nil}, {"/a.S/Ge", open, nil, nil},
		}},
		{"a service", raterpc.MethodLimit{Method: "/a.S/*"}, []event{
			{"/a.S/Get", open, nil, nil}, {"/a.S/Put", open, nil, runtime.ErrLimited}, {"/a.S2/Get", open, nil, nil}, {"/b.S/Get", open, nil, nil},
		}},
		{"all", raterpc.MethodLimit{Method: "*"}, []event{
			{"/a.S/Get", open, nil, nil}, {"/b/Put", open, nil, runtime.ErrLimited}, {"garbage", open, nil, runtime.ErrLimited},
		}},
		{"all but health checks and reflection", raterpc.MethodLimit{Method: "*"}, []event{
			{"/a.S/Get", open, nil, nil}, {"/grpc.health.v1.Health/Check", open, nil, nil}, {"/grpc.health.v1.Health/Watch", open, nil, nil},
			{"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", open, nil, nil}, {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", open, nil, nil},
			{"/grpc.health.v1.Healthy/Check", open, nil, runtime.ErrLimited},
		}},
		{"health checks by name", raterpc.MethodLimit{Method: "/grpc.health.v1.Health/*"}, []event{
			{"/grpc.health.v1.Health/Check", open, nil, nil}, {"/grpc.health.v1.Health/Watch", open, nil, runtime.ErrLimited},
		}},
		{"except", raterpc.MethodLimit{Method: "*", Except: []string{"/a.S/Get", "/b.S/*"}}, []event{
			{"/a.S/Put", open, nil, nil}, {"/a.S/Get", open, nil, nil}, {"/b.S/Put", open, nil, nil}, {"/b.S2/Put", open, nil, runtime.ErrLimited},
		}},
		{"except one of a service", raterpc.MethodLimit{Method: "/a.S/*", Except: []string{"/a.S/Get"}}, []event{
			{"/a.S/Put", open, nil, nil}, {"/a.S/Get", open, nil, nil}, {"/a.S/GetAll", open, nil, runtime.ErrLimited},
		}},
		{"by key", raterpc.MethodLimit{Method: "*", Key: byMsg}, []event{
			{"/a/b", open, "x", nil}, {"/a/b", open, "y", nil}, {"/a/b", open, "x", runtime.ErrLimited},
		}},
		{"key panics", raterpc.MethodLimit{Method: "*", Key: byMsg}, []event{{"/a/b", open, nil, runtime.ErrInvalidKey}}},
		{"cost panics", raterpc.MethodLimit{Method: "*", Cost: func(context.Context, any) int64 { panic("no") }}, []event{{"/a/b", open, nil, runtime.ErrInvalidKey}}},
		{"nil key", raterpc.MethodLimit{Method: "*", Key: func(context.Context, any) *runtime.Key { return nil }}, []event{
			{"/a/b", open, nil, nil}, {"/a/b", open, nil, runtime.ErrLimited},
		}},
		{"cost", raterpc.MethodLimit{Method: "*", Cost: func(_ context.Context, msg any) int64 { return int64(len(msg.(string))) }}, []event{
			{"/a/b", open, "", nil}, {"/a/b", open, "ab", runtime.ErrCostExceedsLimit}, {"/a/b", open, "a", nil}, {"/a/b", open, "", nil}, {"/a/b", open, "a", runtime.ErrLimited},
		}},
		{"messages received", raterpc.MethodLimit{Method: "*", On: receive}, []event{
			{"/a/b", open, nil, nil}, {"/a/b", open, nil, nil}, {"/a/b", receive, "", nil}, {"/a/b", send, "", nil}, {"/a/b", receive, "", runtime.ErrLimited},
			{"/a/b", open | receive, "", runtime.ErrLimited},
		}},
		{"messages sent", raterpc.MethodLimit{Method: "*", On: send}, []event{
			{"/a/b", open | receive, "", nil}, {"/a/b", send, "", nil}, {"/a/b", send, "", runtime.ErrLimited},
		}},
		{"all of a stream", raterpc.MethodLimit{Method: "*", On: open | receive | send}, []event{
			{"/a/b", open, nil, nil}, {"/a/b", receive, "", runtime.ErrLimited}, {"/a/b", send, "", runtime.ErrLimited},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.limit.Rule = once(test.name)
			limiter := runtime.New(runtime.NewMemoryStore())
			server := raterpc.NewServer(raterpc.WithLimits(limiter, test.limit))
			for i, e := range test.events {
				ctx, call := server.Begin(t.Context(), e.method, nobody{})
				if err := call.Charge(ctx, e.on, e.msg); !errors.Is(err, e.refuse) {
					t.Errorf("event %d: %v, want %v", i, err, e.refuse)
				}
			}
		})
	}
}

// The limits of one WithLimits are charged together, and several options in turn.
func TestLimitsTogether(t *testing.T) {
	limiter := runtime.New(runtime.NewMemoryStore())
	narrow := raterpc.MethodLimit{Method: "/a.S/Get", Rule: &runtime.Rule{Name: "narrow", Window: time.Hour, Max: 1}}
	wide := raterpc.MethodLimit{Method: "*", Rule: &runtime.Rule{Name: "wide", Window: time.Hour, Max: 2}}
	server := raterpc.NewServer(raterpc.WithLimits(limiter, wide, narrow))
	var refused []string
	for _, method := range []string{"/a.S/Get", "/a.S/Get", "/a.S/Put", "/a.S/Put"} {
		ctx, call := server.Begin(t.Context(), method, nobody{})
		var limited *runtime.LimitedError
		if errors.As(call.Charge(ctx, raterpc.OnOpen, nil), &limited) {
			refused = append(refused, limited.Rule)
		}
	}
	if got := fmt.Sprint(refused); got != "[narrow wide]" {
		t.Errorf("refused by %s", got)
	}
}

func TestMalformedLimits(t *testing.T) {
	limiter := runtime.New(runtime.NewMemoryStore())
	rule := &runtime.Rule{Name: "x", Window: time.Hour, Max: 1}
	nine := make([]raterpc.MethodLimit, 9)
	for i := range nine {
		nine[i] = raterpc.MethodLimit{Method: "*", Rule: rule}
	}
	nine[8].Method = "/a.S/Get"
	except := func(method, except string) func() {
		return func() {
			raterpc.WithLimits(limiter, raterpc.MethodLimit{Method: method, Rule: rule, Except: []string{except}})
		}
	}
	for want, try := range map[string]func(){
		`raterpc.WithLimits: method "/a.S/Get": there is nothing to except from one method: leave Except out`:                                 except("/a.S/Get", "/a.S/Get"),
		`raterpc.WithLimits: method "/a.S/*": it has no methods "/b.S/Get" to except: want "/package.Service/Method" or "/package.Service/*"`: except("/a.S/*", "/b.S/Get"),
		`raterpc.WithLimits: method "*": it has no methods "*" to except: want "/package.Service/Method" or "/package.Service/*"`:             except("*", "*"),
		"raterpc.WithLimits: the limiter is nil, so nothing would be limited":                                                                 func() { raterpc.WithLimits(nil) },
		`raterpc.WithLimits: method "/a.S/Get": the rule is nil`:                                                                              func() { raterpc.WithLimits(limiter, raterpc.MethodLimit{Method: "/a.S/Get"}) },
		`raterpc.WithLimits: method "*": unknown event 8`:                                                                                     func() { raterpc.WithLimits(limiter, raterpc.MethodLimit{Method: "*", Rule: rule, On: 8}) },
		`raterpc.WithLimits: method "/a.S/Get" has 9 limits, the maximum is 8`:                                                                func() { raterpc.WithLimits(limiter, nine...) },
		`raterpc.WithLimits: method "Get": want "/package.Service/Method", "/package.Service/*" or "*"`:                                       func() { raterpc.WithLimits(limiter, raterpc.MethodLimit{Method: "Get", Rule: rule}) },
		`raterpc.WithLimits: method "a.S/Get": want "/package.Service/Method", "/package.Service/*" or "*"`:                                   func() { raterpc.WithLimits(limiter, raterpc.MethodLimit{Method: "a.S/Get", Rule: rule}) },
		`raterpc.WithLimits: method "/a.S/": want "/package.Service/Method", "/package.Service/*" or "*"`:                                     func() { raterpc.WithLimits(limiter, raterpc.MethodLimit{Method: "/a.S/", Rule: rule}) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %s", got, want)
				}
			}()
			try()
		}()
	}
}

// A call holds its permits until it ends, and what it pays for rates stays charged.
func TestLimitInFlight(t *testing.T) {
	limiter := runtime.New(runtime.NewMemoryStore())
	rule := &runtime.Rule{Name: "flight", Window: time.Minute, Max: 2, Algorithm: runtime.Concurrency, Fail: runtime.FailClosed}
	rate := &runtime.Rule{Name: "rate", Window: time.Hour, Max: 5, Fail: runtime.FailClosed}
	server := raterpc.NewServer(raterpc.WithLimits(limiter, raterpc.MethodLimit{Method: "*", Rule: rule}, raterpc.MethodLimit{Method: "*", Rule: rate}))
	begin := func() (*raterpc.Call, error) {
		ctx, call := server.Begin(t.Context(), "/a/b", nobody{})
		return call, call.Charge(ctx, raterpc.OnOpen, nil)
	}
	for range 2 {
		one, err := begin()
		two, err2 := begin()
		three, err3 := begin()
		if err != nil || err2 != nil || !errors.Is(err3, runtime.ErrLimited) {
			t.Fatal(err, err2, err3)
		}
		for _, call := range []*raterpc.Call{one, two, three, one} {
			call.End(t.Context())
		}
	}
	if d, err := limiter.Peek(t.Context(), rate.Limit(nil)); err != nil || d.Remaining != 1 {
		t.Errorf("the rate has %d left, %v", d.Remaining, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a limit on calls in flight may be charged for messages")
		}
	}()
	raterpc.WithLimits(limiter, raterpc.MethodLimit{Method: "*", Rule: rule, On: raterpc.OnReceive})(server)
}
