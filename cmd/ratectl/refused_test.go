package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
)

// tellRefused tells refusals of a minute some minutes ago, as processes do. Lines are rule, key and
// count, separated by tabs.
func (b *bench) tellRefused(t *testing.T, now int64, ago int64, lines ...string) {
	t.Helper()
	minute := now/60 - ago
	text := fmt.Sprint(minute, "\n", strings.Join(lines, "\n"), "\n")
	limittest.OK(t, b.client.ZAdd(t.Context(), "orders:rate_limit:{processes}:refused", redis.Z{Score: float64(minute), Member: text}).Err())
}
