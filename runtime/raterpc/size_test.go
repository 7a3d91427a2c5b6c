package raterpc_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterpc"
)

// However long a rule's message is, and however many limits refuse, a refusal fits the headers
// that clients take: it says when to come back, and the message once among its details.
func TestRefusalFitsHeaders(t *testing.T) {
	for _, letter := range []string{"x", "%", "茶", "🍵", "\xff"} {
		for _, length := range []int{1, 100, 500, 5_000, 100_000} {
			for _, limits := range []int{1, 8} {
				message := strings.Repeat(letter, length)
				var rules []runtime.Limit
				for i := range limits {
					rule := &runtime.Rule{Name: fmt.Sprint(strings.Repeat("n", 60), i), Prefix: fmt.Sprint(i, ":"), Window: time.Hour, Max: 1, Message: message}
					rules = append(rules, rule.Limit(nil))
				}
				limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
				ctx, call := raterpc.NewServer().Begin(t.Context(), method, nobody)
				_, _ = limiter.Take(ctx, rules...)
				_, err := limiter.Take(ctx, rules...)
				r := call.Refusal(err)
				if r == nil {
					t.Fatal(err)
				}
				limit, policy := call.Fields()
				size, retries, parts := 3*len(r.Message)+(len(r.Message)*4+2)/3+len(limit)+len(policy), false, 0
				if letter == "x" {
					size -= 2 * len(strings.TrimSuffix(r.Message, "…"))
				}
				for _, d := range r.Details {
					_, is := d.(*errdetails.RetryInfo)
					retries = retries || is
					parts += strings.Count(fmt.Sprint(d), message)
					size += proto.Size(d) * 4 / 3
				}
				whole := strings.ToValidUTF8(message, "\uFFFD")
				if size > 8<<10-512 || !utf8.ValidString(r.Message) || !retries || length > 10 && parts > 0 {
					t.Errorf("%q x %d, %d limits: %d bytes, %d details, message %q", letter, length, limits, size, len(r.Details), r.Message)
				} else if length <= 500 && limits == 1 && letter != "🍵" && r.Message != whole || length <= 100 && len(r.Details) != 3 {
					t.Errorf("%q x %d, %d limits: %d details and %q, although there is room", letter, length, limits, len(r.Details), r.Message)
				} else if !strings.HasPrefix(whole, strings.TrimSuffix(r.Message, "…")) || len(r.Message) < min(len(whole), 200) {
					t.Errorf("%q x %d, %d limits: message %q", letter, length, limits, r.Message)
				}
			}
		}
	}
}
