package migrating

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/rategen/rategen/examples/migrating/compare"
	"github.com/rategen/rategen/examples/migrating/mails"
	"github.com/rategen/rategen/examples/migrating/orders"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// plain sends every mail, and answers every request.
type plain struct{}

func (plain) Send(context.Context, string) error { return nil }

func (plain) List(http.ResponseWriter, *http.Request) {}

// sends returns whether a mail was sent.
func sends(m mails.Mailer) func(string) bool {
	return func(to string) bool { return m.Send(context.Background(), to) == nil }
}

// answers returns whether a request was answered. Clients have different addresses.
func answers(t *testing.T, h http.Handler) func(string) bool {
	return func(client string) bool {
		r := httptest.NewRequest("GET", "/orders", nil)
		r.RemoteAddr = map[string]string{"ann": "192.0.2.1:99", "bob": "192.0.2.2:99"}[client]
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK && w.Code != http.StatusTooManyRequests {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		return w.Code == http.StatusOK
	}
}

// limiterOf returns a limiter that waits for longer than a busy machine takes: what Redis does not
// decide is admitted.
func limiterOf(t *testing.T, client *redis.Client) *runtime.Limiter {
	t.Helper()
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(time.Minute)))
	t.Cleanup(func() { limittest.OK(t, limiter.Close()) })
	return limiter
}

// The old limits and the new ones admit five calls of Ann, refuse the sixth, and admit Bob.
func TestBeforeAndAfter(t *testing.T) {
	client := redistest.Start(t).Client(t)
	shared := limiterOf(t, client)
	throttledStore, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		t.Fatal(err)
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(throttledStore, mails.Quota)
	if err != nil {
		t.Fatal(err)
	}
	ululeStore, err := ululeredis.NewStoreWithOptions(client, limiter.StoreOptions{Prefix: "ulule"})
	if err != nil {
		t.Fatal(err)
	}
	list := http.HandlerFunc(plain{}.List)
	for name, call := range map[string]func(string) bool{
		"redis_rate":               sends(mails.ByRedisRate{Next: plain{}, Limiter: redis_rate.NewLimiter(client)}),
		"throttled":                sends(mails.ByThrottled{Next: plain{}, Limiter: gcra}),
		"x/time/rate":              sends(&mails.ByTimeRate{Next: plain{}}),
		"a directive on mails":     sends(mails.NewRateLimitedMailer(plain{}, shared)),
		"ulule":                    answers(t, orders.ByUlule(ululeStore, plain{})),
		"a directive on orders":    answers(t, orders.ByDirective(plain{}, shared)),
		"httprate":                 answers(t, orders.ByHTTPRate(list)),
		"tollbooth":                answers(t, orders.ByTollbooth(list)),
		"orders without directive": answers(t, orders.WithoutDirective(list, shared)),
	} {
		for i := range 6 {
			if got, want := call("ann"), i < 5; got != want {
				t.Errorf("%s: call %d of Ann is admitted: %v, want %v", name, i+1, got, want)
			}
		}
		if !call("bob") {
			t.Errorf("%s: a call of Bob is refused", name)
		}
	}
}

// ulule/limiter counts refused calls, and redis_rate does not, as the page says. Nor does
// a directive.
func TestRefusedCallsCount(t *testing.T) {
	client := redistest.Start(t).Client(t)
	store, err := ululeredis.NewStoreWithOptions(client, limiter.StoreOptions{Prefix: "ulule"})
	if err != nil {
		t.Fatal(err)
	}
	before := answers(t, orders.ByUlule(store, plain{}))
	for range 9 {
		before("ann")
	}
	if n := client.Get(t.Context(), "ulule:192.0.2.1").Val(); n != "9" {
		t.Errorf("ulule/limiter has counted %s of 9 calls", n)
	}
	level := mails.ByRedisRate{Next: plain{}, Limiter: redis_rate.NewLimiter(client)}
	state := func() string { return client.Get(t.Context(), "rate:mail:ann").Val() }
	for range 5 {
		level.Send(t.Context(), "ann")
	}
	full := state()
	if level.Send(t.Context(), "ann") == nil || full == "" || state() != full {
		t.Errorf("redis_rate: a refused call has changed %q to %q", full, state())
	}
}

// Both limits see the same calls, the old one decides, and the counts tell where they
// differ.
func TestCompare(t *testing.T) {
	client := redistest.Start(t).Client(t)
	limiter := limiterOf(t, client)
	for most, want := range map[int][4]int64{
		5: {5, 15, 0, 0}, // the same limit
		3: {3, 15, 2, 0}, // the old one is stricter
		9: {5, 11, 0, 4}, // the new one is stricter
	} {
		old := &oldLimit{max: most}
		compared := &compare.Compared{
			Next:       compare.NewRateLimitedMailer(old, limiter),
			OldRefused: func(err error) bool { return errors.Is(err, errOld) },
		}
		sent := 0
		for range 20 {
			if compared.Send(t.Context(), "ann"+strconv.Itoa(most)) == nil {
				sent++
			}
		}
		c := &compared.Counts
		got := [4]int64{c.BothAdmit.Load(), c.BothRefuse.Load(), c.OnlyOldRefuses.Load(), c.OnlyNewRefuses.Load()}
		if got != want || sent != most {
			t.Errorf("an old max of %d: %v, want %v; %d sent", most, got, want, sent)
		}
	}
}

var errOld = errors.New("refused by the old limit")

// oldLimit admits its first calls.
type oldLimit struct{ max, calls int }

func (o *oldLimit) Send(context.Context, string) error {
	if o.calls++; o.calls > o.max {
		return errOld
	}
	return nil
}
