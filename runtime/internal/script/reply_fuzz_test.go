package script

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// numbersIn reads the numbers of a reply from bytes, as varints.
func numbersIn(data []byte) (numbers []int64) {
	for len(data) > 0 {
		n, size := binary.Varint(data)
		if size <= 0 {
			break
		}
		numbers, data = append(numbers, n), data[size:]
	}
	return numbers
}

func bytesOf(numbers ...int64) (data []byte) {
	for _, n := range numbers {
		data = binary.AppendVarint(data, n)
	}
	return data
}

// TestReplyOfSettling decodes replies about three settled charges.
func TestReplyOfSettling(t *testing.T) {
	const now = 1_790_000_000_000_000
	for _, tt := range []struct {
		rest   []int64
		failed []bool // of the charges; nil: the reply is refused
	}{
		{nil, []bool{false, false, false}},
		{[]int64{2, replyFailed, 3, 'E', 'R', 'R'}, []bool{false, true, false}},
		{[]int64{1, replyFailed, 3, 'E', 'R', 'R', 3, replyFailed, 3, 'E', 'R', 'R'}, []bool{true, false, true}},
		{[]int64{0, replyFailed, 3, 'E', 'R', 'R'}, nil},
		{[]int64{4, replyFailed, 3, 'E', 'R', 'R'}, nil},
		{[]int64{2, replyFailed, 4, 'E', 'R', 'R'}, nil},
		{[]int64{2, replyLong, 3, 'E', 'R', 'R'}, nil},
		{[]int64{2, replyFailed}, nil},
		{[]int64{2}, nil},
	} {
		e := &Execution{op: Settle}
		for range 3 {
			e.calls = append(e.calls, terms.Call{Charges: []terms.Charge{{Err: ErrReply}}, Err: ErrReply})
		}
		e.decode(append([]int64{now}, tt.rest...), nil)
		if refused := tt.failed == nil; refused != (e.Err == ErrReply) {
			t.Errorf("%v: %v", tt.rest, e.Err)
		}
		for i := range tt.failed {
			if c := &e.calls[i]; tt.failed[i] != (c.Err != nil) || c.Charges[0].Err != nil {
				t.Errorf("%v: charge %d: %v, %v", tt.rest, i, c.Err, c.Charges[0].Err)
			}
		}
	}
}

// FuzzReply decodes any numbers as the reply about some calls. Either the whole is
// refused and every call has that error, or each call has an error of its own or
// results that, written again, are the reply.
func FuzzReply(f *testing.F) {
	const now = 1_790_000_000_000_000
	f.Add(bytesOf(), uint8(1), uint8(1), uint8(1))
	f.Add(bytesOf(now, 4, 1_000_000), uint8(1), uint8(1), uint8(1))
	f.Add(bytesOf(now, replyLong, 2, 0, 500_000, 1_000_000, now, 0), uint8(1), uint8(1), uint8(3))
	f.Add(bytesOf(now, 4, 10, replyBlocked, 0, 0, 5, 5, 0, 0), uint8(1), uint8(2), uint8(1))
	f.Add(bytesOf(now, replyFailed, 3, 'E', 'R', 'R', 4, 10), uint8(2), uint8(1), uint8(1))
	f.Add(bytesOf(now, replyFailed, 1<<40), uint8(1), uint8(1), uint8(1))
	f.Add(bytesOf(now, replyLong, 9, 0, 1, 1, now, 0), uint8(1), uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, calls, charges, times uint8) {
		numbers := numbersIn(data)
		e := &Execution{}
		for range calls%4 + 1 {
			e.calls = append(e.calls, terms.Call{Charges: make([]terms.Charge, charges%3+1)})
			e.times = append(e.times, int64(times%5)+1)
		}
		e.outcomes = make([]Outcome, len(e.calls))
		e.decode(slices.Clone(numbers), nil)
		if e.Err != nil {
			for i := range e.calls {
				if e.calls[i].Err != e.Err || !errors.Is(e.Err, ErrReply) {
					t.Fatalf("%v: call %d has %v, the execution %v", numbers, i, e.calls[i].Err, e.Err)
				}
			}
			return
		}
		again := []int64{numbers[0]}
		for i := range e.calls {
			call := &e.calls[i]
			if call.Err != nil {
				return // texts of errors are made readable
			}
			if n := e.outcomes[i].Admitted; n < 0 || n > e.times[i] {
				t.Fatalf("%v: %d of %d calls are admitted", numbers, n, e.times[i])
			}
			for j := range call.Charges {
				if numbers[len(again)] >= 0 {
					again = append(again, call.Charges[j].Remaining, numbers[len(again)+1])
					continue
				}
				if got := call.Charges[j].Allowed; got != (numbers[len(again)+1] > 0) {
					t.Fatalf("%v: charge %d of call %d is allowed: %v", numbers, j, i, got)
				}
				again = append(again, numbers[len(again):len(again)+longFields]...)
			}
		}
		if !slices.Equal(again, numbers[:len(again)]) {
			t.Fatalf("%v was read as %v", numbers, again)
		}
	})
}
