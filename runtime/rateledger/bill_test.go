package rateledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// total returns the sum of all that the ledger of a process has.
func (p *process) total(t *testing.T) (sum int64) {
	t.Helper()
	ok(t, p.ledger.sink.(*Postgres).pool.QueryRow(t.Context(), "SELECT coalesce(sum(total), 0)::bigint FROM ledger").Scan(&sum))
	return sum
}

// TestOneBill has two rules of different names count in one key: a limiter that registers both panics,
// and where they are of two, the key is billed once, and a finding names them.
func TestOneBill(t *testing.T) {
	sink := newSink(t)
	first, second := *rules()[0], *rules()[0]
	first.Prefix, second.Prefix, second.Name = "shared:", "shared:", "other"
	p := begin(t, redistest.Start(t).Client(t), sink, []*runtime.Rule{&first})
	func() {
		defer func() {
			if text := fmt.Sprint(recover()); !strings.Contains(text, "a ledger would bill each key to both") {
				t.Errorf("two rules of one prefix are registered: %s", text)
			}
		}()
		p.limiter.Register(&second)
	}()
	other := runtime.New(p.store, runtime.WithNamespace("test"))
	defer other.Close()
	for range 3 {
		_, err := p.limiter.Take(t.Context(), first.Limit(runtime.NewKey().AddString("k")).WithCost(10))
		ok(t, err)
		_, err = other.Take(t.Context(), second.Limit(runtime.NewKey().AddString("k")))
		ok(t, err)
		ok(t, p.ledger.Flush(t.Context()))
		ok(t, p.ledger.scan(t.Context()))
	}
	if sum := p.total(t); sum != 33 {
		t.Errorf("%d billed, want 33", sum)
	}
	if !slices.ContainsFunc(other.Findings(), func(f observe.Finding) bool { return f.Code == "ledger_shared" && f.Rule == "other" }) {
		t.Errorf("no finding says that a key is of two rules: %v", other.Findings())
	}
}

// TestOneBillOfPrograms has programs call rules of one prefix by different names: the keys are billed to
// the first that writes, whoever charges them, and the other is told.
func TestOneBillOfPrograms(t *testing.T) {
	sink := newSink(t)
	server := redistest.Start(t)
	first, second, own := *rules()[0], *rules()[0], *rules()[0]
	first.Prefix, second.Prefix, own.Prefix = "shared:", "shared:", "own:"
	second.Name, own.Name = "other", "own"
	p := begin(t, server.Client(t), sink, []*runtime.Rule{&first})
	charge := func(p *process, r *runtime.Rule, cost int64) {
		t.Helper()
		_, err := p.limiter.Take(t.Context(), r.Limit(runtime.NewKey().AddString("k")).WithCost(cost))
		ok(t, err)
	}
	charge(p, &first, 10)
	ok(t, p.ledger.scan(t.Context()))
	other := begin(t, server.Client(t), sink, []*runtime.Rule{&second, &own}) // whose scan at the start would be first
	charge(other, &second, 1)
	charge(other, &own, 100)
	for range 2 {
		if err := other.ledger.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), `keys of rule "other" are also those of rule "plain"`) {
			t.Errorf("%v, want an error that names both rules", err)
		}
	}
	ok(t, p.ledger.scan(t.Context()))
	if sum := p.total(t); sum != 111 {
		t.Errorf("%d billed, want 111", sum)
	}
	if !slices.ContainsFunc(other.limiter.Findings(), func(f observe.Finding) bool { return f.Code == "ledger_shared" && f.Rule == "other" }) {
		t.Errorf("no finding says that a key is of two programs: %v", other.limiter.Findings())
	}
	ok(t, p.end())
	if err := other.end(); err == nil {
		t.Error("the other program's ledger ends without an error")
	}
}

// TestLongKeys wants an error of each call whose key Redis would have as a hash, unless that is what
// is to be billed.
func TestLongKeys(t *testing.T) {
	sink := newSink(t)
	plain, hashes, shadow, admits := *rules()[0], *rules()[0], *rules()[0], *rules()[0]
	hashes.Name, shadow.Name, admits.Name = "hashes", "shadow", "admits"
	hashes.Ledger, shadow.Mode, admits.Invalid = rule.LedgerHash, runtime.ModeShadow, rule.InvalidAdmit
	p := begin(t, redistest.Start(t).Client(t), sink, []*runtime.Rule{&plain, &hashes, &shadow, &admits})
	for n := terms.MaxKey - 20; n < terms.MaxKey+20; n++ {
		key := runtime.NewKey().AddString(strings.Repeat("k", n))
		for _, r := range []*runtime.Rule{&plain, &hashes, &shadow, &admits} {
			_, err := p.limiter.Take(t.Context(), r.Limit(key))
			wrong := r == &plain && strings.Contains(bridge.LimiterOf(p.limiter).RedisKey(r.Limit(key)), "%sha256-")
			if wrong != errors.Is(err, runtime.ErrInvalidKey) || err != nil && !strings.Contains(err.Error(), "a ledger cannot bill") {
				t.Errorf("%s, %d bytes: %v", r.Name, n, err)
			}
		}
		ok(t, p.ledger.Flush(t.Context()))
		if used := p.billed(t, &hashes, key.String()); used != 1 {
			t.Errorf("%d bytes by hash: %d, want one", n, used)
		}
	}
}

var errKilled = errors.New("killed")

// A failing store or sink fails as often as is left.
type failing struct {
	terms.Store
	Sink
	left int
}

func (f *failing) fails() error {
	if f.left == 0 {
		return nil
	}
	f.left--
	return errKilled
}

func (f *failing) Peek(ctx context.Context, calls []terms.Call) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Store.Peek(ctx, calls)
}

func (f *failing) Write(ctx context.Context, rows []Row) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Sink.Write(ctx, rows)
}

// TestRetry wants keys whose counts could not be read or written to be told again, by the next Flush
// alone, as many as there are.
func TestRetry(t *testing.T) {
	for _, of := range []string{"store", "sink"} {
		for _, keys := range []int{1, 3 * writeRows / 2} {
			sink := newSink(t)
			client := redistest.Start(t).Client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
			p := &process{store: runtime.NewRedisStore(client, runtime.WithTimeout(time.Minute))}
			p.limiter, p.ledger = runtime.New(p.store), New(sink, p.store)
			accounts := p.ledger.accounts
			defer accounts.Open(time.Hour)()
			fails := &failing{Store: accounts.Store, Sink: sink, left: 2}
			if of == "store" {
				accounts.Store = fails
			} else {
				p.ledger.sink = fails
			}
			began := time.Now()
			r := rules()[0]
			limits := make([]runtime.Limit, keys)
			for i := range limits {
				limits[i] = r.Limit(runtime.NewKey().AddInt(int64(i)))
			}
			for _, o := range p.limiter.TakeEach(t.Context(), limits...) {
				ok(t, o.Err)
			}
			for fails.left > 0 {
				if err := p.ledger.Flush(t.Context()); !errors.Is(err, errKilled) {
					t.Fatalf("%s: %v, want %v", of, err, errKilled)
				}
			}
			if lag := p.ledger.Lag(); lag < time.Since(began) {
				t.Errorf("%s: %v behind, though nothing was written since %v", of, lag, began)
			}
			began = time.Now()
			ok(t, p.ledger.Flush(t.Context()))
			p.ledger.sink = sink
			if lag := p.ledger.Lag(); lag > time.Since(began) {
				t.Errorf("%s: %v behind, though all was written after %v", of, lag, began)
			}
			if sum := p.total(t); sum != int64(keys) {
				t.Errorf("%s: %d of %d written", of, sum, keys)
			}
			ok(t, errors.Join(p.limiter.Close(), p.store.Close()))
		}
	}
}
