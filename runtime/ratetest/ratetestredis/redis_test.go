package ratetestredis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratetest"
	"github.com/rategen/rategen/runtime/ratetest/ratetestredis"
)

func TestMain(m *testing.M) {
	leaks.Main(ended{m})
}

// An ended run has run the cleanups of the example.
type ended struct{ *testing.M }

func (e ended) Run() int {
	defer t.end()
	return e.M.Run()
}

var quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))

// limiterOn returns a limiter on a Redis.
func limiterOn(t *testing.T, r *ratetestredis.Redis) *runtime.Limiter {
	l := runtime.New(r.Store(), quiet)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Every algorithm decides as the limiter of package ratetest does, in all fields, and
// its keys expire with the same clock.
func TestDecidesAsRatetest(t *testing.T) {
	for algorithm := range runtime.Concurrency {
		t.Run(algorithm.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(algorithm), 2))
			rule := &runtime.Rule{Name: "r", Algorithm: algorithm, Window: 10 * time.Second, Max: 5}
			r, want := ratetestredis.New(t), ratetest.New(t, quiet)
			got := limiterOn(t, r)
			if !r.Now().Equal(want.Now()) {
				t.Fatalf("the clocks begin at %v and %v", r.Now(), want.Now())
			}
			for i := range effort.ChooseMore(50, 150) {
				by := time.Duration(random.Int64N(int64(3 * time.Second))).Round(time.Microsecond)
				r.Advance(by)
				want.Advance(by)
				limit := rule.Limit(runtime.NewKey().AddInt(random.Int64N(2))).WithCost(1 + random.Int64N(2))
				g, gotErr := got.Take(t.Context(), limit)
				w, wantErr := want.Take(t.Context(), limit)
				diff := cmp.Diff(w, g, cmpopts.IgnoreUnexported(w), cmpopts.IgnoreFields(w, "Source"))
				if diff != "" || errors.Is(gotErr, runtime.ErrLimited) != errors.Is(wantErr, runtime.ErrLimited) {
					t.Fatalf("call %d (-memory %v +redis %v):\n%s", i, wantErr, gotErr, diff)
				}
			}
			if len(r.Keys()) == 0 {
				t.Error("no keys")
			}
			r.Advance(time.Minute)
			if keys := r.Keys(); len(keys) != 0 {
				t.Errorf("keys have not expired: %q", keys)
			}
		})
	}
}

// A permit lapses when Advance moves on by a window, and not before.
func TestPermitsLapse(t *testing.T) {
	r := ratetestredis.New(t)
	l := limiterOn(t, r)
	permit := &runtime.Rule{Name: "permit", Window: time.Hour, Max: 1, Algorithm: runtime.Concurrency}
	for _, step := range []struct {
		advance time.Duration
		want    error
	}{{0, nil}, {time.Hour - time.Microsecond, runtime.ErrLimited}, {time.Microsecond, nil}} {
		r.Advance(step.advance)
		if _, err := l.Take(t.Context(), permit.Limit(nil)); !errors.Is(err, step.want) {
			t.Errorf("after %v: %v", step.advance, err)
		}
	}
}

// A client of one's own finds the server at its address, and time there stands still
// without Advance.
func TestOwnClient(t *testing.T) {
	r := ratetestredis.New(t)
	client := redis.NewClient(&redis.Options{Addr: r.Addr()})
	defer func() { _ = client.Close() }()
	for range 2 {
		if now, err := client.Time(t.Context()).Result(); err != nil || !now.Equal(r.Now()) {
			t.Errorf("%v, %v, want %v", now, err, r.Now())
		}
		r.Advance(time.Hour + time.Microsecond)
	}
}

func TestMisuse(t *testing.T) {
	misused := func(t *testing.T, want string, do func(t testing.TB)) {
		t.Helper()
		f := &fatal{TB: t}
		func() {
			defer func() { _ = recover() }()
			do(f)
		}()
		if f.text != want {
			t.Errorf("%q, want %q", f.text, want)
		}
	}
	misused(t, "ratetestredis: Advance(-1s): a clock does not go back", func(t testing.TB) {
		ratetestredis.New(t).Advance(-time.Second)
	})
	misused(t, "ratetestredis: Advance(2562047h47m16.854775807s): a clock moves by at most 100 years in all, and this one has moved by 1h0m0s", func(t testing.TB) {
		r := ratetestredis.New(t)
		r.Advance(time.Hour)
		r.Advance(math.MaxInt64)
	})
	synctest.Test(t, func(t *testing.T) {
		misused(t, "ratetestredis: a bubble of testing/synctest cannot wait for the network: use ratetest.New, or leave the bubble",
			func(t testing.TB) { ratetestredis.New(t) })
	})
}

// A fatal test keeps the text with which it ends.
type fatal struct {
	testing.TB
	text string
}

func (f *fatal) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	panic(f.text)
}

// A test moves the time of its Redis, and looks at its keys.
func Example() {
	redis := ratetestredis.New(t)
	limiter := runtime.New(redis.Store(), quiet)
	perUser := &runtime.Rule{Name: "search", Prefix: "search:", Window: time.Minute, Max: 1}
	search := func() {
		_, err := limiter.Take(context.Background(), perUser.Limit(runtime.NewKey().AddString("ann")))
		fmt.Println(err, redis.Keys())
	}
	search()
	search()
	redis.Advance(2 * time.Minute)
	fmt.Println(redis.Keys())
	search()
	// Output:
	// <nil> [search:ann]
	// rate limit exceeded [search:ann]
	// []
	// <nil> [search:ann]
}

// t stands for the *testing.T of a test.
var t = new(ending)

// An ending test has cleanups.
type ending struct {
	testing.TB
	cleanups []func()
}

func (*ending) Helper()            {}
func (e *ending) Cleanup(c func()) { e.cleanups = append(e.cleanups, c) }

func (e *ending) end() {
	for _, c := range slices.Backward(e.cleanups) {
		c()
	}
}
