package wiring

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/fx"
	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/examples/frameworks/wiring/quotes"
	"github.com/rategen/rategen/runtime"
)

// ask calls n times and returns how many calls were refused.
func ask(t *testing.T, q quotes.Quotes, n int) (refused int) {
	t.Helper()
	for range n {
		if _, err := q.Price(context.Background(), "ACME"); errors.Is(err, runtime.ErrLimited) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	return refused
}

// Each decorator has the effect of its place.
func TestByHand(t *testing.T) {
	exchange, log := quotes.NewExchange(), new(bytes.Buffer)
	exchange.Fails = 2
	service := New(exchange, refused.Limiter(t), slog.New(slog.NewTextHandler(log, nil)))
	if refused := ask(t, service, 5); refused != 2 {
		t.Errorf("%d of 5 calls were refused, want 2", refused)
	}
	if exchange.Calls != 3 { // two that failed, and one that the cache remembers
		t.Errorf("the exchange was called %d times, want 3", exchange.Calls)
	}
	if n := strings.Count(log.String(), "limited=true"); n != 2 {
		t.Errorf("the log has %d refusals, want 2:\n%s", n, log)
	}
}

// Tries outside of the limit count, and end with a refusal.
func TestRetryOutside(t *testing.T) {
	exchange := quotes.NewExchange()
	exchange.Fails = 100
	service := quotes.Retried{Next: quotes.NewRateLimitedQuotes(exchange, refused.Limiter(t))}
	for _, want := range []error{quotes.ErrAway, runtime.ErrLimited} {
		if _, err := service.Price(t.Context(), "ACME"); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	if exchange.Calls != 3 {
		t.Errorf("the exchange was called %d times, want 3", exchange.Calls)
	}
}

// The provider for wire asks for the plain service.
func TestByWire(t *testing.T) {
	if refused := ask(t, ProvideQuotes(quotes.NewExchange(), refused.Limiter(t)), 5); refused != 2 {
		t.Errorf("%d of 5 calls were refused, want 2", refused)
	}
}

// The limiter follows the file that LIMITS names.
func TestConfigMap(t *testing.T) {
	var limits struct{ Data map[string]string }
	text, err := os.ReadFile("limits.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &limits)
	}
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err = errors.Join(err, os.WriteFile(file, []byte(limits.Data["limits.yaml"]), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LIMITS", file)
	limiter := NewLimiter(runtime.NewMemoryStore())
	t.Cleanup(func() { limiter.Close() })
	if refused := ask(t, quotes.NewRateLimitedQuotes(quotes.NewExchange(), limiter), 5); refused != 4 {
		t.Errorf("%d of 5 calls were refused, want 4: the max is 1", refused)
	}
}

// Who asks fx for Quotes gets limited ones, and the limiter is closed at the end.
func TestByFx(t *testing.T) {
	var service quotes.Quotes
	var limiter *runtime.Limiter
	app := fx.New(fx.NopLogger, Module, Limited,
		fx.Supply(fx.Annotate(runtime.NewMemoryStore(), fx.As(new(runtime.Store)))),
		fx.Populate(&service, &limiter))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if refused := ask(t, service, 5); refused != 2 {
		t.Errorf("%d of 5 calls were refused, want 2", refused)
	}
	if err := app.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// A decorator within a module does not reach those outside of it.
func TestFxDecoratorInModule(t *testing.T) {
	var service quotes.Quotes
	app := fx.New(fx.NopLogger, Module, fx.Module("limits", Limited),
		fx.Supply(fx.Annotate(runtime.NewMemoryStore(), fx.As(new(runtime.Store)))),
		fx.Populate(&service))
	if err := app.Err(); err != nil {
		t.Fatal(err)
	}
	if refused := ask(t, service, 5); refused != 0 {
		t.Errorf("%d of 5 calls were refused: a module's decorator has become the application's", refused)
	}
}
