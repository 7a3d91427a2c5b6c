package shop

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratetest"
)

func TestOrders(t *testing.T) {
	limiter := ratetest.New(t)
	shop := NewRateLimitedShop(&Store{}, limiter.Limiter)
	items := []string{"cup", "pot", "tea", "tin", "jar", "lid"}

	n, err := OrderAll(t.Context(), shop, "ann", items)
	var limited *runtime.LimitedError
	if n != 5 || !errors.As(err, &limited) || limited.RetryAfter != time.Hour || limited.Error() != "five orders an hour are enough" {
		t.Errorf("%d orders, then %v", n, err)
	}
	limiter.Advance(time.Hour)
	if n, err := OrderAll(t.Context(), shop, "ann", items[:5]); n != 5 || err != nil {
		t.Errorf("an hour later: %d orders, then %v", n, err)
	}
	limiter.Check("shop.Shop.Order").Admitted(10).Refused(1).Keys("ann")
	limiter.NothingElse()
}

func TestOrdersWhileRedisIsGone(t *testing.T) {
	limiter := ratetest.New(t)
	shop := NewRateLimitedShop(&Store{}, limiter.Limiter)
	limiter.Always("shop.Shop.Order", ratetest.Unavailable())
	if n, err := OrderAll(t.Context(), shop, "ann", make([]string, 50)); n != 50 {
		t.Errorf("%d orders, then %v", n, err)
	}
}

func TestSearch(t *testing.T) {
	limiter := ratetest.New(t)
	shop := NewRateLimitedShop(&Store{}, limiter.Limiter)
	const long = "a tall blue cup with a lid and a spoon" // costs 4

	for range 5 {
		if _, err := shop.Search(t.Context(), "ann", long); err != nil {
			t.Error(err)
		}
	}
	if _, err := shop.Search(t.Context(), "ann", long); !errors.Is(err, runtime.ErrLimited) {
		t.Errorf("an empty bucket: %v", err)
	}
	limiter.Advance(4 * time.Second) // four tokens
	if _, err := shop.Search(t.Context(), "ann", long); err != nil {
		t.Error(err)
	}
	limiter.Check("shop.Shop.Search").Admitted(6).Refused(1).Cost(24)
}

func TestShipping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := ratetest.New(t)
		store := &Store{}
		shop := NewRateLimitedShop(store, limiter.Limiter)
		begin := time.Now()
		for _, id := range []string{"a", "b", "c", "d"} {
			if err := shop.Ship(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took != 30*time.Second || len(store.shipped) != 4 {
			t.Errorf("%d parcels in %v", len(store.shipped), took)
		}
	})
}

func TestExports(t *testing.T) {
	limiter := ratetest.New(t)
	shop := NewRateLimitedShop(&Store{}, limiter.Limiter)
	nothing := func() error { return nil }

	// An export runs for hours while another customer's starts, and a third is refused.
	err := shop.Export(t.Context(), "ann", func() error {
		limiter.Advance(3 * time.Hour)
		return shop.Export(t.Context(), "bob", func() error {
			if err := shop.Export(t.Context(), "cid", nothing); !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("a third export: %v", err)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
	limiter.Check("shop.export.running").Admitted(2).Refused(1).Cost(0)

	// One a day, unless it failed.
	full := errors.New("the disk is full")
	if err := shop.Export(t.Context(), "cid", func() error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if err := shop.Export(t.Context(), "cid", nothing); err != nil {
		t.Errorf("after a failure: %v", err)
	}
	if err := shop.Export(t.Context(), "cid", nothing); !errors.Is(err, runtime.ErrLimited) {
		t.Errorf("twice a day: %v", err)
	}
	limiter.Check("shop.export.daily").Cost(3).Keys("ann", "bob", "cid")
	limiter.NothingElse()
}

func TestExportsWhileRedisIsGone(t *testing.T) {
	limiter := ratetest.New(t)
	shop := NewRateLimitedShop(&Store{}, limiter.Limiter)
	limiter.Next("shop.export.daily", 1, ratetest.Unavailable())
	err := shop.Export(t.Context(), "ann", func() error { return nil })
	if !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("it must not run without a count: %v", err)
	}
	limiter.Check("shop.export.daily").Verdict(observe.VerdictUnavailable, 1)
}

func TestFrontPage(t *testing.T) {
	limiter := ratetest.New(t)
	handler := Handler(&Store{}, limiter.Limiter)
	get := func() *http.Response {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Result()
	}
	for range 3 {
		if got := get().StatusCode; got != http.StatusOK {
			t.Errorf("status %d", got)
		}
	}
	refused := get()
	if refused.StatusCode != http.StatusTooManyRequests || refused.Header.Get("Retry-After") != "1" {
		t.Errorf("the fourth request: %d, Retry-After %q", refused.StatusCode, refused.Header.Get("Retry-After"))
	}
	limiter.Next("shop.Pages.Front", 1, ratetest.Refuse(90*time.Second))
	if got := get().Header.Get("Retry-After"); got != "90" {
		t.Errorf("Retry-After %q", got)
	}
	limiter.Check("shop.Pages.Front").Admitted(3).Refused(2).Keys("192.0.2.1")
}

func TestWithoutLimits(t *testing.T) {
	shop := NewRateLimitedShop(&Store{}, ratetest.Unlimited())
	if n, err := OrderAll(t.Context(), shop, "ann", make([]string, 1000)); n != 1000 {
		t.Errorf("%d orders, then %v", n, err)
	}
}
