package main

import (
	"context"
	"fmt"

	"github.com/rategen/rategen/runtime"
)

// A resetAnswer is what reset or release has done.
type resetAnswer struct {
	Rule     string   `json:"rule"`
	Key      string   `json:"key"`
	RedisKey string   `json:"redis_key"`
	Before   keyState `json:"before"`
	DryRun   bool     `json:"dry_run,omitempty"`
}

// reset gives a key its whole limit back, and ends its block.
func reset(ctx context.Context, o *operator, args []string) error {
	d, limit, key, err := o.limitNamed(args)
	if err != nil {
		return err
	}
	answer := resetAnswer{Rule: d.Name, Key: key.Pattern(), RedisKey: o.limiter.RedisKey(limit)}
	there, err := o.client.Exists(ctx, answer.RedisKey).Result()
	switch {
	case err != nil:
		return o.explained(err)
	case there == 0:
		return nothingf("nothing is counted for %s of rule %s in %s, under %s: there is nothing to reset",
			printable(answer.Key), d.Name, namespaces(o.namespace), printable(answer.RedisKey))
	}
	answer.Before, err = o.state(ctx, d, key)
	if runtime.ClassOf(err) == runtime.ClassWrongType { // that is a reason for a reset
		answer.Before, err = keyState{Rule: d.Name, Key: answer.Key, State: "broken", RetryMS: new(int64)}, nil
	}
	if err != nil {
		return err
	}
	if answer.DryRun = o.dry; o.dry {
		if o.json() {
			return o.printJSON(answer)
		}
		o.printf("%s of rule %s would be reset; it is %s, with %d used; nothing is changed", printable(answer.Key), d.Name, answer.Before.State, answer.Before.Used)
		return nil
	}
	err = o.confirm(ctx, "forget all that is counted for %s of rule %s (%s, %d used)", printable(answer.Key), d.Name, answer.Before.State, answer.Before.Used)
	if err != nil {
		return err
	}
	if err := o.limiter.Reset(ctx, limit); err != nil {
		return o.explained(err)
	}
	if o.json() {
		return o.printJSON(answer)
	}
	o.printf("%s of rule %s is reset; it was %s, with %d used", printable(answer.Key), d.Name, answer.Before.State, answer.Before.Used)
	if answer.Before.RetryMS == nil {
		o.printf("it is still blocked, by an override: see ratectl unblock")
	}
	return nil
}

// release ends a hold of a key, and nothing else.
func release(ctx context.Context, o *operator, args []string) error {
	d, limit, key, err := o.limitNamed(args)
	if err != nil {
		return err
	}
	answer := resetAnswer{Rule: d.Name, Key: key.Pattern(), RedisKey: o.limiter.RedisKey(limit), DryRun: o.dry}
	if !d.Hold {
		return usagef("rule %s holds back no calls: it is not for calls that go out to a peer", d.Name)
	}
	if answer.Before, err = o.state(ctx, d, key); err != nil {
		return err
	}
	of := fmt.Sprintf("%s of rule %s", printable(answer.Key), d.Name)
	if answer.Before.State != "held" {
		return nothingf("%s is not held back: it is %s%s", of, answer.Before.State, answer.Before.because())
	}
	is := "would be released; nothing is changed"
	if !o.dry {
		is = "is released"
		if err := o.confirm(ctx, "send calls again to a peer that has asked to hold back %s for another %s", of, answer.Before.retry()); err != nil {
			return err
		}
		if err := o.limiter.Release(ctx, limit); err != nil {
			return o.explained(err)
		}
	}
	if o.json() {
		return o.printJSON(answer)
	}
	o.printf("%s %s; it was held back for another %s", of, is, answer.Before.retry())
	return nil
}
