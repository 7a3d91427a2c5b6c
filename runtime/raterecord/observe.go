package raterecord

import (
	"context"
	"math/bits"

	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// call leaves a call in the queue.
func (r *Recorder) call(ctx context.Context, ev observe.CallEvent) {
	n, chosen := r.chosen(len(ev.Limits), func(i int) []byte { return ev.Limits[i].Key })
	if n == 0 {
		return
	}
	// These come first, since functions of the program must not hold a place in the queue.
	at, label := ev.Decided, ""
	if r.virtual {
		at = r.now()
	}
	if r.label != nil {
		label = r.callLabel(ctx)
	}
	position, ok := r.queue.claim(n)
	if !ok {
		return
	}
	for set, p := chosen, position; set != 0; set, p = set&(set-1), p+1 {
		l, s := &ev.Limits[bits.TrailingZeros32(set)], r.queue.at(p)
		s.settles, s.limits, s.partial = false, uint8(n), n < len(ev.Limits)
		s.at, s.waited, s.label = at.Sub(r.began), ev.Waited.Microseconds(), label
		s.verdict, s.source = l.Verdict, l.Source
		s.rule, s.base, s.zone, s.anchor = l.Rule, l.Declared, l.Zone, l.Anchor
		s.cost, s.max, s.wait, s.charged = l.Cost, l.Max, l.Wait.Microseconds(), l.Charged
		s.name(l.Key, l.Share, l.Weight)
	}
	for p := position; p < position+uint64(n); p++ {
		r.queue.publish(p)
	}
}

// settlement leaves a settlement in the queue.
func (r *Recorder) settlement(_ context.Context, ev observe.SettlementEvent) {
	n, chosen := r.chosen(len(ev.Limits), func(i int) []byte { return ev.Limits[i].Key })
	if n == 0 {
		return
	}
	at := r.now().Sub(r.began)
	position, ok := r.queue.claim(n)
	if !ok {
		return
	}
	for set, p := chosen, position; set != 0; set, p = set&(set-1), p+1 {
		l, s := &ev.Limits[bits.TrailingZeros32(set)], r.queue.at(p)
		s.settles, s.limits, s.at = true, uint8(n), at
		s.rule, s.base, s.zone, s.anchor = l.Rule, l.Declared, l.Zone, l.Anchor
		s.cost, s.max, s.settled, s.charged = l.Cost, l.Max, l.Settled, l.Charged
		s.name(l.Key, l.Share, l.Weight)
	}
	for p := position; p < position+uint64(n); p++ {
		r.queue.publish(p)
	}
}

// chosen returns which limits of an event are of callers that are recorded, as bits, and how many.
func (r *Recorder) chosen(limits int, key func(int) []byte) (n int, set uint32) {
	limits = min(limits, rule.MaxLimits)
	if r.share == 1 {
		return limits, 1<<limits - 1
	}
	for i := range limits {
		if k := key(i); len(k) == 0 || r.names.chooses(k) {
			set |= 1 << i
		}
	}
	return bits.OnesCount32(set), set
}

// callLabel returns what the program says of a call. A panic says nothing.
func (r *Recorder) callLabel(ctx context.Context) (label string) {
	defer func() { _ = recover() }()
	label = r.label(ctx)
	return label[:min(len(label), maxLabel)]
}
