package main

import (
	"context"
	"fmt"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

type clearing struct {
	Rule     string        `json:"rule"`
	Key      string        `json:"key"`
	RedisKey string        `json:"redis_key"`
	Before   operate.State `json:"before"`
	DryRun   bool          `json:"dry_run,omitempty"`
	d        operate.Rule
	key      *runtime.Key
}

func (l *clearing) String() string {
	return fmt.Sprintf("%s of rule %s", printed.Text(l.Key), l.Rule)
}

// toClear returns the key that arguments name as it is now, also if that is broken.
func (s *session) toClear(ctx context.Context, args []string) (*clearing, error) {
	d, key, err := s.keyNamed(args)
	if err != nil {
		return nil, err
	}
	l := &clearing{Rule: d.Name, Key: key.Pattern(), RedisKey: bridge.LimiterOf(s.Limiter).RedisKey(s.LimitOf(d, key)), DryRun: s.dry, d: d, key: key}
	l.Before, err = s.State(ctx, d, key)
	return l, err
}

// clear does something to the counts after a question, or says what it would do.
func (s *session) clear(ctx context.Context, did string, l *clearing, question, would, is string) error {
	if !s.dry {
		if err := s.confirm(ctx, "%s", question); err != nil {
			return err
		}
		if err := s.Clear(ctx, did, l.d, l.key, l.Before, override.Record{Who: s.author(), Why: s.why}); err != nil {
			return err
		}
		would = is
	}
	if s.json() {
		return s.printJSON(l)
	}
	s.printf("%v %s", l, would)
	return nil
}

func (s *session) reset(ctx context.Context, args []string) error {
	l, err := s.toClear(ctx, args)
	if err != nil {
		return err
	}
	there, err := s.Client.Exists(ctx, l.RedisKey).Result()
	if err != nil {
		return err
	}
	if there == 0 {
		return nothingf("nothing is counted for %v in %s, under %s: there is nothing to reset", l, operate.Namespaces(s.Namespace), printed.Text(l.RedisKey))
	}
	if l.Before.State == operate.Broken { // that is a reason for a reset
		l.Before.RetryMS = new(int64)
	}
	state, used := l.Before.State, l.Before.Used
	err = s.clear(ctx, operate.Reset, l, fmt.Sprintf("forget all that is counted for %v (%s, %d used)", l, state, used),
		fmt.Sprintf("would be reset; it is %s, with %d used; nothing is changed", state, used), fmt.Sprintf("is reset; it was %s, with %d used", state, used))
	if err == nil && l.Before.RetryMS == nil && !s.dry {
		s.printf("it is still blocked, by an override: see ratectl unblock")
	}
	return err
}

func (s *session) release(ctx context.Context, args []string) error {
	l, err := s.toClear(ctx, args)
	if err != nil {
		return err
	}
	if !l.d.Hold {
		return usagef("rule %s holds back no calls: it is not for calls that go out to a peer", l.Rule)
	}
	if l.Before.State != operate.Held {
		return nothingf("%v is not held back: it is %s%s", l, l.Before.State, because(l.Before))
	}
	retry := "; it was held back for another " + retryOf(l.Before)
	return s.clear(ctx, operate.Release, l, fmt.Sprintf("send calls again to a peer that has asked to hold back %v for another %s", l, retryOf(l.Before)),
		"would be released; nothing is changed"+retry, "is released"+retry)
}
