package raterpc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A MethodLimit is a limit on the calls of methods.
type MethodLimit struct {
	// Method is "/package.Service/Method" for one method, "/package.Service/*"
	// for all of a service, or "*" for all of the server but its health checks and
	// reflection, which have limits only by their names.
	Method string
	// Except are methods, or services as "/package.Service/*", that Method would fit and
	// the limit is not for.
	Except []string
	// Rule is what is admitted.
	Rule *runtime.Rule
	// Key returns whose calls are counted together; without it, or if it returns
	// nil, there is one budget for all callers. Msg is the message that is charged:
	// the request of a unary call, nil when a stream is opened.
	//
	// A Key that panics is an invalid key: the rule's [rule.InvalidKeyPolicy] decides.
	Key func(ctx context.Context, msg any) *runtime.Key
	// Cost returns what the message costs; without it, it is 1. A cost of 0
	// charges nothing. A Cost that panics is as a Key that does.
	Cost func(ctx context.Context, msg any) int64
	// On is what is charged; its zero value is [OnOpen].
	On Event
}

// An Event is what happens in a call and may be charged. Events are combined by |.
type Event uint8

const (
	// OnOpen charges a call when it begins: a unary call with its request, and a
	// stream without a message.
	OnOpen Event = 1 << iota
	// OnReceive charges every message that a stream receives from its client,
	// before the handler sees it. A unary call is charged once, as by OnOpen.
	OnReceive
	// OnSend charges every message that a stream sends, before it is sent. It does
	// not charge unary calls.
	OnSend
)

// limited are limits that one limiter decides together.
type limited struct {
	limiter *runtime.Limiter
	limits  []MethodLimit
}

// check panics if the limit is malformed.
func (l *MethodLimit) check() {
	service, method, ok := splitMethod(l.Method)
	switch {
	case l.Method != "*" && (!ok || service == "" || method == ""):
		panic(fmt.Sprintf("raterpc.WithLimits: method %q: want %q, %q or %q", l.Method, "/package.Service/Method", "/package.Service/*", "*"))
	case l.Method != "*" && method != "*" && len(l.Except) > 0:
		panic(fmt.Sprintf("raterpc.WithLimits: method %q: there is nothing to except from one method: leave Except out", l.Method))
	case l.Rule == nil:
		panic(fmt.Sprintf("raterpc.WithLimits: method %q: the rule is nil", l.Method))
	case l.Rule.Reserve > 0 && l.On > OnOpen:
		panic(fmt.Sprintf("raterpc.WithLimits: method %q: what a rule with a Reserve charges is held while the call runs, and so is charged when it begins, and not for messages", l.Method))
	case algorithm.RowOf(l.Rule.Algorithm).Is(algorithm.Lends) && l.On > OnOpen:
		panic(fmt.Sprintf("raterpc.WithLimits: method %q: a limit on calls in flight is charged when a call begins, and not for messages", l.Method))
	case l.On > OnOpen|OnReceive|OnSend:
		panic(fmt.Sprintf("raterpc.WithLimits: method %q: unknown event %d", l.Method, l.On))
	}
	for _, pattern := range append([]string{l.Method}, l.Except...) {
		if meantBy, yes := lacks(pattern); yes {
			panic(fmt.Sprintf("raterpc.WithLimits: method %q: the service has no method of that name%s", pattern, meantBy))
		}
	}
	for _, except := range l.Except {
		if service, method, ok := splitMethod(except); !ok || service == "" || method == "" || !fits(l.Method, except) {
			panic(fmt.Sprintf("raterpc.WithLimits: method %q: it has no methods %q to except: want %q or %q", l.Method, except, "/package.Service/Method", "/package.Service/*"))
		}
	}
}

// checkCount panics if a method has more limits than a call may have.
func checkCount(limits []MethodLimit) {
	for i := range limits {
		n := 0
		for j := range limits {
			if limits[j].matches(limits[i].Method) {
				n++
			}
		}
		if n > rule.MaxLimits {
			panic(fmt.Sprintf("raterpc.WithLimits: method %q has %d limits, the maximum is %d", limits[i].Method, n, rule.MaxLimits))
		}
	}
}

// unasked are services that "*" does not fit: orchestrators end a server whose health checks are
// refused, and tools ask for reflection.
var unasked = []string{"/grpc.health.v1.Health/*", "/grpc.reflection.v1.ServerReflection/*", "/grpc.reflection.v1alpha.ServerReflection/*"}

// matches reports whether the limit applies to a method.
func (l *MethodLimit) matches(method string) bool {
	is := func(pattern string) bool { return fits(pattern, method) }
	return is(l.Method) && !slices.ContainsFunc(l.Except, is) && !(l.Method == "*" && slices.ContainsFunc(unasked, is))
}

// fits reports whether a pattern fits a method.
func fits(pattern, method string) bool {
	service, ok := strings.CutSuffix(pattern, "*")
	return pattern == method || ok && strings.HasPrefix(method, service)
}

// charges reports whether the limit charges one of several events.
func (l *MethodLimit) charges(on Event) bool {
	if l.On == 0 {
		return on&OnOpen != 0
	}
	return on&l.On != 0
}

// applied returns the limit for an event with a message. A panic in a function of the
// program makes its key invalid.
func (l *MethodLimit) applied(ctx context.Context, msg any) (limit runtime.Limit) {
	defer func() {
		if recover() != nil {
			limit = l.Rule.Limit(runtime.NewKey().AddInvalid("the Key or Cost function for " + l.Method + " panicked"))
		}
	}()
	var key *runtime.Key
	if l.Key != nil {
		key = l.Key(ctx, msg)
	}
	limit = l.Rule.Limit(key)
	if l.Cost != nil {
		limit = limit.WithCost(l.Cost(ctx, msg))
	}
	return limit
}

// splitMethod divides "/package.Service/Method".
func splitMethod(full string) (service, method string, ok bool) {
	rest, ok := strings.CutPrefix(full, "/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}
