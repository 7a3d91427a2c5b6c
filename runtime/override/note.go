package override

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/private"
)

// Note adds to the history what is done beside the overrides, such as the reset of a count,
// and returns its number. Of the record it takes Who, Why, Target, Did and Before. It reads
// no overrides: a broken hash keeps nobody from a reset. Note first, and act then: what
// cannot be noted is not done unseen.
func (e *Editor) Note(ctx context.Context, r Record) (id int64, err error) {
	if r.Did == "" || len(r.Did)+len(r.Before) > maxRecorded {
		return 0, errors.New("override: a note says in Did what is done, in 16 KiB at most")
	}
	r = Record{Who: r.Who, Why: r.Why, Target: r.Target, Did: r.Did, Before: r.Before}
	err = e.watched(ctx, func(tx *redis.Tx) error {
		now, err := tx.Time(ctx).Result()
		if err == nil {
			err = r.number(ctx, tx, historyKey(e.key), now, nil)
		}
		if err != nil {
			return e.wrap(private.Hide(err))
		}
		return e.write(ctx, tx, &r, nil)
	})
	return r.ID, err
}
