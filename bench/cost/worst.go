package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// An extreme is the largest state that a limit can have, of which a half has
// left its window, and the largest cost.
type extreme struct {
	directive string
	state     string
	rule      runtime.Rule
	cost      int64
	fill      func(s *state)
}

// half is so much that two charges of it use all of what is counted.
const half = rule.MaxCount / 2

var extremes = []extreme{
	{"`sliding-log` `storage=zset`", "1,000,000 events", runtime.Rule{}, rule.MaxLogCost, fillLog},
	{"`sliding-log` `storage=zset` `resolution=1s`", "1,000,000 events", runtime.Rule{Resolution: time.Second}, rule.MaxLogCost, fillLog},
	{"`sliding-log` `storage=packed`", "1,000,000 events", runtime.Rule{Storage: runtime.StoragePacked}, rule.MaxLogCost, fillPacked},
	{"`sliding-log` `storage=packed` `resolution=1s`", "1,000,000 events", runtime.Rule{Storage: runtime.StoragePacked, Resolution: time.Second}, rule.MaxLogCost, fillPacked},
	{"`sliding-counter` `buckets=1000`", "1,000 counts", runtime.Rule{Algorithm: runtime.SlidingCounter, Buckets: rule.EqualBuckets(1000)}, half, fillCounter},
	{"`sliding-counter` `buckets=auto`", "1,024 counts", runtime.Rule{Algorithm: runtime.SlidingCounter, Buckets: rule.AdaptiveBuckets()}, half, fillCounter},
	{"`fixed-window`", "one count", runtime.Rule{Algorithm: runtime.FixedWindow}, half, nil},
	{"`token-bucket`", "one level", runtime.Rule{Algorithm: runtime.TokenBucket}, half, nil},
	{"`concurrency`", "1,000,000 permits", runtime.Rule{Algorithm: runtime.Concurrency}, rule.MaxLogCost, fillPermits},
	{"`leaky-bucket` with `wait`", "one level", runtime.Rule{Algorithm: runtime.LeakyBucket, Wait: 30 * time.Minute}, half, nil},
}

// A state is what is to be written under a key.
type state struct {
	key    string
	rule   *runtime.Rule
	begin  int64 // two windows before now, in microseconds
	window int64
	middle int64 // when something was charged that is in the window for half of it
	write  func(args ...any)
}

// fillLog stores as many events as a sorted set holds, of charges that cost the most.
func fillLog(s *state) {
	const events, each = rule.MaxLog, rule.MaxLogCost
	for i := range int64(events / each) {
		at := s.begin + 2*s.window/(events/each)*i
		if slice := s.rule.Resolution.Microseconds(); slice > 0 {
			at -= at % slice
		}
		if i == events/each*3/4 {
			s.middle = at
		}
		args := []any{"ZADD", s.key}
		for j := range int64(each) {
			args = append(args, number(at), number(at+j))
		}
		s.write(args...)
	}
}

// fillPacked stores as much in a string, as sliding_log_packed.lua has it: all but
// the first 8 events and the last one in the slots.
func fillPacked(s *state) {
	const events, each, ends = rule.MaxLog, rule.MaxLogCost, 8
	times := make([]byte, 0, 7*events)
	for i := range int64(events) {
		at := s.begin + 2*s.window/(events/each)*(i/each)
		if slice := s.rule.Resolution.Microseconds(); slice > 0 {
			at -= at % slice
		}
		if i == events/4*3 {
			s.middle = at
		}
		eight := binary.BigEndian.AppendUint64(nil, uint64(at))
		times = append(times, eight[1:]...)
	}
	value := []byte{1, 7: 0} // no block
	for _, n := range []uint32{events - ends - 1, 0, events - ends - 1} {
		value = binary.BigEndian.AppendUint32(value, n)
	}
	value = append(value, ends, 1)
	value = append(value, times[7*(events-1):]...)
	value = append(value, make([]byte, 7*(ends-1))...)
	value = append(value, times[:7*(events-1)]...)
	s.write("SET", s.key, value)
}

// fillPermits stores as many permits as there may be, half of which have lapsed.
func fillPermits(s *state) {
	const permits, each = rule.MaxLog, rule.MaxLogCost
	at := s.begin
	for i := range int64(permits / each) {
		at = s.begin + 2*s.window/(permits/each)*i
		args := []any{"ZADD", s.key}
		for j := range int64(each) {
			args = append(args, number(at+s.window), number(at-j))
		}
		if i == permits/each*3/4 {
			s.middle = at
		}
		s.write(args...)
	}
	s.write("ZADD", s.key, number(-at), "last", "-1", "reset", "0", "mean")
}

// fillCounter stores as many buckets as there are in a window, half of them
// before it.
func fillCounter(s *state) {
	n := int64(1000)
	if s.rule.Buckets == rule.AdaptiveBuckets() {
		n = 1024
	}
	width := s.window / n
	now := s.begin + 2*s.window
	last := now - now%width
	s.middle = last - n*3/4*width
	numbers := []int64{0, now + s.window, n, last - n/2*width - 1, last - (n/2+1)*width, last - n/2*width, 1, last - (n/2+n)*width}
	for i := n - 1; i > 0; i-- {
		numbers = append(numbers, last-(n/2+i)*width, 1)
	}
	value := []byte{2}
	for _, n := range numbers {
		value = append(value, binary.BigEndian.AppendUint64(nil, uint64(n))[1:]...)
	}
	s.write("SET", s.key, value)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// worst prints what a decision costs at most.
func (m measured) worst(ctx context.Context) error {
	fmt.Fprintf(m.out, "\nThe most work of one decision, in µs of Redis (%s, the quickest of several, since what else the machine does only adds to it). The state is the largest there is, and half of it has left the window, or all of it in the column \"idle\"; the cost is the largest that a log takes, and any for the others:\n\n", m.product)
	fmt.Fprint(m.out, "| | state | cost | admitted | idle | refused | refund |\n|---|---|---:|---:|---:|---:|---:|\n")
	for i := range extremes {
		e := &extremes[i]
		e.rule.Window, e.rule.Max = time.Hour, rule.MaxLog
		cost := number(e.cost)
		if e.cost == half {
			e.rule.Max, cost = rule.MaxCount, "any"
		}
		w := &worker{ctx, m.client, e, m.store, "worst:" + number(int64(i))}
		fmt.Fprintf(m.out, "| %s | %s | %s |", e.directive, e.state, cost)
		if err := w.row(m.out); err != nil {
			return fmt.Errorf("%s: %w", e.directive, err)
		}
		fmt.Fprintln(m.out)
	}
	return nil
}

// A worker measures one extreme.
type worker struct {
	ctx    context.Context
	client *redis.Client
	*extreme
	store *runtime.RedisStore
	key   string
}

// stored reports whether every event or permit is.
func (w *worker) stored() bool {
	return w.rule.Algorithm == runtime.SlidingLog || w.rule.Algorithm == runtime.Concurrency
}

// row prints the numbers of a row.
func (w *worker) row(out io.Writer) error {
	const often, seldom = 31, 5
	take := func(max int64, allowed bool) func(int64) error {
		return func(int64) error {
			calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: &w.rule, Key: []byte(w.key), Max: max, Cost: w.cost, Wait: w.rule.Wait}}}}
			if err := rawstore.Wrap(w.store).Take(w.ctx, calls); err != nil || calls[0].Err != nil || calls[0].Charges[0].Allowed != allowed {
				return fmt.Errorf("%+v, %w", calls[0], err)
			}
			return nil
		}
	}
	refund := func(at int64) error {
		return rawstore.Wrap(w.store).Settle(w.ctx, []rawstore.Charge{{Rule: &w.rule, Key: []byte(w.key), Max: w.rule.Max, Cost: w.cost, Result: rawstore.Result{At: at}}})
	}
	small := w.cost // a max that the state uses up
	if w.stored() {
		small = rule.MaxLog / 4 // so that what is to leave is in the middle
	}
	for _, column := range []struct {
		times int
		idle  time.Duration
		fresh bool // each time
		do    func(at int64) error
	}{
		{often, 0, !w.stored(), take(w.rule.Max, true)},
		{seldom, w.rule.Window, true, take(w.rule.Max, true)},
		{often, 0, false, take(small, false)},
		{seldom, 0, true, refund},
	} {
		if column.idle > 0 && w.fill == nil {
			fmt.Fprint(out, " |") // the key has gone
			continue
		}
		var least int
		var middle int64
		for i := range column.times {
			if i == 0 || column.fresh {
				var err error
				if middle, err = w.begin(column.idle); err != nil {
					return err
				}
			}
			if err := w.client.ConfigResetStat(w.ctx).Err(); err != nil {
				return err
			}
			if err := column.do(middle); err != nil {
				return err
			}
			_, spent, err := commandStats(w.ctx, w.client)
			if err != nil {
				return err
			}
			if i == 0 || spent < least {
				least = spent
			}
		}
		fmt.Fprintf(out, " %d |", least)
	}
	return nil
}

// begin writes the state anew, as old as that, and returns the time of a charge
// in the middle of what is in the window.
func (w *worker) begin(idle time.Duration) (middle int64, err error) {
	now, err := w.client.Time(w.ctx).Result()
	if err != nil {
		return 0, err
	}
	pipe := w.client.Pipeline()
	pipe.Unlink(w.ctx, w.key)
	window := w.rule.Window.Microseconds()
	s := &state{w.key, &w.rule, now.Add(-idle).UnixMicro() - 2*window, window, 0, func(args ...any) { pipe.Do(w.ctx, args...) }}
	if w.fill != nil {
		w.fill(s)
	}
	if _, err = pipe.Exec(w.ctx); err != nil || w.fill != nil {
		return s.middle, err
	}
	calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: &w.rule, Key: []byte(w.key), Max: w.rule.Max, Cost: w.cost, Wait: w.rule.Wait}}}}
	err = rawstore.Wrap(w.store).Take(w.ctx, calls)
	return calls[0].Charges[0].At, err
}
