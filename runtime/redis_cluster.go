package runtime

import (
	"bytes"
	"context"
)

// A part is the share of some calls whose keys lie in one slot.
type part struct {
	calls   []Call
	origin  []int   // the call that each of calls is a part of
	charges [][]int // the charge in it that each charge is

	todo, now []Call // what is not executed yet, and what is under way
	terminal  *terminal
	ticket    *ticket
	err       error
}

// together reports whether one script can decide calls.
func (s *RedisStore) together(calls []Call) bool {
	first, known := 0, false
	for i := range calls {
		for j := range calls[i].Charges {
			slot := s.slot(calls[i].Charges[j].Key)
			if known && slot != first {
				return false
			}
			first, known = slot, true
		}
	}
	return true
}

// parts divides calls by slot. The charges of the parts are copies.
func (s *RedisStore) parts(calls []Call) map[int]*part {
	parts := make(map[int]*part)
	for i := range calls {
		for j := range calls[i].Charges {
			slot := s.slot(calls[i].Charges[j].Key)
			p := parts[slot]
			if p == nil {
				p = new(part)
				parts[slot] = p
			}
			if n := len(p.origin); n == 0 || p.origin[n-1] != i {
				p.calls = append(p.calls, Call{})
				p.origin = append(p.origin, i)
				p.charges = append(p.charges, nil)
			}
			last := len(p.calls) - 1
			p.calls[last].Charges = append(p.calls[last].Charges, calls[i].Charges[j])
			p.charges[last] = append(p.charges[last], j)
		}
	}
	for _, p := range parts {
		p.todo = p.calls
	}
	return parts
}

// decideApart decides calls whose keys no single script can span: each part is
// charged by itself, and what was charged for a call that is not admitted is
// given back.
func (s *RedisStore) decideApart(ctx context.Context, operation string, calls []Call) error {
	parts := s.parts(calls)
	s.travelApart(ctx, operation, parts)
	for i := range calls {
		calls[i].Err = nil
	}
	for _, p := range parts {
		for i, origin := range p.origin {
			if err := p.calls[i].Err; err != nil {
				calls[origin].Err = err
				continue
			}
			for k, j := range p.charges[i] {
				calls[origin].Charges[j].Result = p.calls[i].Charges[k].Result
			}
		}
	}
	if operation == "take" {
		s.giveBack(ctx, calls)
	}
	return nil
}

// travelApart has the parts executed, all at the same time, but of a part only
// maxAboard calls.
func (s *RedisStore) travelApart(ctx context.Context, operation string, parts map[int]*part) {
	for rest := len(parts); rest > 0; {
		var lost error // why it is not known where any key is: to wait for that once is enough
		for slot, p := range parts {
			if p.now = p.todo[:min(len(p.todo), maxAboard)]; len(p.now) == 0 {
				continue
			}
			if p.err = lost; lost == nil {
				p.terminal, p.err = s.nodes.terminal(ctx, p.now[0].Charges[0].Key, slot)
			}
			if p.err != nil && !s.nodes.ready.Load() {
				lost = p.err
			}
			if p.err == nil {
				p.ticket, p.err = p.terminal.enter(ctx, operation, s.nodes.slot(slot), p.now, instant(), false)
			}
		}
		rest = 0
		for _, p := range parts {
			if len(p.now) == 0 {
				continue
			}
			if p.err == nil {
				p.err = p.ticket.wait(ctx, p.now, p.terminal.breaker)
			}
			if p.err != nil {
				for i := range p.now {
					p.now[i].Err = p.err
				}
			}
			p.todo = p.todo[len(p.now):]
			rest += len(p.todo)
		}
	}
}

// giveBack refunds what was charged for calls that are not admitted. It has
// the store's timeout to itself, since the context may have ended. If Redis
// fails just now the share stays charged until it leaves the window; the
// decisions stand.
func (s *RedisStore) giveBack(ctx context.Context, calls []Call) {
	var charged []Charge
	for i := range calls {
		if calls[i].Err == nil && calls[i].admitted() {
			continue
		}
		for j := range calls[i].Charges {
			if c := &calls[i].Charges[j]; c.At != 0 {
				charged = append(charged, *c)
				c.Remaining += c.Cost
				c.At, c.Delay = 0, 0
			}
		}
	}
	if len(charged) > 0 {
		_ = s.Refund(context.WithoutCancel(ctx), charged)
	}
}

// admitted reports whether every limit that may deny the call has room.
func (c *Call) admitted() bool {
	for i := range c.Charges {
		if !c.Charges[i].Allowed && c.Charges[i].Rule.Mode == Enforce {
			return false
		}
	}
	return true
}

// clusterSlots is how many slots a cluster has.
const clusterSlots = 16384

// clusterSlot returns the slot of a key on a Redis Cluster: the CRC16 of the
// key, or of its first {tag}, modulo 16384.
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)
func clusterSlot(key []byte) int {
	var crc uint16
	for _, b := range hashTag(key) {
		crc = crc<<8 ^ crc16[byte(crc>>8)^b]
	}
	return int(crc % clusterSlots)
}

// hashTag returns the part of a key between its first { and the next }, or the
// key if there is none or nothing in it.
func hashTag(key []byte) []byte {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if length := bytes.IndexByte(key[open+1:], '}'); length > 0 {
			return key[open+1 : open+1+length]
		}
	}
	return key
}

// crc16 is the table of CRC-16/XMODEM, polynomial 0x1021.
var crc16 = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
