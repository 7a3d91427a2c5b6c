package pagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/ratepage"
	"github.com/rategen/rategen/runtime/rule"
)

// hostile is what a caller sends who would like to run something in the page.
const hostile = `<img src=x onerror="document.title='owned'">`

// The rules of the program, and those that the test works with.
var (
	create = &runtime.Rule{Name: "orders.Service.Create", Source: "orders.go: Service.Create", Max: 5, Window: time.Hour}
	get    = &runtime.Rule{Name: "orders.Service.Get", Source: "orders.go: Service.Get", Max: 300, Window: time.Minute, Algorithm: runtime.SlidingCounter}
	login  = &runtime.Rule{Name: "accounts.Auth.Login", Source: "auth.go: Auth.Login", Max: 5, Window: 10 * time.Minute, Block: time.Hour, Fail: runtime.FailClosed}
	search = &runtime.Rule{Name: "catalog.Catalog.Search", Source: "catalog.go: Catalog.Search", Max: 40, Window: time.Second, Algorithm: runtime.TokenBucket, Burst: 80, Adaptive: half{}}
	export = &runtime.Rule{Name: "reports.Reports.Export", Source: "reports.go: Reports.Export", Window: time.Hour}
	upload = &runtime.Rule{Name: "media.Media.Upload", Source: "media.go: Media.Upload", Max: 20, Window: 30 * time.Second, Algorithm: runtime.Concurrency}
	trial  = &runtime.Rule{Name: "orders.Service.List", Source: "orders.go: Service.List", Max: 8, Window: 10 * time.Second, Mode: runtime.ModeShadow}
	mail   = &runtime.Rule{Name: "mail.Sender.Send", Source: "send.go: Sender.Send", Max: 1200, Window: 24 * time.Hour, Algorithm: runtime.FixedWindow}

	rules = []*runtime.Rule{create, get, login, search, export, upload, trial, mail}
)

type half struct{}

func (half) Factor(rule.Load) float64 { return 0.5 }

// A program has limits, a page under a prefix, and callers.
type program struct {
	limiter *runtime.Limiter
	page    *ratepage.Page
	url     string // of the page
	client  *redis.Client
	redis   *redistest.Server
	server  *httptest.Server

	mu      sync.Mutex
	refused []ratepage.Action // by authorize
	locked  bool              // authorize refuses
}

func start(t *testing.T, more ...ratepage.Option) *program {
	p := new(program)
	p.redis = redistest.Start(t, "--maxmemory", "64mb")
	p.client = p.redis.Client(t)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	editor := override.NewEditor(p.client, "limits", rules...)
	p.page = ratepage.New(append(more, ratepage.WithPlainKeys(), ratepage.WithLogger(quiet), ratepage.WithActions(p.authorize, editor))...)
	store := runtime.NewRedisStore(p.client, runtime.WithTimeout(5*time.Second), runtime.WithMemoryWatch(0, time.Second))
	t.Cleanup(func() { _ = store.Close() })
	p.limiter = runtime.New(store, runtime.WithLogger(quiet), runtime.WithObserver(p.page.Observer()),
		runtime.WithOverrides(override.Redis(p.client, "limits"), 100*time.Millisecond))
	t.Cleanup(func() { _ = p.limiter.Close() })
	p.limiter.Register(rules...)
	mux := http.NewServeMux()
	mux.Handle("/ops/limits/", http.StripPrefix("/ops/limits", p.page))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(p.page.Close)
	p.url, p.server = server.URL+"/ops/limits", server
	return p
}

func (p *program) authorize(_ *http.Request, a ratepage.Action) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.locked {
		p.refused = append(p.refused, a)
		return "", errors.New("you may look, and not touch")
	}
	return "ada", nil
}

func (p *program) lock(locked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.locked = locked
}

// call has callers make calls until the test ends.
func (p *program) call(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	take := func(r *runtime.Rule, parts ...string) {
		key := runtime.NewKey()
		for _, part := range parts {
			key.AddString(part)
		}
		limit := r.Limit(key)
		if r == export {
			limit = limit.WithMax(100)
		}
		d, err := p.limiter.Take(ctx, limit)
		if err == nil && r == upload {
			_ = p.limiter.Refund(ctx, d)
		}
	}
	all.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			take(get, fmt.Sprint(1000+rand.IntN(40)))
			take(search, fmt.Sprintf("203.0.113.%d", rand.IntN(9)))
			take(mail, "newsletter")
			take(trial, "shop-7")
			if i%3 == 0 {
				take(login, fmt.Sprintf("198.51.100.%d", 7+rand.IntN(3)))
				take(export, "acme")
				take(upload, "acme")
				take(create, "globex", "robot")
			}
			if i%9 == 0 {
				take(create, "initech", "batch")
			}
			if i < 7 {
				take(create, hostile)
			}
		}
	})
}
