package raterpc

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rategen/rategen/runtime"
)

// The codes of refusals. They are those of package google.golang.org/grpc/codes and
// of connectrpc.com/connect.
const (
	CodeResourceExhausted uint32 = 8
	CodeInternal          uint32 = 13
	CodeUnavailable       uint32 = 14
)

// FieldPushback is the name of the metadata that tells a gRPC client when to retry.
const FieldPushback = "grpc-retry-pushback-ms"

// A Refusal is what a client is told about a call that was refused.
type Refusal struct {
	// Code is the status, one of the codes of this package.
	Code uint32
	// Message is the message of the rule that refused, or another one that is
	// written for clients.
	Message string
	// RetryAfter is the time until the call would be admitted if no other call
	// arrived, [runtime.Never], or 0 if nobody knows.
	RetryAfter time.Duration
	// Details are the details of the status, from google/rpc/error_details.proto.
	Details []proto.Message
}

// messages of refusals that have none of a rule. Errors of the store may name
// servers, and those of a limit name rules, so clients do not see them.
const (
	unavailableMessage = "rate limiter unavailable"
	invalidMessage     = "rate limit could not be applied"
)

// Refusal returns what to tell the client of a call that ended with an error, or nil
// if the error is no refusal.
//
// A refusal is an error that is or wraps one of package runtime. An application may
// replace such errors by others. So if the newest decision in the call refused, any
// error but one of the context is a refusal. Its text is then the Message. The
// caller must not ask about an error that has a status already.
func (c *Call) Refusal(err error) *Refusal {
	var limited *runtime.LimitedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		return c.exhausted(limited, text(limited))
	case errors.Is(err, runtime.ErrUnavailable), errors.Is(err, runtime.ErrInvalidKey):
		return c.refusal(CodeUnavailable, unavailableMessage, reasonUnavailable)
	case errors.Is(err, runtime.ErrInvalidLimit):
		return c.refusal(CodeInternal, invalidMessage, reasonInvalid)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil
	case c.seen.verdict() == runtime.Denied:
		return c.exhausted(nil, text(err))
	case c.seen.verdict() == runtime.Unavailable:
		return c.refusal(CodeUnavailable, text(err), reasonUnavailable)
	}
	return nil
}

// exhausted returns the refusal by a limit. The error is nil if an application has
// replaced it: then what was recorded tells about it.
func (c *Call) exhausted(limited *runtime.LimitedError, message string) *Refusal {
	denied := c.seen.denied()
	if limited == nil {
		limited = &runtime.LimitedError{}
		if len(denied) > 0 { // the call may have met too many rules to remember this one
			e := &denied[0]
			limited = &runtime.LimitedError{Rule: e.Rule, Limit: e.Limit, Remaining: e.Remaining, RetryAfter: e.RetryAfter}
		}
	}
	return &Refusal{
		Code:       CodeResourceExhausted,
		Message:    message,
		RetryAfter: limited.RetryAfter,
		Details:    c.exhaustedDetails(limited, denied),
	}
}

func (c *Call) refusal(code uint32, message, reason string) *Refusal {
	return &Refusal{Code: code, Message: message, Details: []proto.Message{c.errorInfo(reason, nil)}}
}

// text returns an error's text in valid UTF-8: a status with anything else cannot be
// encoded.
func text(err error) string { return strings.ToValidUTF8(err.Error(), "\uFFFD") }

// Pushback returns the value of [FieldPushback] for a refusal of a call with a
// context, or "" if there is none to send, see [WithPushback].
func (c *Call) Pushback(ctx context.Context, r *Refusal) string {
	const stop = "-1"
	most := c.server.pushback
	switch {
	case most <= 0 || r.Code == CodeUnavailable:
		return ""
	case r.RetryAfter <= 0 || r.RetryAfter > most || r.RetryAfter > math.MaxInt32*time.Millisecond/2:
		return stop
	}
	wait := r.RetryAfter + rand.N(r.RetryAfter/4+1)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= r.RetryAfter {
		return stop
	}
	return strconv.FormatInt(int64((wait+time.Millisecond-1)/time.Millisecond), 10)
}
