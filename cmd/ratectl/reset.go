package main

import (
	"context"
	"fmt"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// A resetAnswer is what reset or release has done.
type resetAnswer struct {
	Rule     string   `json:"rule"`
	Key      string   `json:"key"`
	RedisKey string   `json:"redis_key"`
	Before   keyState `json:"before"`
	DryRun   bool     `json:"dry_run,omitempty"`

	d     declared
	limit runtime.Limit
	of    string // how the key is called
}

// toReset returns the key that arguments name as it is now, also if that is broken.
func (s *session) toReset(ctx context.Context, args []string) (*resetAnswer, error) {
	d, key, err := s.keyNamed(args)
	if err != nil {
		return nil, err
	}
	limit := s.limitOf(d, key)
	a := &resetAnswer{Rule: d.Name, Key: key.Pattern(), RedisKey: s.limiter.RedisKey(limit), DryRun: s.dry, d: d, limit: limit}
	a.of = fmt.Sprintf("%s of rule %s", printable(a.Key), d.Name)
	a.Before, err = s.stateOrBroken(ctx, d, key)
	return a, err
}

// does changes something after a question, or says what it would change.
func (s *session) does(ctx context.Context, a *resetAnswer, did string, do func(context.Context, runtime.Limit) error, question, would, is string) error {
	if !s.dry {
		if err := s.confirm(ctx, s.yes, "%s", question); err != nil {
			return err
		}
		before := fmt.Sprintf("%s, %d used", a.Before.State, a.Before.Used)
		if err := s.note(ctx, override.Target{Rule: a.Rule, Pattern: a.Key, Keys: true}, did, before, s.why); err != nil {
			return err
		}
		if err := do(ctx, a.limit); err != nil {
			return err
		}
		would = is
	}
	if s.json() {
		return s.printJSON(a)
	}
	s.printf("%s %s", a.of, would)
	return nil
}

// reset gives a key its whole limit back, and ends its block.
func (s *session) reset(ctx context.Context, args []string) error {
	a, err := s.toReset(ctx, args)
	if err != nil {
		return err
	}
	there, err := s.client.Exists(ctx, a.RedisKey).Result()
	switch {
	case err != nil:
		return err
	case there == 0:
		return nothingf("nothing is counted for %s in %s, under %s: there is nothing to reset", a.of, namespaces(s.namespace), printable(a.RedisKey))
	case a.Before.State == "broken": // that is a reason for a reset
		a.Before.RetryMS = new(int64)
	}
	state, used := a.Before.State, a.Before.Used
	err = s.does(ctx, a, "reset", s.limiter.Reset, fmt.Sprintf("forget all that is counted for %s (%s, %d used)", a.of, state, used),
		fmt.Sprintf("would be reset; it is %s, with %d used; nothing is changed", state, used), fmt.Sprintf("is reset; it was %s, with %d used", state, used))
	if err == nil && a.Before.RetryMS == nil && !s.dry {
		s.printf("it is still blocked, by an override: see ratectl unblock")
	}
	return err
}

// release ends a hold of a key, and nothing else.
func (s *session) release(ctx context.Context, args []string) error {
	a, err := s.toReset(ctx, args)
	switch {
	case err != nil:
		return err
	case !a.d.Hold:
		return usagef("rule %s holds back no calls: it is not for calls that go out to a peer", a.Rule)
	case a.Before.State != "held":
		return nothingf("%s is not held back: it is %s%s", a.of, a.Before.State, a.Before.because())
	}
	retry := "; it was held back for another " + a.Before.retry()
	return s.does(ctx, a, "release", s.limiter.Release, fmt.Sprintf("send calls again to a peer that has asked to hold back %s for another %s", a.of, a.Before.retry()),
		"would be released; nothing is changed"+retry, "is released"+retry)
}
