// Package operate is what those who operate limits ask and change, whoever prints it: ratectl and
// the live page.
//
// It is handed a Redis or a limiter, and rules. Its functions return what they found as structs, and
// print nothing. What they say is never a guess: a state that nobody can know is [Unknown].
package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A Rule is a declared rule.
type Rule struct {
	*runtime.Rule          // as if it refused calls
	Shadow        bool     // it refuses none
	Place         string   // file and line
	Parts         []string // of the key, as they are written
	AnyKey        bool     // the parts of the key are not known
	ByCall        string   // the expression that is the max of a call, or empty
	Reference     string   // by which a user names it: its name, or its prefix if it has none or another has it
}

// A Core is a Redis and a namespace, with the rules that are known.
type Core struct {
	Client    redis.UniversalClient
	Store     *runtime.RedisStore
	Limiter   *runtime.Limiter // with the overrides in force, but for their modes
	Namespace string
	Rules     []Rule
	Modes     runtime.Overrides
	Near      float64 // the share of its limit from which on a key is near it
	Max       int64   // of calls that bring their own; 0: not known
	Secret    []byte  // of [runtime.WithRefusals]
	Hash      string  // the key of the hash with overrides, or empty
	Rejected  bool    // limiters reject the hash: the Limiter here has none
	Timeout   time.Duration
	// Warn, if not nil, is told what a user is to know beside an answer.
	Warn func(text string)
	// Explain, if not nil, says of an error of Redis what helps.
	Explain func(error) error
	// Scanning, if not nil, is called before all keys are looked at, and what it returns afterwards.
	Scanning func(context.Context) (stop func())

	// Changes, if not nil, changes the overrides in place of an editor of the Hash.
	Changes Editor

	asked   map[[2]string]int64   // the max of the last refusal of a rule and a key, where calls bring it
	differs map[string]Difference // the rules that processes have in several forms, see [Core.Compare]
}

// NearShare is the share of its limit from which on a key is near it, if nobody says.
const NearShare = 0.8

// NewCore returns a core that asks a limiter of this process about rules of its, by the overrides that it has in force.
func NewCore(l *runtime.Limiter, rules []observe.RuleState) *Core {
	c := &Core{Limiter: l, Near: NearShare}
	for _, s := range rules {
		r := Rule{Rule: s.Rule, Place: s.Rule.Source, Reference: s.Rule.Name, AnyKey: true}
		if s.Rule.Max == 0 {
			r.ByCall = "by call"
		}
		c.Rules = append(c.Rules, r)
	}
	return c
}

func (c *Core) Close() {
	if c.Limiter != nil {
		_ = c.Limiter.Close()
	}
	if c.Store != nil {
		_ = c.Store.Close()
	}
	if c.Client != nil {
		_ = c.Client.Close()
	}
}

func (c *Core) warnf(format string, args ...any) {
	if c.Warn != nil {
		c.Warn(fmt.Sprintf(format, args...))
	}
}

// maxNamed is how many rules are named of which the same is to be said.
const maxNamed = 5

// WarnOf warns of the first of several rules in the words for each, and says of how many more that is to be said.
func (c *Core) WarnOf(rules []string) {
	for _, text := range rules[:min(len(rules), maxNamed)] {
		c.warnf("%s", text)
	}
	if more := len(rules) - maxNamed; more > 0 {
		c.warnf("and the same is to be said of %d more rules", more)
	}
}

func (c *Core) explained(err error) error {
	if c.Explain == nil {
		return InFull(err)
	}
	return c.Explain(err)
}

// within returns a context for what is answered soon.
func (c *Core) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.Timeout)
}

// LimitOf returns the limit of a rule for a key. If shares divide it, it is of one that is behind all others, so
// what it would find is what is left.
func LimitOf(r *runtime.Rule, key *runtime.Key) runtime.Limit {
	if r.Headroom != 0 {
		return r.Limit(key).WithShare(nil, rule.MaxWeight)
	}
	return r.Limit(key)
}

// LimitOf returns the limit of a rule for a key. Where calls bring their max it is Max, that of the last
// refusal, or one that nobody reaches.
func (c *Core) LimitOf(r Rule, key *runtime.Key) runtime.Limit {
	limit, _ := c.limitOf(r, key)
	return limit
}

// limitOf is LimitOf. It also returns the max that stands for that of a call if nobody knows it, or 0.
func (c *Core) limitOf(r Rule, key *runtime.Key) (limit runtime.Limit, standsIn int64) {
	limit = LimitOf(r.Rule, key)
	if c.Max > 0 {
		return limit.WithMax(c.Max), 0
	}
	if r.ByCall == "" {
		return limit, 0
	}
	for _, text := range []string{key.String(), c.Hidden(key.String())} {
		if most, is := c.asked[[2]string{r.Name, text}]; is {
			return limit.WithMax(most), most
		}
	}
	return limit.WithMax(rule.MaxLog), rule.MaxLog
}

// Hidden returns a key as processes tell it that hide keys by the secret.
func (c *Core) Hidden(key string) string {
	if len(c.Secret) == 0 {
		return bridge.LimiterOf(c.Limiter).ToldKey(key)
	}
	return spec.HiddenKey(c.Secret, key)
}

// AskedBefore learns with which max calls were refused that bring their own, while their refusals may
// still count. Without the right to read that, none is known.
func (c *Core) AskedBefore(ctx context.Context) {
	longest := time.Duration(0)
	for _, r := range c.Rules {
		if r.ByCall != "" {
			longest = max(longest, r.Window, r.Block, 2*time.Minute)
		}
	}
	c.asked = nil
	if longest == 0 || c.Max > 0 {
		return
	}
	if refused, err := c.Refused(ctx, min(longest, bridge.KeepRefusals), 0); err == nil {
		c.asked = refused.Brought()
	}
}
