package ratepage

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	engine "github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rawstore"
)

// A flaky store is away at times.
type flaky struct {
	engine.Store
	away atomic.Bool
}

func (f *flaky) Take(c ctx, calls []engine.Call) error {
	if f.away.Load() {
		return io.ErrUnexpectedEOF
	}
	return f.Store.Take(c, calls)
}

// TestUndecided has a store fail for a while, and wants the page to say while it does, and ten
// seconds on, which share of the calls that were, and what has become of them by which policy.
func TestUndecided(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page, store := New(), &flaky{Store: rawstore.Wrap(runtime.NewMemoryStore()).Store}
		limiter := runtime.New(rawstore.New(store, nil), runtime.WithLogger(quiet), runtime.WithObserver(page.Observer()))
		defer limiter.Close()
		take := func(n int, name string, fail runtime.FailurePolicy) {
			rule := &runtime.Rule{Name: name, Max: 1000, Window: time.Hour, Fail: fail}
			for range n {
				_, _ = limiter.Take(t.Context(), rule.Limit(nil))
			}
		}
		v := follow(t, page)
		says := func(what, want string) {
			t.Helper()
			v.until(what+" "+want, func(f frame) bool { return strings.Contains(string(f.Undecided), want) })
		}
		says("before any call", `{"share":null,"kinds":[]}`)
		time.Sleep(time.Second / 2)
		take(5, "open", runtime.FailOpen)
		says("while all is well", `{"share":0,"kinds":[]}`)
		store.away.Store(true)
		time.Sleep(time.Second / 2)
		take(2, "open", runtime.FailOpen)
		take(1, "default", runtime.FailDefault)
		take(1, "closed", runtime.FailClosed)
		take(1, "local", runtime.FailLocal)
		says("while the store is away", `{"share":0.5,"kinds":[{"class":"connection","policy":"open","count":3},{"class":"connection","policy":"closed","count":1},{"class":"connection","policy":"local","count":1}]}`)
		store.away.Store(false)
		began := time.Now()
		says("later", `{"share":null,"kinds":[]}`)
		if passed := time.Since(began); passed < 9*time.Second || passed > 11*time.Second {
			t.Errorf("it is told for another %v", passed)
		}
	})
}

// A halfEditor knows the history of a hash that no limiter understands.
type halfEditor struct{ notebook }

func (halfEditor) List(ctx) ([]override.Entry, error) { return nil, errors.New("max is text") }

// TestBrokenOverrides wants the history to be shown beside what is wrong with the overrides, which
// it may have the cause of.
func TestBrokenOverrides(t *testing.T) {
	t.Parallel()
	editor := &halfEditor{notebook{records: []override.Record{{ID: 3, Who: "ada"}}}}
	page := New(WithLogger(quiet))
	page.actions = &actions{page: page, editor: editor}
	v := decoded[overridesView](t, ask(page, "GET", "/api/overrides", ""))
	if v.Error != "max is text" || len(v.History) != 1 || v.History[0].Who != "ada" || len(v.Entries) != 0 {
		t.Errorf("%+v", v)
	}
	editor.err = errors.New("redis is away")
	page.overridesCache.forget()
	if w := ask(page, "GET", "/api/overrides", ""); w.Code != 503 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestRights has a page whose client has no more rights than are documented do what changes
// overrides and their history.
func TestRights(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/ratectl.md")
	limittest.OK(t, err)
	_, rest, _ := strings.Cut(string(text), "<!-- rights -->")
	rights, _, _ := strings.Cut(rest, "<!-- /rights -->")
	args := []any{"ACL", "SETUSER", "editor", "on", ">secret", "~limits", "~{limits}:history", "+hello", "+client", "+ping", "+hlen", "+hgetall", "+lrange", "+time"}
	for _, right := range strings.Fields(strings.ReplaceAll(rights, "```", "")) {
		args = append(args, right)
	}
	server := redistest.Start(t)
	limittest.OK(t, server.Client(t).Do(t.Context(), args...).Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "editor", Password: "secret"})
	defer client.Close()
	page := New(WithLogger(quiet), WithActions(func(*http.Request, Action) (string, error) { return "ada", nil }, override.NewEditor(client, "limits")))
	newLimiter(t, page, &runtime.Rule{Name: "r", Max: 5, Window: time.Hour})
	for _, body := range []string{
		`{"action":"block","rule":"r","key":"x"}`, `{"action":"undo","rule":"r","change":1}`, `{"action":"shadow_on","rule":"r"}`, `{"action":"restore","rule":"r"}`, `{"action":"reset","rule":"r","key":"x"}`,
	} {
		if status, answer := post(page, body); status != 200 {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	v := decoded[struct {
		Error   string
		History []struct{ Did, Before any }
	}](t, ask(page, "GET", "/api/overrides", ""))
	if v.Error != "" || len(v.History) != 5 || v.History[0].Did != "reset" || v.History[0].Before != "ok, 0 used" {
		t.Errorf("%+v", v)
	}
}
