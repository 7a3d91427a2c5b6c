package raterpc

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// The codes of refusals. They are those of package google.golang.org/grpc/codes and
// of connectrpc.com/connect.
const (
	CodePermissionDenied  uint32 = 7
	CodeResourceExhausted uint32 = 8
	CodeInternal          uint32 = 13
	CodeUnavailable       uint32 = 14

	codeOK      uint32 = 0
	codeUnknown uint32 = 2
)

// FieldPushback is the name of the metadata that tells a gRPC client when to retry.
const FieldPushback = "grpc-retry-pushback-ms"

// A Refusal is what a client is told about a call that was refused.
type Refusal struct {
	// Code is the status, one of the codes of this package.
	Code uint32
	// Message is the message of the rule that refused, or another one that is
	// written for clients. What is too long for the headers that clients take is cut.
	Message string
	// RetryAfter is the time until the call would be admitted if no other call
	// arrived, what [ratefield.Holds] tell of a limit on calls in flight,
	// [runtime.Never], or 0 if no limit has refused the call.
	RetryAfter time.Duration
	// Own reports that the program has refused the call in its own words: its error stays, with the
	// details that it lacks. There is no Message.
	Own bool
	// Details are the details of the status, from google/rpc/error_details.proto. Beside a long
	// message there may be fewer: RetryInfo stays.
	Details []proto.Message
}

// messages of refusals that have none of a rule. Errors of the store may name
// servers, and those of a limit name rules, so clients do not see them.
const (
	unavailableMessage = "rate limiter unavailable"
	capacityMessage    = "no capacity for the call now"
	networkMessage     = "calls from this network are not served"
	invalidMessage     = "rate limit could not be applied"
)

// Refusal returns what to tell the client of a call that ended with an error, or nil
// if the error is no refusal.
//
// A refusal is an error that is or wraps one of package runtime, or one that
// [runtime.WithRefusalError] has made of it. The text of the latter is then the Message, unless
// [WithMessages] has one. The caller must not ask about an error that has a status
// already, see [Call.Ended].
func (c *Call) Refusal(err error) *Refusal {
	if err == nil {
		return nil
	}
	if r := c.refusalOf(err, ""); r != nil {
		return c.cut(r)
	}
	if own := c.seen.Cause(err); own != nil {
		return c.cut(c.refusalOf(own, text(err)))
	}
	return nil
}

// Ended is called for a call that ended with a code: without an error, or with one that is no refusal or
// has a status of its own. If the call was refused, and its client still waits by its context, it reports what
// the client gets. It returns the refusal if that takes the place of the error, see [WithForcedRefusals], and
// a [Refusal.Own] if the client has yet to be told when to come back.
func (c *Call) Ended(ctx context.Context, code uint32) *Refusal {
	refusal, ok := c.seen.Refusal(c.server.policies)
	if !ok || code != codeOK && ctx.Err() != nil {
		return nil
	}
	by, route := replyOf(code), ""
	if c.service() != "" {
		route = c.method
	}
	overruled := c.server.overruling.Overrules(by)
	c.server.policies.Report(ctx, refusal, by, overruled, route)
	var limited *runtime.LimitedError
	if overruled {
		return c.cut(c.refusalOf(refusal.Err, ""))
	}
	if by == ratefield.ReplyRefusal && errors.As(refusal.Err, &limited) {
		if after := c.seen.RetryAfter(limited); after != runtime.Never {
			return &Refusal{Own: true, Code: code, RetryAfter: after, Details: []proto.Message{retryInfo(after)}}
		}
	}
	return nil
}

// replyOf returns what a code is beside a refusal.
func replyOf(code uint32) ratefield.Reply {
	switch code {
	case codeOK:
		return ratefield.ReplySuccess
	case CodeResourceExhausted, CodeUnavailable:
		return ratefield.ReplyRefusal
	case codeUnknown, CodeInternal:
		return ratefield.ReplyUnknown
	}
	return ratefield.ReplyError
}

// refusalOf returns the refusal that an error of package runtime is, with a message in
// place of its own if that is not empty.
func (c *Call) refusalOf(err error, message string) *Refusal {
	var limited *runtime.LimitedError
	if errors.As(err, &limited) {
		return c.limitRefusal(limited, message)
	}
	if errors.Is(err, runtime.ErrUnavailable) {
		return c.refusal(CodeUnavailable, c.message("", 0, cmp.Or(message, unavailableMessage)), ratefield.ReasonUnavailable)
	}
	if errors.Is(err, runtime.ErrInvalidLimit) || errors.Is(err, runtime.ErrInvalidKey) {
		return c.refusal(CodeInternal, cmp.Or(message, invalidMessage), ratefield.ReasonInvalid)
	}
	if errors.Is(err, ratehttp.ErrNetworkRefused) {
		return c.refusal(CodePermissionDenied, networkMessage, ratefield.ReasonNetwork)
	}
	return nil
}

// limitRefusal returns the refusal of a call by a limit.
func (c *Call) limitRefusal(limited *runtime.LimitedError, message string) *Refusal {
	told := *limited
	told.RetryAfter = c.seen.RetryAfter(limited)
	policy := c.server.policies.Lookup(limited.Rule, limited.Outgoing())
	r := &Refusal{Code: CodeResourceExhausted, RetryAfter: told.RetryAfter}
	if policy.Audience == ratefield.Outgoing {
		r.Code, r.Message = CodeUnavailable, capacityMessage
	} else {
		r.Message = c.message(limited.Rule, told.RetryAfter, cmp.Or(message, text(&told)))
	}
	r.Details = c.exhaustedDetails(&told, policy)
	return r
}

// message returns the text for a rule in the client's language, or one in another.
func (c *Call) message(rule string, retryAfter time.Duration, other string) string {
	if c.server.messages == nil {
		return other
	}
	if own, _ := c.server.messages.Choose(c.peer.Header("Accept-Language"), rule); own != "" {
		return strings.ToValidUTF8(runtime.MessageText(own, retryAfter), "\uFFFD")
	}
	return other
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
	if most <= 0 || r.Code != CodeResourceExhausted {
		return ""
	}
	if r.RetryAfter <= 0 || r.RetryAfter > most || r.RetryAfter > math.MaxInt32*time.Millisecond/2 {
		return stop
	}
	wait := r.RetryAfter + rand.N(r.RetryAfter/4+1)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= r.RetryAfter {
		return stop
	}
	return strconv.FormatInt(int64((wait+time.Millisecond-1)/time.Millisecond), 10)
}
