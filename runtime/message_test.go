package runtime_test

import (
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A message tells the time to wait where it has the verb, rounded up and never 0, and
// everything else in it stays.
func TestMessageText(t *testing.T) {
	never := runtime.ErrCostExceedsLimit.Error()
	for _, c := range []struct {
		message string
		after   time.Duration
		want    string
	}{
		{"wait {retry_after}", 0, "wait 1s"},
		{"wait {retry_after}", time.Nanosecond, "wait 1s"},
		{"wait {retry_after}", time.Second + 1, "wait 2s"},
		{"wait {retry_after}", 59*time.Second + 1, "wait 1m"},
		{"wait {retry_after}", 90 * time.Second, "wait 1m30s"},
		{"wait {retry_after}", time.Hour, "wait 1h"},
		{"wait {retry_after}", time.Hour + time.Second, "wait 1h0m1s"},
		{"wait {retry_after}", 10 * time.Minute, "wait 10m"},
		{"wait {retry_after}", runtime.MaxWindow, "wait 8784h"},
		{"{retry_after}, then {retry_after}", 3 * time.Second, "3s, then 3s"},
		{"wait {retry_after}", runtime.Never, never},
		{"100% %s {} {retry_after", runtime.Never, "100% %s {} {retry_after"},
		{"", time.Second, ""},
	} {
		if got := runtime.MessageText(c.message, c.after); got != c.want {
			t.Errorf("%q after %v is %q, want %q", c.message, c.after, got, c.want)
		}
	}
	rule := &runtime.Rule{Name: "x", Window: time.Hour, Max: 0, Message: "wait {retry_after}"}
	if _, err := runtime.New(runtime.NewMemoryStore()).Take(t.Context(), rule.Limit(nil)); err == nil || err.Error() != never {
		t.Errorf("an error's text is %v", err)
	}
}
