package raterpc

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/rule"
)

// exhaustedDetails returns the details of a refusal by a limit, of which clients are told
// in a policy's form: ErrorInfo, a QuotaFailure with every rule that refuses, and RetryInfo
// if waiting is of use. The first violation is of the rule that keeps the caller out
// longest. A limit that is not public, and the cap of the process, has none: no name and
// no number of theirs is told.
func (c *Call) exhaustedDetails(limited *runtime.LimitedError, policy ratefield.Policy) []proto.Message {
	reason, info := ratefield.ReasonLimited, map[string]string{}
	failure := &errdetails.QuotaFailure{}
	if policy.Audience == ratefield.Public && limited.Source != rule.SourceProcess {
		failure.Violations = append(failure.Violations, violation(policy.Name, limited.Limit))
		info["policy"], info["limit"] = policy.Name, strconv.FormatInt(limited.Limit, 10)
	}
	for _, l := range c.refused() {
		if p := c.server.policies.Lookup(l.Rule, l.Outgoing); (l.Rule != limited.Rule || l.Outgoing != limited.Outgoing()) && p.Audience == ratefield.Public {
			failure.Violations = append(failure.Violations, violation(p.Name, l.Quota))
		}
	}
	if policy.Audience == ratefield.Outgoing {
		reason = ratefield.ReasonCapacity
		failure = &errdetails.QuotaFailure{} // the client has no quota that is used up
	}
	if limited.RetryAfter == runtime.Never && reason == ratefield.ReasonLimited {
		reason = ratefield.ReasonNever
	}
	details := []proto.Message{nil}
	if len(failure.Violations) > 0 {
		details = append(details, failure)
	}
	if limited.RetryAfter != runtime.Never {
		info["retry_after"] = strconv.FormatInt(ratefield.Seconds(limited.RetryAfter), 10)
		details = append(details, retryInfo(limited.RetryAfter))
	}
	details[0] = c.errorInfo(reason, info)
	return details
}

func retryInfo(after time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(after)}
}

// refused returns the limits that refuse, the longest RetryAfter first.
func (c *Call) refused() []ratefield.State {
	limits := slices.DeleteFunc(c.seen.Limits(nil), func(l ratefield.State) bool { return !l.Refused })
	slices.SortStableFunc(limits, func(a, b ratefield.State) int { return cmp.Compare(b.RetryAfter, a.RetryAfter) })
	return limits
}

// violation returns a violation of a policy. It does not say by whom: the key of a
// call may be a secret. Nor has it the message, which the status has, and which may be long.
func violation(policy string, limit int64) *errdetails.QuotaFailure_Violation {
	return &errdetails.QuotaFailure_Violation{Subject: policy, Description: runtime.DefaultMessage, QuotaId: policy, QuotaValue: limit}
}

func (c *Call) errorInfo(reason string, metadata map[string]string) *errdetails.ErrorInfo {
	domain := c.server.domain
	if domain == "" {
		domain = c.service()
	}
	return &errdetails.ErrorInfo{Reason: reason, Domain: domain, Metadata: metadata}
}
