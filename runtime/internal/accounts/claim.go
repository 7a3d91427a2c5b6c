package accounts

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rediswire"
)

const (
	claimEvery = time.Minute
	claimFor   = 36 * 24 * time.Hour // from the last time on: for longer than counts are kept
	claimTime  = 5 * time.Second

	// claimScript has a key say whose rule is billed, which is the first that asks, and returns that.
	claimScript = `local owner = redis.call('GET', KEYS[1]) or ARGV[1]
if owner == ARGV[1] then redis.call('SET', KEYS[1], owner, 'PX', ARGV[2]) end
return owner`
)

// claim claims the keys of an account for its rule, unless it has of late. Another program may have a
// rule of another name with the same keys, to which they are billed then.
func (a *account) claim(ctx context.Context, client rediswire.Client) error {
	if at := a.claimed.Load(); at != nil && time.Since(*at) < claimEvery {
		return nil
	}
	now := time.Now()
	command := []rediswire.Command{{Key: rediswire.FirstKey, Args: []string{"eval", claimScript, "1", "rate_limit:{ledger}:" + a.Start + a.Tag,
		a.Name, strconv.FormatInt(claimFor.Milliseconds(), 10)}}}
	client.Patient(claimTime).Do(ctx, command)
	owner, is := command[0].Value.(string)
	if err := command[0].Err; err != nil || !is {
		return cmp.Or(private.Hide(err), fmt.Errorf("%T is no name of a rule", command[0].Value))
	}
	a.owner.Store(&owner)
	a.claimed.Store(&now)
	return nil
}

// foreign reports whether the keys of the account are billed to a rule of another program.
func (a *account) foreign() bool {
	owner := a.owner.Load()
	return owner != nil && *owner != a.Name
}

// Shared are rules whose keys are billed to a rule of another program, with the name of that.
func (as *Accounts) Shared() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, a := range as.accounts.All() {
			if a.foreign() && !yield(a.Name, *a.owner.Load()) {
				return
			}
		}
	}
}
