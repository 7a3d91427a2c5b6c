package credits

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A question has callers print one page after the other until there are no credits, or
// Calls each.
type question struct {
	Account string
	Batch   int
	Callers int
	Calls   int  // 0: until nobody buys any more
	Fail    bool // of the printer itself
}

type answer struct {
	Printed, Refused int
	Strange          string
}

// A printer prints, or fails.
type printer struct{ fails *bool }

func (p printer) Print(context.Context, Account, int) error {
	if *p.fails {
		return errors.New("no paper")
	}
	return nil
}

// The database is in Redis here: what was bought of each account, and whether more will be.
const bought, buying = "db:bought", "db:buying"

func serve(client *redis.Client) (func(question) answer, *runtime.Limiter) {
	limiter := replica.Limiter(client)
	fails := false
	service := NewRateLimitedPrinter(printer{&fails}, limiter)
	return func(q question) (a answer) {
		fails = q.Fail
		var all sync.WaitGroup
		var mu sync.Mutex
		for range q.Callers {
			all.Go(func() {
				for n := 0; q.Calls == 0 || n < q.Calls; n++ {
					ctx := context.Background()
					last := client.Exists(ctx, buying).Val() == 0
					credits, err := client.HGet(ctx, bought, q.Account).Int64()
					if err == nil {
						err = service.Print(ctx, Account{q.Account, q.Batch, credits}, 1)
					}
					refused := errors.Is(err, runtime.ErrLimited)
					mu.Lock()
					if err == nil {
						a.Printed++
					} else if refused {
						a.Refused++
					} else if !q.Fail {
						a.Strange = err.Error()
					}
					mu.Unlock()
					if q.Calls == 0 && (refused && last || err != nil && !refused) {
						return
					}
				}
			})
		}
		all.Wait()
		for q.Fail && left(limiter, q) == 0 { // refunds take a millisecond
			time.Sleep(time.Millisecond)
		}
		return a
	}, limiter
}

// left returns how many credits are left of one.
func left(limiter *runtime.Limiter, q question) int64 {
	key := runtime.NewKey().AddString(q.Account).AddInt(int64(q.Batch))
	d, _ := limiter.Peek(context.Background(), printerPrintLimit.Limit(key).WithMax(1))
	return d.Remaining
}

func TestMain(m *testing.M) { replica.Main(m, serve) }

// A customer pays many times while calls of all replicas use its credits. What is printed is
// what was paid for, to the page.
func TestCredits(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	ctx := t.Context()
	replicas := replica.Start[question, answer](t, server.Addr, 2)
	client.Set(ctx, buying, "", 0)
	paid := int64(10)
	client.HSet(ctx, bought, "ann", paid)
	for _, r := range replicas {
		r.Send(question{Account: "ann", Callers: 8})
	}
	var payments sync.WaitGroup
	for range 4 { // at the same time: the database adds
		paid += 25 * 7
		payments.Go(func() {
			for range 25 {
				client.HIncrBy(ctx, bought, "ann", 7)
			}
		})
	}
	payments.Wait()
	client.Del(ctx, buying)
	printed := 0
	for _, r := range replicas {
		a := r.Receive()
		printed += a.Printed
		if a.Strange != "" {
			t.Error(a.Strange)
		}
	}
	if int64(printed) != paid {
		t.Errorf("%d pages printed, and %d paid for", printed, paid)
	}
	// A payment holds at once, also where calls were just refused, and only for its account.
	client.HIncrBy(ctx, bought, "ann", 2)
	client.HSet(ctx, bought, "bob", 1)
	for i, want := range []answer{{Printed: 1}, {Printed: 1}, {Refused: 1}} {
		if got := replicas[i%2].Ask(question{Account: "ann", Callers: 1, Calls: 1}); got != want {
			t.Errorf("call %d after a payment: %+v, want %+v", i, got, want)
		}
	}
	// A page that is not printed costs nothing, and a new batch begins anew.
	replicas[0].Ask(question{Account: "bob", Callers: 1, Calls: 3, Fail: true})
	if got := replicas[1].Ask(question{Account: "bob", Callers: 1, Calls: 2}); got != (answer{Printed: 1, Refused: 1}) {
		t.Errorf("%+v after failures, want one page", got)
	}
	client.HSet(ctx, bought, "bob", 3)
	if got := replicas[0].Ask(question{Account: "bob", Batch: 1, Callers: 1, Calls: 5}); got != (answer{Printed: 3, Refused: 2}) {
		t.Errorf("%+v of a new batch, want 3 pages", got)
	}
}
