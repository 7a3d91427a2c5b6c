package raterecord_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/raterecord"
	"github.com/rategen/rategen/runtime/rule"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))

var secret = raterecord.WithSecret([]byte("a secret of the team"))

func newRecorder(tb testing.TB, w io.Writer, opts ...raterecord.Option) *raterecord.Recorder {
	tb.Helper()
	r, err := raterecord.To(w, append([]raterecord.Option{secret}, opts...)...)
	limittest.OK(tb, err)
	tb.Cleanup(func() {
		if err := r.Close(); err != nil && err != raterecord.ErrClosed {
			tb.Error(err)
		}
	})
	return r
}

var create = &runtime.Rule{Name: "orders.Create", Prefix: "orders:", Window: time.Minute, Max: 3}

// read returns the events of records, and what they name.
func read(t *testing.T, files ...io.ReaderAt) ([]record.Event, *record.Files) {
	t.Helper()
	f, err := record.Open(files...)
	limittest.OK(t, err)
	var events []record.Event
	if err := f.Events(func(ev *record.Event) error {
		one := *ev
		one.Limits = append([]record.Limit(nil), ev.Limits...)
		events = append(events, one)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return events, f
}

func take(t *testing.T, l *runtime.Limiter, r *runtime.Rule, key string, cost int64) runtime.Decision {
	t.Helper()
	d, err := l.Take(context.Background(), r.Limit(runtime.NewKey().AddString(key)).WithCost(cost))
	if err != nil && !errors.Is(err, runtime.ErrLimited) {
		t.Fatal(err)
	}
	return d
}

// What a limiter decides and settles stands in the record, with the rule, and without the key.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := newRecorder(t, &out, raterecord.WithLabel(func(ctx context.Context) string { return "gold" + strings.Repeat("!", 100) }))
		l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(r.Observer()), quiet)
		began := time.Now()
		d := take(t, l, create, "ann@example.com", 2)
		time.Sleep(10 * time.Second)
		limittest.OK(t, l.Settle(context.Background(), d, 1))
		take(t, l, create, "ann@example.com", 3)
		_ = l.Close()
		limittest.OK(t, r.Close())
		if err := r.Close(); err != raterecord.ErrClosed {
			t.Errorf("a second Close: %v", err)
		}
		if bytes.Contains(out.Bytes(), []byte("ann@")) {
			t.Error("the record has a caller's key")
		}
		events, f := read(t, bytes.NewReader(out.Bytes()))
		if len(events) != 3 {
			t.Fatalf("%d events: %+v", len(events), events)
		}
		made, settled, refused := events[0], events[1], events[2]
		if made.Time != began.UnixMicro() || made.Label[:5] != "gold!" || len(made.Label) != 64 || made.Limits[0].Cost != 2 ||
			made.Limits[0].Verdict != observe.VerdictAdmitted || made.Limits[0].Charged == 0 {
			t.Errorf("admitted: %+v", made)
		}
		if !settled.Settles || settled.Time-made.Time != 10e6 || settled.Limits[0].Settled != 1 || settled.Limits[0].Charged != made.Limits[0].Charged {
			t.Errorf("settled: %+v", settled)
		}
		if refused.Limits[0].Verdict != observe.VerdictRefused || refused.Limits[0].Caller != made.Limits[0].Caller {
			t.Errorf("refused: %+v", refused)
		}
		if got := f.Names.Rules[made.Limits[0].Rule].Rule; got.Name != create.Name || got.Window != time.Minute || got.Max != 3 || got.Prefix != "orders:" {
			t.Errorf("rule: %+v", got)
		}
	})
}

// Overrides, and calls with a max of their own, stand in the record as they were in force.
func TestRecordsWhatIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := newRecorder(t, &out)
		source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			return runtime.Overrides{Rules: map[string]rule.Override{create.Name: {Max: new(int64(1))}}}, nil
		})
		l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(r.Observer()), runtime.WithOverrides(source, 0), quiet)
		take(t, l, create, "ann", 1)
		own := *create
		own.Name, own.Prefix = "own", ""
		if _, err := l.Take(context.Background(), own.Limit(nil).WithMax(9)); err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		_ = r.Close()
		events, f := read(t, bytes.NewReader(out.Bytes()))
		if s := f.Names.Rules[events[0].Limits[0].Rule]; s.Rule.Max != 1 || s.Declared.Max != 3 || events[0].Limits[0].Max != 1 {
			t.Errorf("overridden: %+v, declared %+v", s.Rule, s.Declared)
		}
		if l := events[1].Limits[0]; l.Max != 9 || f.Names.Callers[l.Caller] != record.Everybody {
			t.Errorf("a max of its own: %+v", l)
		}
	})
}

// A share of the callers is recorded, each with all calls, and the same ones by each process.
func TestShare(t *testing.T) {
	callers := func() map[record.Caller]int {
		var out bytes.Buffer
		r := newRecorder(t, &out, raterecord.WithShare(0.25))
		l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(r.Observer()), quiet)
		for i := range 3 * 1000 {
			take(t, l, create, "caller"+strconv.Itoa(i%1000), 1)
		}
		_ = l.Close()
		limittest.OK(t, r.Close())
		events, f := read(t, bytes.NewReader(out.Bytes()))
		calls := map[record.Caller]int{}
		for _, ev := range events {
			calls[f.Names.Callers[ev.Limits[0].Caller]]++
		}
		return calls
	}
	first, second := callers(), callers()
	if len(first) < 200 || len(first) > 300 {
		t.Errorf("%d of 1000 callers are recorded, and a quarter should be", len(first))
	}
	for c, n := range first {
		if n != 3 || second[c] != 3 {
			t.Fatalf("a caller has %d calls in a record and %d in the other, and made 3", n, second[c])
		}
	}
}

// Without a secret two processes name callers differently.
func TestSecrets(t *testing.T) {
	name := func(opts ...raterecord.Option) (record.Caller, string) {
		var out bytes.Buffer
		r, err := raterecord.To(&out, opts...)
		limittest.OK(t, err)
		l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(r.Observer()), quiet)
		take(t, l, create, "ann", 1)
		_ = l.Close()
		_ = r.Close()
		events, f := read(t, bytes.NewReader(out.Bytes()))
		return f.Names.Callers[events[0].Limits[0].Caller], f.Recordings[0].Secret
	}
	a, idA := name(secret)
	b, idB := name(secret)
	c, idC := name()
	d, _ := name()
	if a != b || idA != idB || a == c || c == d || idA == idC {
		t.Errorf("names: %x %x with a secret, %x %x without", a, b, c, d)
	}
}

// Files are rotated, and what a directory holds is bounded, former records included.
func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "records")
	const bound = 1 << 20
	for range 3 {
		r, err := raterecord.Files(dir, secret, raterecord.WithMaxBytes(bound), raterecord.WithBuffer(1<<17))
		limittest.OK(t, err)
		l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(r.Observer()), quiet)
		for i := range 40_000 {
			take(t, l, create, "caller"+strconv.Itoa(i), 1)
		}
		_ = l.Close()
		if err := r.Close(); err != nil || r.Dropped() > 0 {
			t.Fatalf("%v, %d dropped", err, r.Dropped())
		}
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.ratelog"))
	sum := int64(0)
	var files []io.ReaderAt
	for _, name := range names {
		file, err := os.Open(name)
		limittest.OK(t, err)
		defer file.Close()
		info, _ := file.Stat()
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", name, info.Mode())
		}
		sum, files = sum+info.Size(), append(files, file)
	}
	if sum > bound || sum < bound/2 || len(names) < 6 {
		t.Errorf("%d files of %d bytes, within %d", len(names), sum, bound)
	}
	if events, f := read(t, files...); len(events) < 10_000 || f.Damage.Corrupt > 0 || f.Damage.Skipped > 0 {
		t.Errorf("%d events, %+v", len(events), f.Damage)
	}
}

// An event is written within a second, whoever still runs.
func TestWrittenWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(lockedBuffer)
		r := newRecorder(t, out)
		l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(r.Observer()), quiet)
		take(t, l, create, "ann", 1)
		time.Sleep(time.Second)
		synctest.Wait()
		if events, _ := read(t, bytes.NewReader(out.bytes())); len(events) != 1 {
			t.Errorf("%d events after a second", len(events))
		}
		_ = l.Close()
		_ = r.Close()
	})
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

// A stuck writer holds nobody up: what has no room is dropped, counted and said in the record.
func TestDropped(t *testing.T) {
	stuck := &stuckWriter{go_: make(chan struct{})}
	r := newRecorder(t, stuck, raterecord.WithBuffer(64))
	l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(r.Observer()), quiet)
	var each sync.WaitGroup
	for g := range 8 {
		each.Go(func() {
			for i := range 20_000 {
				take(t, l, create, strings.Repeat("k", 150)+strconv.Itoa(g*20_000+i), 1)
			}
		})
	}
	each.Wait()
	close(stuck.go_)
	_ = l.Close()
	limittest.OK(t, r.Close())
	events, f := read(t, bytes.NewReader(stuck.bytes()))
	if r.Dropped() == 0 || uint64(len(events))+r.Dropped() != 160_000 || f.Damage.Dropped != int64(r.Dropped()) {
		t.Errorf("%d recorded and %d dropped of 160000, the record says %d", len(events), r.Dropped(), f.Damage.Dropped)
	}
}

type stuckWriter struct {
	lockedBuffer
	go_ chan struct{}
}

func (s *stuckWriter) Write(p []byte) (int, error) {
	<-s.go_
	return s.lockedBuffer.Write(p)
}

// An error of writing is told by Close, and counted.
func TestWriteFails(t *testing.T) {
	broken := errors.New("the disk is full")
	r, err := raterecord.To(failing{broken}, secret)
	limittest.OK(t, err)
	l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(r.Observer()), quiet)
	take(t, l, create, "ann", 1)
	_ = l.Close()
	if err := r.Close(); !errors.Is(err, broken) || r.Dropped() != 1 {
		t.Errorf("%v, %d dropped", err, r.Dropped())
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

// Options that can have no effect are errors.
func TestOptions(t *testing.T) {
	for name, opt := range map[string]raterecord.Option{
		"secret": raterecord.WithSecret([]byte("short")), "no share": raterecord.WithShare(0), "more than all": raterecord.WithShare(1.5),
		"bytes": raterecord.WithMaxBytes(10), "buffer": raterecord.WithBuffer(0), "label": raterecord.WithLabel(nil), "clock": raterecord.WithClock(nil),
	} {
		if _, err := raterecord.To(io.Discard, opt); err == nil || !strings.HasPrefix(err.Error(), "raterecord: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	limittest.OK(t, os.WriteFile(file, nil, 0o600))
	if _, err := raterecord.Files(file); err == nil {
		t.Error("a file is no directory")
	}
}

// What a call leaves allocates nothing.
func TestAllocates(t *testing.T) {
	r := newRecorder(t, io.Discard)
	l := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(r.Observer()), quiet)
	defer l.Close()
	rule := &runtime.Rule{Name: "much", Window: time.Hour, Max: 1e9, Algorithm: runtime.TokenBucket}
	limit := rule.Limit(runtime.NewKey().AddString("ann"))
	ctx := context.Background()
	if n := testing.AllocsPerRun(2000, func() { _, _ = l.Take(ctx, limit) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
