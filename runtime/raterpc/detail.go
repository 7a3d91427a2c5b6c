package raterpc

import (
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/runtime"
)

// The reasons of ErrorInfo details.
const (
	reasonLimited     = "RATE_LIMIT_EXCEEDED"
	reasonNever       = "COST_EXCEEDS_RATE_LIMIT"
	reasonUnavailable = "RATE_LIMITER_UNAVAILABLE"
	reasonInvalid     = "RATE_LIMIT_INVALID"
)

// exhaustedDetails returns the details of a refusal by a limit: ErrorInfo, a
// QuotaFailure with every rule that denies, and RetryInfo if waiting is of use. The
// first violation is of the rule that keeps the caller out longest.
func (c *Call) exhaustedDetails(limited *runtime.LimitedError, denied []runtime.DecisionEvent) []proto.Message {
	failure := &errdetails.QuotaFailure{}
	first := c.violation(limited.Rule, limited.Limit, text(limited))
	failure.Violations = append(failure.Violations, first)
	for _, e := range denied {
		if v := c.violation(e.Rule, e.Limit, runtime.DefaultMessage); e.Rule != limited.Rule && v.QuotaId != "" {
			failure.Violations = append(failure.Violations, v)
		}
	}
	info := map[string]string{"limit": strconv.FormatInt(limited.Limit, 10)}
	if first.QuotaId != "" {
		info["policy"] = first.QuotaId
	}
	if limited.RetryAfter == runtime.Never {
		return []proto.Message{c.errorInfo(reasonNever, info), failure}
	}
	retry := &errdetails.RetryInfo{RetryDelay: durationpb.New(limited.RetryAfter)}
	return []proto.Message{c.errorInfo(reasonLimited, info), failure, retry}
}

// violation returns a violation of a rule. It does not say by whom: the key of a
// call may be a secret.
func (c *Call) violation(rule string, limit int64, message string) *errdetails.QuotaFailure_Violation {
	policy := c.server.public(rule)
	return &errdetails.QuotaFailure_Violation{Subject: policy, Description: message, QuotaId: policy, QuotaValue: limit}
}

func (c *Call) errorInfo(reason string, metadata map[string]string) *errdetails.ErrorInfo {
	domain := c.server.domain
	if domain == "" {
		domain = c.service()
	}
	return &errdetails.ErrorInfo{Reason: reason, Domain: domain, Metadata: metadata}
}
