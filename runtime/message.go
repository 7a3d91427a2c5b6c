package runtime

import (
	"strings"
	"time"
)

// retryAfterVerb stands for the time to wait in a message.
const retryAfterVerb = "{retry_after}"

// MessageText returns a rule's message as a caller reads it: "{retry_after}" becomes
// the time to wait, rounded up to seconds, such as 12s or 1m30s. So the text alone says
// when to come back, for people and models that see nothing else. If waiting is of no
// use, a message with the verb becomes the text of [ErrCostExceedsLimit].
func MessageText(message string, retryAfter time.Duration) string {
	if !strings.Contains(message, retryAfterVerb) {
		return message
	}
	if retryAfter == Never {
		return ErrCostExceedsLimit.Error()
	}
	whole := max(time.Second, (retryAfter + time.Second - 1).Truncate(time.Second))
	text := whole.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return strings.ReplaceAll(message, retryAfterVerb, text)
}
