package raterpc

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// ReadAnswer returns what the status of a call that a client has made says about limits of
// its peer: the code, the message, the details, and the value of [FieldPushback] or "".
// RESOURCE_EXHAUSTED is a refusal, and UNAVAILABLE is one that says when to come back. The
// latest of the times that it names holds.
func ReadAnswer(code uint32, message string, details []proto.Message, pushback string) rateclient.Answer {
	var a rateclient.Answer
	for _, d := range details {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			a.HoldOff = max(a.HoldOff, d.GetRetryDelay().AsDuration())
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations()[:min(len(d.GetViolations()), 16)] {
				q := rateclient.Quota{Name: v.GetQuotaId(), Unit: "requests", Limit: v.GetQuotaValue()}
				if q.Limit <= 0 {
					q.Limit = -1
				}
				a.Quotas = append(a.Quotas, q)
			}
		}
	}
	if ms, err := strconv.ParseUint(pushback, 10, 31); err == nil {
		a.HoldOff = max(a.HoldOff, time.Duration(ms)*time.Millisecond)
	}
	a.HoldOff = min(a.HoldOff, runtime.MaxWindow)
	switch code {
	case CodeResourceExhausted:
		// The client says that of a message that is too large, too.
		a.Refused = len(details) > 0 || pushback != "" || !strings.HasPrefix(message, "grpc: ")
	case CodeUnavailable:
		a.Refused = a.HoldOff > 0
	}
	if !a.Refused {
		return rateclient.Answer{}
	}
	return a
}
