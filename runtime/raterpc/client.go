package raterpc

import (
	"net/http"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/rule"
)

// ReadAnswer returns what a peer's answer to a call says about its limits: the code, the message
// and the details of the status, and the metadata in the spelling of HTTP fields. A status that
// the client has made itself is no answer.
//
// RESOURCE_EXHAUSTED is a refusal if there is a sign of one: RetryInfo, a QuotaFailure, an ErrorInfo
// with the reason RATE_LIMIT_EXCEEDED, [FieldPushback] with a time, or what [rateclient.ReadAnswer]
// takes for one beside a 503, such as Retry-After. UNAVAILABLE is one if a time is named, or by such
// fields. The latest of the times holds. A text is no sign, since RESOURCE_EXHAUSTED also
// stands for messages that are too large, and for disks that are full: [rateclient.Peer.Body] reads
// the texts of a peer that sends nothing else.
func ReadAnswer(code uint32, message string, details []proto.Message, fields http.Header) rateclient.Answer {
	status := http.StatusOK
	if code != 0 {
		status = http.StatusServiceUnavailable
	}
	a := rateclient.ReadAnswer(status, fields, time.Now())
	a.Status, a.Message = int(code), message
	sign := false
	for _, d := range details {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			sign, a.HoldOff = true, max(a.HoldOff, d.GetRetryDelay().AsDuration())
		case *errdetails.ErrorInfo:
			sign = sign || d.GetReason() == ratefield.ReasonLimited
		case *errdetails.QuotaFailure:
			for _, v := range d.GetViolations()[:min(len(d.GetViolations()), 16)] {
				q := rateclient.Quota{Name: v.GetQuotaId(), Unit: "requests", Limit: v.GetQuotaValue(), Remaining: -1}
				if q.Limit <= 0 {
					q.Limit = -1
				}
				sign, a.Quotas = true, append(a.Quotas, q)
			}
		}
	}
	if ms, err := strconv.ParseUint(fields.Get(FieldPushback), 10, 31); err == nil {
		sign, a.HoldOff = true, max(a.HoldOff, time.Duration(ms)*time.Millisecond)
	}
	a.HoldOff = min(a.HoldOff, rule.MaxWindow)
	switch code {
	case 0:
	case CodeResourceExhausted:
		a.Refused = a.Refused || sign
	case CodeUnavailable:
		a.Refused = a.Refused || a.HoldOff > 0
	default:
		a.Refused = false
	}
	if code != 0 && !a.Refused {
		a.HoldOff, a.Quotas = 0, nil
	}
	return a
}
