package runtime_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A reader ends at the last byte that is paid, in few trips.
func TestMeterReader(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 999, 5000, 70_000, 70_001, 200_000} {
		synctest.Test(t, func(t *testing.T) {
			limiter, store := onFake()
			limit := (&runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 70_000}).Limit(nil)
			m := metered(t, limiter, limit)
			r := m.Reader(bytes.NewReader(make([]byte, size)), func(n int) []int64 { return []int64{int64(n)} })
			n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
			if want := min(int64(size), 70_000); n != want || (err != nil) != (size > 70_000) || err != nil && !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("%d of %d bytes, %v", n, size, err)
			}
			ok(t, r.Close())
			ok(t, limiter.Close())
			wantLeft(t, limiter, limit, 70_000-n)
			if trips := store.trips(); trips > 120 {
				t.Errorf("%d bytes in %d trips", size, trips)
			}
		})
	}
}
