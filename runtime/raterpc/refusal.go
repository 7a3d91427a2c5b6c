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
	// arrived, [runtime.Never], or 0 if no limit has refused the call.
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
// A refusal is an error that is or wraps one of package runtime, or one that
// [runtime.WithDenied] has made of it. The text of the latter is then the Message. The
// caller must not ask about an error that has a status already.
func (c *Call) Refusal(err error) *Refusal {
	if err == nil {
		return nil
	}
	if r := c.refusalOf(err); r != nil {
		return r
	}
	own := c.seen.cause(err)
	if own == nil {
		return nil
	}
	r := c.refusalOf(own)
	if r != nil {
		r.Message = text(err)
	}
	return r
}

// refusalOf returns the refusal that an error of package runtime is.
func (c *Call) refusalOf(err error) *Refusal {
	var limited *runtime.LimitedError
	switch {
	case errors.As(err, &limited):
		return &Refusal{
			Code:       CodeResourceExhausted,
			Message:    text(limited),
			RetryAfter: limited.RetryAfter,
			Details:    c.exhaustedDetails(limited, c.seen.denied()),
		}
	case errors.Is(err, runtime.ErrUnavailable), errors.Is(err, runtime.ErrInvalidKey):
		return c.refusal(CodeUnavailable, unavailableMessage, reasonUnavailable)
	case errors.Is(err, runtime.ErrInvalidLimit):
		return c.refusal(CodeInternal, invalidMessage, reasonInvalid)
	}
	return nil
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
