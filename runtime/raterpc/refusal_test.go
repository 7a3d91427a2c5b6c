package raterpc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/raterpc"
)

var errReplaced, errAway = errors.New("come back later"), errors.New("away")

func TestRefusal(t *testing.T) {
	rule := &runtime.Rule{Name: "orders.Orders.Get", Prefix: "a:", Window: time.Hour, Max: 1, Message: "too fast"}
	limited := &runtime.LimitedError{Rule: "orders.Orders.Get", Limit: 5, RetryAfter: 1500 * time.Millisecond}
	info := func(reason string, metadata map[string]string) proto.Message {
		return &errdetails.ErrorInfo{Reason: reason, Domain: "shop.v1.Orders", Metadata: metadata}
	}
	details := []proto.Message{
		info("RATE_LIMIT_EXCEEDED", map[string]string{"policy": "Orders.Get", "limit": "5", "retry_after": "2"}),
		&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
			{Subject: "Orders.Get", QuotaId: "Orders.Get", Description: runtime.DefaultMessage, QuotaValue: 5},
		}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)},
	}
	exhausted := &raterpc.Refusal{Code: 8, Message: runtime.DefaultMessage, RetryAfter: limited.RetryAfter, Details: details}
	for _, test := range []struct {
		name string
		err  error
		want *raterpc.Refusal
	}{
		{"none", nil, nil},
		{"another error", errors.New("no such order"), nil},
		{"limited", limited, exhausted},
		{"wrapped", fmt.Errorf("get order of secret@example.com: %w", limited), exhausted},
		{"joined", errors.Join(errors.New("cleanup failed"), limited), exhausted},
		{"never", &runtime.LimitedError{Rule: "x.Orders.Get", RetryAfter: runtime.Never}, &raterpc.Refusal{
			Code: 8, Message: runtime.DefaultMessage, RetryAfter: runtime.Never, Details: []proto.Message{
				info("COST_EXCEEDS_RATE_LIMIT", map[string]string{"policy": "Orders.Get", "limit": "0"}),
				&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "Orders.Get", QuotaId: "Orders.Get", Description: runtime.DefaultMessage}}},
			}}},
		{"unavailable", fmt.Errorf("%w: dial tcp 10.0.0.3:6379", runtime.ErrUnavailable), &raterpc.Refusal{
			Code: 14, Message: "rate limiter unavailable", Details: []proto.Message{info("RATE_LIMITER_UNAVAILABLE", nil)}}},
		{"invalid key", fmt.Errorf("rule %q: %w", "pkg.Get", runtime.ErrInvalidKey), &raterpc.Refusal{
			Code: 13, Message: "rate limit could not be applied", Details: []proto.Message{info("RATE_LIMIT_INVALID", nil)}}},
		{"invalid limit", runtime.ErrInvalidLimit, &raterpc.Refusal{
			Code: 13, Message: "rate limit could not be applied", Details: []proto.Message{info("RATE_LIMIT_INVALID", nil)}}},
		{"cancelled", context.Canceled, nil},
		{"deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, call := raterpc.NewServer().Begin(t.Context(), method, nobody{})
			if diff := cmp.Diff(test.want, call.Refusal(test.err), protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}

	t.Run("several limits refuse", func(t *testing.T) {
		ctx, call := raterpc.NewServer(raterpc.WithDomain("shop.example")).Begin(t.Context(), method, nobody{})
		second := &runtime.Rule{Name: "orders.perDay", Prefix: "b:", Window: 24 * time.Hour, Max: 1, Message: "enough for today"}
		r := call.Refusal(take(t, call, ctx, 2, rule, second))
		if r == nil || r.Message != "enough for today" {
			t.Fatalf("%+v", r)
		}
		failure := r.Details[1].(*errdetails.QuotaFailure)
		want := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
			{Subject: "orders.perDay", QuotaId: "orders.perDay", Description: runtime.DefaultMessage, QuotaValue: 1},
			{Subject: "Orders.Get", QuotaId: "Orders.Get", Description: runtime.DefaultMessage, QuotaValue: 1},
		}}
		if diff := cmp.Diff(want, failure, protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if domain := r.Details[0].(*errdetails.ErrorInfo).Domain; domain != "shop.example" {
			t.Errorf("domain %q", domain)
		}
	})
}

// What an application makes of a refusal tells clients as much as the limiter's own
// error, in the application's words.
func TestReplacedError(t *testing.T) {
	refused := runtime.WithRefusalError(func(_ context.Context, err error) error {
		if errors.Is(err, runtime.ErrUnavailable) {
			return errAway
		}
		return errReplaced
	})
	quiet := runtime.WithLogger(slog.New(slog.DiscardHandler))
	limiter := runtime.New(runtime.NewMemoryStore(), refused, quiet)
	rule := &runtime.Rule{Name: "orders.Get", Window: time.Hour, Max: 1}
	closed := &runtime.Rule{Name: "orders.Put", Window: time.Hour, Max: 1, Fail: runtime.FailClosed}

	ctx, call := raterpc.NewServer().Begin(t.Context(), method, nobody{})
	if r := call.Refusal(errReplaced); r != nil {
		t.Errorf("before any refusal: %+v", r)
	}
	var err error
	for range 20 { // more than is remembered
		_, err = limiter.Take(ctx, rule.Limit(nil))
	}
	for _, err := range []error{err, fmt.Errorf("get order: %w", err)} {
		r := call.Refusal(err)
		if r == nil || r.Code != raterpc.CodeResourceExhausted || r.Message != err.Error() || r.RetryAfter < 59*time.Minute || len(r.Details) != 3 {
			t.Errorf("refused: %+v", r)
		}
	}
	for _, other := range []error{errors.New("disk full"), context.Canceled, uncomparable{func() {}}} {
		if r := call.Refusal(other); r != nil {
			t.Errorf("%T after a refusal: %+v", other, r)
		}
	}
	if _, err := runtime.New(nil, refused, quiet).Take(ctx, closed.Limit(nil)); err != errAway {
		t.Fatal(err)
	}
	if r := call.Refusal(errAway); r == nil || r.Code != raterpc.CodeUnavailable || r.Message != "away" {
		t.Errorf("unavailable: %+v", r)
	}

	bad := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithRefusalError(func(context.Context, error) error { return errors.New("\xff") }))
	for range 2 {
		_, err = bad.Take(ctx, rule.Limit(nil))
	}
	if r := call.Refusal(err); r == nil || r.Message != "\uFFFD" {
		t.Errorf("a text that no status can hold: %+v", r)
	}
}

// What a client gets that still waits, by the code of the handler's own: the refusal in place of an error
// that says nothing, or of each error; what its refusal lacks; or a code that hides the refusal.
func TestEnded(t *testing.T) {
	const codes = 17
	modes := map[string][]raterpc.Option{"left": {raterpc.WithHiddenRefusals()}, "default": nil, "forced": {raterpc.WithForcedRefusals()}}
	var reported []observe.HiddenEvent
	l := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithObserver(&observe.Observer{Hidden: func(_ context.Context, ev observe.HiddenEvent) { reported = append(reported, ev) }}))
	full := &runtime.Rule{Name: "full", Window: time.Hour, Max: 1}
	_, _ = l.Take(t.Context(), full.Limit(nil))
	for mode, opts := range modes {
		for code := range uint32(codes) {
			for _, gone := range []bool{false, true} {
				ctx, cancel := context.WithCancel(t.Context())
				ctx, call := raterpc.NewServer(opts...).Begin(ctx, method, nobody{})
				_, _ = l.Take(ctx, full.Limit(nil))
				if gone {
					cancel()
				}
				own := code == raterpc.CodeResourceExhausted || code == raterpc.CodeUnavailable
				unknown := code == 2 || code == raterpc.CodeInternal
				overruled := !gone && code != 0 && !own && (unknown && mode != "left" || mode == "forced")
				events := 0
				if code == 0 || !gone && !own && !overruled {
					events = 1
				}
				reported = nil
				r := call.Ended(ctx, code)
				if (r != nil) != (overruled || own && !gone) || r != nil && (r.Own != own || r.RetryAfter < time.Hour-time.Minute || own && r.Code != code) {
					t.Errorf("%s, code %d, gone %t: %+v", mode, code, gone, r)
				}
				if len(reported) != events || events == 1 && reported[0] != (observe.HiddenEvent{Rule: "full", Served: code == 0}) {
					t.Errorf("%s, code %d, gone %t: reported %v", mode, code, gone, reported)
				}
				cancel()
			}
		}
	}
}

// An uncomparable error has a type that can be compared, and no value that can.
type uncomparable struct{ f any }

func (uncomparable) Error() string { return "uncomparable" }

func TestPushback(t *testing.T) {
	_, call := raterpc.NewServer(raterpc.WithPushback(time.Minute)).Begin(t.Context(), method, nobody{})
	refusal := func(after time.Duration) *raterpc.Refusal {
		return call.Refusal(&runtime.LimitedError{Rule: "x", RetryAfter: after})
	}
	for _, after := range []time.Duration{1, time.Microsecond, time.Millisecond, 1500 * time.Microsecond, 20 * time.Second, time.Minute} {
		seen := map[string]bool{}
		for range 100 {
			text := call.Pushback(t.Context(), refusal(after))
			seen[text] = true
			ms, err := strconv.ParseInt(text, 10, 32)
			wait := time.Duration(ms) * time.Millisecond
			if err != nil || wait < after || wait > after+after/4+time.Millisecond {
				t.Errorf("%q for %v", text, after)
			}
		}
		if after > time.Second && len(seen) < 2 {
			t.Errorf("no jitter for %v", after)
		}
	}
	for _, after := range []time.Duration{runtime.Never, time.Minute + 1, time.Hour, 366 * 24 * time.Hour} {
		if text := call.Pushback(t.Context(), refusal(after)); text != "-1" {
			t.Errorf("%q for %v", text, after)
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if text := call.Pushback(soon, refusal(20*time.Second)); text != "-1" {
		t.Errorf("%q although the deadline is sooner", text)
	}
	if text := call.Pushback(t.Context(), call.Refusal(runtime.ErrUnavailable)); text != "" {
		t.Errorf("%q for a limiter that is unavailable", text)
	}
	_, plain := raterpc.NewServer(nil).Begin(t.Context(), method, nobody{})
	if text := plain.Pushback(t.Context(), refusal(time.Second)); text != "" {
		t.Errorf("%q without the option", text)
	}
	_, long := raterpc.NewServer(raterpc.WithPushback(runtime.Never)).Begin(t.Context(), method, nobody{})
	if text := long.Pushback(t.Context(), refusal(300*24*time.Hour)); text != "-1" {
		t.Errorf("%q is beyond 31 bits", text)
	}
}

// A method that no .proto file can have is not sent back to the client.
func TestNoEcho(t *testing.T) {
	for method, want := range map[string]string{
		"/shop.v1.Orders/Get": "shop.v1.Orders", "/\xff/Get": "", "/<script>/Get": "", "": "", "x": "", "/" + strings.Repeat("x", 300) + "/Get": "",
	} {
		_, call := raterpc.NewServer().Begin(t.Context(), method, nobody{})
		r := call.Refusal(&runtime.LimitedError{RetryAfter: time.Second})
		if got := r.Details[0].(*errdetails.ErrorInfo).Domain; got != want {
			t.Errorf("%q: domain %q", method, got)
		}
	}
}
