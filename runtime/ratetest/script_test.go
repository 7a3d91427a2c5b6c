package ratetest_test

import (
	stdcontext "context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratetest"
	"github.com/rategen/rategen/runtime/rule"
)

var quiet = slog.New(slog.DiscardHandler)

// Scripted answers are given in their order, to the calls of their rule only, and the
// counts go on after them as if those calls had not come.
func TestScript(t *testing.T) {
	both(t, "script", func(t *testing.T) {
		l := ratetest.New(t)
		l.Next("orders", 2, ratetest.Refuse(30*time.Second))
		l.Next("orders", 1, ratetest.Refuse(runtime.Never))
		l.Next("orders", 1, ratetest.Unavailable())
		for i, want := range []struct {
			retryAfter time.Duration
			err        error
			source     rule.Source
		}{
			{retryAfter: 30 * time.Second, err: runtime.ErrLimited, source: rule.SourceStore},
			{retryAfter: 30 * time.Second, err: runtime.ErrLimited, source: rule.SourceStore},
			{retryAfter: runtime.Never, err: runtime.ErrCostExceedsLimit, source: rule.SourceStore},
			{source: rule.SourceFailure},
			{source: rule.SourceStore},
			{source: rule.SourceStore},
			{retryAfter: 10 * time.Second, err: runtime.ErrLimited, source: rule.SourceStore},
		} {
			d, err := take(t, l, orders.Limit(nil))
			if !errors.Is(err, want.err) || d.RetryAfter != want.retryAfter || d.Source != want.source {
				t.Errorf("call %d: %+v, %v, want %+v", i, d, err, want)
			}
			if _, err := take(t, l, reports.Limit(nil)); err != nil {
				t.Error(err)
			}
		}
		l.Check("orders").Admitted(3).Refused(4).Cost(2)
		l.Check("reports").Admitted(7)
	})
}

// A scripted refusal of one limit charges none of the call's others, and in shadow
// mode it refuses nobody.
func TestScriptOfSeveralLimits(t *testing.T) {
	both(t, "several", func(t *testing.T) {
		l := ratetest.New(t)
		l.Next("orders", 1, ratetest.Refuse(time.Second))
		d, err := take(t, l, reports.Limit(nil), orders.Limit(nil))
		if !errors.Is(err, runtime.ErrLimited) || d.Rule != "orders" {
			t.Errorf("%+v, %v", d, err)
		}
		l.Check("reports").Verdict(observe.VerdictNotCharged, 1).Cost(0)
		if d, _ := l.Peek(t.Context(), reports.Limit(nil)); d.Remaining != 10 {
			t.Errorf("%d of 10 reports are left", d.Remaining)
		}
		l.Next("trial", 1, ratetest.Refuse(time.Second))
		if _, err := take(t, l, trial.Limit(nil), reports.Limit(nil)); err != nil {
			t.Error(err)
		}
		l.Check("trial").Verdict(observe.VerdictShadowRefused, 1)
		l.Check("reports").Cost(1)
	})
}

// Without an answer the failure policies decide, and Peek and TakeEach know of the
// script too.
func TestUnavailable(t *testing.T) {
	both(t, "unavailable", func(t *testing.T) {
		l := ratetest.New(t)
		for _, r := range []string{"orders", "strict", "lonely"} {
			l.Always(r, ratetest.Unavailable())
		}
		if _, err := l.Peek(t.Context(), strict.Limit(nil)); !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("peek: %v", err)
		}
		outcomes := l.TakeEach(t.Context(), orders.Limit(nil), strict.Limit(nil), lonely.Limit(nil), reports.Limit(nil))
		for i, want := range []struct {
			source rule.Source
			err    error
		}{
			{source: rule.SourceFailure},
			{source: rule.SourceFailure, err: runtime.ErrUnavailable},
			{source: rule.SourceLocal},
			{source: rule.SourceStore},
		} {
			if o := outcomes[i]; o.Source != want.source || !errors.Is(o.Err, want.err) {
				t.Errorf("limit %d: %+v, want %+v", i, o, want)
			}
		}
		if class := runtime.ClassOf(outcomes[1].Err); class != observe.ClassTimeout {
			t.Errorf("class %v", class)
		}
		l.Check("orders").Admitted(1).Cost(0)
		l.Check("strict").Verdict(observe.VerdictUnavailable, 1)
	})
}

// A slow answer comes when its time is over, or not at all if the context ends before.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratetest.New(t)
		l.Next("orders", 2, ratetest.Slow(time.Minute))
		begin := time.Now()
		if _, err := take(t, l, orders.Limit(nil)); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		ctx, cancel := stdcontext.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Take(ctx, orders.Limit(nil)); !errors.Is(err, stdcontext.DeadlineExceeded) {
			t.Error(err)
		}
		if got := time.Since(begin); got != time.Minute+time.Second {
			t.Errorf("it took %v", got)
		}
		l.Check("orders").Admitted(1)
	})
}

// Answers that are not met fail the test at its end, unless it failed or was skipped
// before.
func TestUnmet(t *testing.T) {
	cases := []struct {
		name string
		do   func(t testing.TB, l *ratetest.Limiter)
		want []string
	}{
		{name: "never met", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Register(reports)
			l.Next("report", 3, ratetest.Refuse(time.Second))
			l.Always("order", ratetest.Unavailable())
		}, want: []string{
			`rule "order": Unavailable() was to answer all calls, and none came … ["reports"] … nothing has happened`,
			`rule "report": Refuse(1s) was to answer 3 calls, and 0 came`,
		}},
		{name: "met too rarely", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Next("orders", 3, ratetest.Refuse(runtime.Never))
			_, _ = take(t, l, orders.Limit(nil))
		}, want: []string{`Refuse(never) was to answer 3 calls, and 1 came … refused … retry after never`}},
		{name: "peeked at", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Next("orders", 1, ratetest.Refuse(time.Second))
			for range 3 {
				if d, err := l.Peek(context(t), orders.Limit(nil)); err != nil || d.RetryAfter != time.Second {
					t.Errorf("%+v, %v", d, err)
				}
			}
		}, want: []string{`was to answer 1 calls, and 0 came`}},
		{name: "met", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Always("orders", ratetest.Unavailable())
			l.Always("orders", ratetest.Refuse(time.Second))
			for range 3 {
				if _, err := take(t, l, orders.Limit(nil)); err == nil {
					t.Errorf("it was admitted")
				}
			}
		}},
		{name: "failed", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Next("orders", 1, ratetest.Refuse(time.Second))
			t.Errorf("something else")
		}, want: []string{"something else"}},
		{name: "skipped", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Next("orders", 1, ratetest.Refuse(time.Second))
			t.(*fake).skipped = true
		}},
		{name: "no calls", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Next("orders", 0, ratetest.Unavailable())
		}, want: []string{`Next("orders", 0, Unavailable()): at least one call`}},
		{name: "no answer", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Always("orders", ratetest.Answer{})
		}, want: []string{"an Answer is made by"}},
		{name: "no time", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Always("orders", ratetest.Refuse(0))
		}, want: []string{"Refuse(0s): the time must be above 0"}},
		{name: "a time below", do: func(t testing.TB, l *ratetest.Limiter) {
			l.Always("orders", ratetest.Slow(-1))
		}, want: []string{"Slow(-1ns): the time must be above 0"}},
	}
	for _, c := range cases {
		both(t, c.name, func(t *testing.T) {
			wantFailures(t, failuresOf(func(t testing.TB) { c.do(t, ratetest.New(t)) }), c.want...)
		})
	}
	wantFailures(t, failuresOf(func(t testing.TB) {
		ratetest.New(t).Next("orders", 1, ratetest.Slow(time.Second))
	}), "Slow(1s): no time passes outside of a bubble")
}
