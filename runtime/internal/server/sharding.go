package server

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

const (
	shardingKeys  = 16          // keys of a check
	shardingTime  = time.Second // how long a check may take
	shardingTries = 4           // how many checks are made until one is conclusive
	// shardingWindow is how long a key of a check counts: longer than the check
	// takes.
	shardingWindow = 5 * time.Second
)

// checkMark is in the keys of a check, and in no other: no part of a key has it.
const checkMark = "%check:"

// A Sharding finds out whether the only server of a client is a proxy that
// sends a script to the server of its first key. Then a key has two states: what
// a script counts that has the key as its first, and what one counts that has
// another first.
type Sharding struct {
	Client  rediswire.Client
	Library *script.Library
	// Again is the time after which a check that was not conclusive is made again.
	// Each further one waits eight times as long.
	Again time.Duration
	// Sharded is called once if keys are sharded, Unknown if no check was conclusive, and
	// Panicked after a panic in the client.
	Sharded  func()
	Unknown  func(error)
	Panicked func(value any)
	// Found says that keys are sharded, once a check has found that.
	Found atomic.Bool

	made atomic.Int32
	work background.Group
}

// Made returns how many checks have been made.
func (s *Sharding) Made() int { return int(s.made.Load()) }

// Begin makes a check in the background, and others later as long as none is
// conclusive, unless it is closed. Key and other are two keys of one batch.
func (s *Sharding) Begin(key, other string) {
	s.work.Try(shardingTries, s.Again, func(last bool) bool {
		if s.Found.Load() {
			return true
		}
		conclusive, err := s.check(key, other)
		if last && !conclusive && !s.work.Closed() {
			s.Unknown(private.Hide(err))
		}
		return conclusive
	})
}

// Close returns when no check is under way any more, which takes [shardingTime] at most, and none will be.
func (s *Sharding) Close() { s.work.Close() }

// check makes a check, and reports whether its result is certain. It calls Sharded if keys are
// sharded.
func (s *Sharding) check(key, other string) (conclusive bool, err error) {
	defer func() {
		if value := recover(); value != nil {
			s.Panicked(value)
		}
	}()
	s.made.Add(1)
	sharded, err := s.sharding(key, other)
	if err != nil {
		return false, err
	}
	if sharded && !s.Found.Swap(true) {
		s.Sharded()
	}
	return true, nil
}

var errInconclusive = private.New("keys were lost or charged meanwhile")

// sharding charges some keys by one script, looks at each of them by a script of
// its own, and then at all of them by one script again. Sharding is proved by a
// key that is whole when it is first and charged when another is. One that is
// whole for both has been evicted, or Redis has been emptied.
func (s *Sharding) sharding(key, other string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), shardingTime)
	defer cancel()
	calls := shardingCalls(key, other)
	if err := s.execute(ctx, script.Take, calls); err != nil {
		return false, err
	}
	alone := make([][]terms.Call, len(calls))
	for i := range calls {
		alone[i] = []terms.Call{{Charges: []terms.Charge{calls[i].Charges[0]}}}
	}
	if err := s.execute(ctx, script.Peek, alone...); err != nil {
		return false, err
	}
	if err := s.execute(ctx, script.Peek, calls); err != nil {
		return false, err
	}
	lost := false
	for i := range calls {
		wholeAlone, whole := alone[i][0].Charges[0].Remaining == 1, calls[i].Charges[0].Remaining == 1
		if wholeAlone && !whole {
			return true, nil
		}
		lost = lost || wholeAlone || whole
	}
	if lost {
		return false, errInconclusive
	}
	return false, nil
}

// shardingCalls returns calls on keys that nobody else uses. They begin with the
// keys given, so that they have their hash tags, and the rights to them.
func shardingCalls(key, other string) []terms.Call {
	mark := checkMark + strconv.FormatUint(rand.Uint64(), 36) + ":"
	calls := make([]terms.Call, shardingKeys)
	for i := range calls {
		name := key
		if i%2 == 1 {
			name = other
		}
		calls[i].Charges = []terms.Charge{{
			Terms: terms.Terms{Algorithm: algorithm.FixedWindow, Window: shardingWindow.Microseconds(), Max: 1},
			Key:   []byte(name + mark + strconv.Itoa(i)),
			Cost:  1,
		}}
	}
	return calls
}

// execute has a script executed for each of some batches, outside of the store's
// own batches: which key is the first matters.
func (s *Sharding) execute(ctx context.Context, op script.Operation, batches ...[]terms.Call) error {
	server := s.Client.Patient(shardingTime)
	all := make([]*script.Execution, len(batches))
	for i, calls := range batches {
		times := make([]int64, len(calls))
		for j := range times {
			times[j] = 1
		}
		all[i] = new(script.Execution)
		all[i].Fill(op, calls, times, make([]script.Outcome, len(calls)), 0)
	}
	s.send(ctx, server, all)
	var unknown []*script.Execution // their servers need the text
	for _, e := range all {
		if script.Unknown(e.Err) {
			e.WithText = true
			unknown = append(unknown, e)
		}
	}
	if len(unknown) > 0 {
		s.send(ctx, server, unknown)
	}
	for i, e := range all {
		if e.Err != nil {
			return e.Err
		}
		for j := range batches[i] {
			if err := batches[i][j].Err; err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sharding) send(ctx context.Context, server rediswire.Server, executions []*script.Execution) {
	if panicked := s.Library.Send(ctx, server, executions); panicked != nil {
		s.Panicked(panicked)
	}
}

// ErrSharded is the error of calls on a server that shards keys.
var ErrSharded = private.New("keys are sharded by a proxy")
