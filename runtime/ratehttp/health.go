package ratehttp

import (
	"encoding/json"
	"net/http"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// Health answers with the findings of a limiter, see [runtime.Limiter.Findings], as JSON:
//
//	{"status":"warn","findings":[{"code":"limiter_closed","text":"…","help":"…","since":"…"}]}
//
// The status is "pass" without findings. The answer is 200 in any case, since a process with a
// finding serves as well as the others do, and to restart it would change nothing. Serve it
// where operators are, as it names rules.
func Health(limiter *runtime.Limiter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := struct {
			Status   string            `json:"status"`
			Findings []observe.Finding `json:"findings"`
		}{"pass", append([]observe.Finding{}, limiter.Findings()...)}
		if len(answer.Findings) > 0 {
			answer.Status = "warn"
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(answer) // the client has gone
	})
}
