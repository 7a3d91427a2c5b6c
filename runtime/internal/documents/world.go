package documents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/wrapper"
)

// RunPrograms plays documents of limiters, on a store in memory and on a Redis that goes by the
// clock of the bubble, if there is one. No other test may use a Redis meanwhile.
func RunPrograms(t *testing.T, files string, server *redisclock.Server) {
	var number atomic.Int64
	for _, s := range document.Read(t, files) {
		t.Run(s.Name, func(t *testing.T) {
			for _, variant := range s.Variants() {
				for _, kind := range []string{"memory", "redis"} {
					if only, is := s.Arg("only"); is && !slices.Contains(only, kind) || kind == "redis" && server == nil {
						continue
					}
					redis.ForgetWaiters()
					synctest.Test(t, func(t *testing.T) {
						space := fmt.Sprint("d", number.Add(1))
						playProgram(t, s, variant, kind, space, server)
					})
				}
			}
		})
	}
}

// begin is when programs begin: the server itself is never there, and expires nothing.
var begin = time.Date(2126, time.January, 1, 0, 0, 0, 0, time.UTC)

func playProgram(t *testing.T, s *document.Scenario, variant []string, kind, space string, server *redisclock.Server) {
	from := begin
	if text, is := s.Arg("begins"); is {
		at, err := time.Parse(time.RFC3339Nano, text[0])
		if err != nil {
			t.Fatal(err)
		}
		from = at
	}
	time.Sleep(time.Until(from))
	p := newProgram(t, s, variant, space)
	switch kind {
	case "memory":
		p.store.store = runtime.NewMemoryStore()
		if slices.ContainsFunc(s.Lines, func(l *document.Line) bool { return strings.HasPrefix(l.Step, "store ") || l.Step == "trips" }) { // else the limiter's quickest way
			p.store.Through = Through{rawstore.Wrap(p.store.store).Store, p.store.through}
			p.store.store = rawstore.New(p.store, nil)
			if _, is := s.Arg("leases"); is {
				p.store.store = rawstore.Shared(p.store, nil)
			}
		}
	case "redis":
		memory := time.Duration(0) // of refusals
		if words, is := s.Arg("memory"); is {
			memory = p.duration(words[0])
		}
		p.apart = func() runtime.Store {
			s := wrapper.NewRedisStore(&redisclock.Client{Server: server, Trip: p.store.through}, runtime.WithTimeout(time.Second), runtime.WithRefusalMemory(memory))
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		p.store.store = p.apart()
	}
	defer func() {
		for _, l := range p.limiters {
			_ = l.Close()
		}
	}()
	p.play(s, variant, kind)
}

func newProgram(t *testing.T, s *document.Scenario, variant []string, space string) *program {
	p := &program{player: player{t}, store: &faulty{}, limiters: map[string]*process{}, rules: map[string]*runtime.Rule{},
		calls: map[string]*call{}, meters: map[string]*runtime.Meter{}, options: []string{"namespace=" + space}}
	p.load.Store(math.Float64bits(1))
	replace := strings.NewReplacer(variant...)
	p.overrides = slices.ContainsFunc(s.Lines, func(l *document.Line) bool {
		return strings.Contains(replace.Replace(l.Step), "override ") || strings.Contains(l.Step, "source")
	})
	return p
}

func (p *program) play(s *document.Scenario, variant []string, kind string) {
	world, replace := document.World{kind}, strings.NewReplacer(variant...)
	for i := 0; i < len(variant); i += 2 {
		world = append(world, document.ValueName(variant[i], variant[i+1]))
	}
	for _, l := range s.Lines {
		if l.Step != "" {
			l.Answer(p.T, world, p.step(replace.Replace(l.Step)))
		}
	}
}

// Own is how the programs of another package are played: it makes their limiters, and has steps of its own. They may
// be played outside of a bubble.
type Own struct {
	Open    func(...runtime.Option) *runtime.Limiter
	Do      func(verb string, words []string) (answer string, is bool)
	Outside bool
}

// Play plays a scenario of another package, in a world.
func (own *Own) Play(t *testing.T, s *document.Scenario, variant []string, world string) {
	p := newProgram(t, s, variant, "space")
	p.own = own
	p.play(s, variant, world)
}

// open makes a limiter on the store.
func (p *program) open(name string, words []string) *process {
	l := new(process)
	l.on.Store(true)
	store, every := p.store.store, poll
	options := []runtime.Option{l.log.Logger(), runtime.WithEnabled(l.enabled), runtime.WithObserver(l.heard.Observer()), runtime.WithObserver(nil), runtime.WithObserver(l.other.Observer())}
	if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "reports") }) {
		options = append(options, runtime.WithoutReports())
	}
	for _, word := range append(slices.Clone(p.options), words...) {
		field, value, _ := strings.Cut(word, "=")
		var r runtime.Rule
		switch field {
		case "namespace":
			options = append(options, runtime.WithNamespace(strings.ReplaceAll(value, "_", " ")))
		case "fail":
			if _, err := document.Set(&r, "fail", value); err != nil {
				p.Fatal(err)
			}
			options = append(options, runtime.WithFailurePolicy(r.Fail))
		case "replicas":
			options = append(options, runtime.WithReplicas(int(p.number(value))))
		case "cap":
			options = append(options, runtime.WithProcessCap(p.rules[value]))
		case "reports":
			kept, secret, hides := strings.Cut(value, ":")
			if hides {
				options = append(options, runtime.WithRefusals(p.duration(kept), []byte(secret)))
			} else if kept != "" {
				options = append(options, runtime.WithRefusals(p.duration(kept), nil))
			}
		case "form":
			options = append(options, runtime.WithRefusalError(forms[value]))
		case "source":
			l.board.turn(value)
		case "poll":
			every = p.duration(value)
		case "none":
			store = nil
		case "off":
			l.on.Store(false)
		case "own":
			store = runtime.NewMemoryStore()
		case "apart":
			if p.apart != nil {
				store = p.apart()
			}
		case "panics":
			l.heard.panics = true
		default:
			p.Fatalf("no limiter has an option %s", field)
		}
	}
	if p.overrides {
		options = append(options, runtime.WithOverrides(&l.board, every))
	}
	if p.own != nil {
		l.Limiter = p.own.Open(options...)
	} else {
		l.Limiter = runtime.New(store, options...)
	}
	l.every = every
	p.limiters[name] = l
	p.wait()
	return l
}

// forms are what refusals may be made into.
var forms = map[string]func(context.Context, error) error{
	"own": func(ctx context.Context, err error) error {
		return fmt.Errorf("own form of %s%s", Words(err), lost(ctx))
	},
	"nil":   func(context.Context, error) error { return nil },
	"panic": func(context.Context, error) error { panic("form") },
}

// lost tells that a context is not that of a step.
func lost(ctx context.Context) string {
	if ctx.Value(ofStep{}) == nil {
		return " IN ANOTHER CONTEXT"
	}
	return ""
}

// A faulty store is one that fails when a program says so.
type faulty struct {
	Through
	store      runtime.Store // as limiters have it
	fails      atomic.Bool
	panics     atomic.Bool
	hangs      atomic.Bool  // whatever contexts say
	late, back atomic.Int64 // until it decides, and answers
	trips      atomic.Int64 // since the last look
	renewals   atomic.Bool  // are lost
	answers    atomic.Bool  // are lost
}

var errFault = errors.New("a fault of the store")

func (f *faulty) begin(p *program, words []string) {
	switch words[0] {
	case "fails":
		f.fails.Store(true)
	case "panics":
		f.panics.Store(true)
	case "hangs":
		f.hangs.Store(true)
	case "answers":
		f.fails.Store(false)
		f.panics.Store(false)
		f.hangs.Store(false)
		f.renewals.Store(false)
		f.answers.Store(false)
		f.late.Store(0)
		f.back.Store(0)
	case "is":
		if len(words) > 3 {
			f.back.Store(int64(p.duration(words[2])))
		} else {
			f.late.Store(int64(p.duration(words[2])))
		}
	case "loses":
		f.renewals.Store(words[1] == "renewals")
		f.answers.Store(words[1] == "answers")
	default:
		p.Fatalf("no store %s", words[0])
	}
}

// through does something with the store, as far as faults let it.
func (f *faulty) through(ctx context.Context, do func() error) error {
	if f.fails.Load() {
		return errFault
	}
	f.trips.Add(1)
	if f.panics.Load() {
		panic("store")
	}
	for f.hangs.Load() {
		time.Sleep(time.Millisecond)
	}
	if err := sleep(ctx, time.Duration(f.late.Load())); err != nil {
		return err
	}
	err := cmp.Or(do(), sleep(ctx, time.Duration(f.back.Load())))
	if f.answers.Load() {
		return errFault
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Renew may be lost.
func (f *faulty) Renew(ctx context.Context, calls []terms.Call) error {
	if f.renewals.Load() {
		return errFault
	}
	return f.Through.Renew(ctx, calls)
}
