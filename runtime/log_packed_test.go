package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// How a packed log is laid out, see sliding_log_packed.lua.
const (
	packedNumber = 7
	packedEnds   = 8                                        // how many events there are at most before and behind the ring
	packedHeader = 8 + 14                                   // of a long log
	packedSlots  = packedHeader + 2*packedEnds*packedNumber // where its slots begin
)

// appendPacked appends a number as the script writes it.
func appendPacked(b []byte, n int64) []byte {
	var eight [8]byte
	binary.BigEndian.PutUint64(eight[:], uint64(n))
	return append(b, eight[1:]...)
}

// packedNumbers reads what appendPacked has written.
func packedNumbers(b []byte) []int64 {
	var all []int64
	for ; len(b) >= packedNumber; b = b[packedNumber:] {
		var eight [8]byte
		copy(eight[1:], b)
		all = append(all, int64(binary.BigEndian.Uint64(eight[:])))
	}
	return all
}

// packedEvents returns the times of the events in a log.
func packedEvents(value []byte) ([]int64, error) {
	switch {
	case len(value) >= 8 && value[0] == 0 && len(value)%packedNumber == 1:
		return packedNumbers(value[8:]), nil
	case len(value) <= packedSlots || value[0] != 1 || (len(value)-packedSlots)%packedNumber != 0:
		return nil, errors.New("no packed log")
	}
	slots := packedNumbers(value[packedSlots:])
	size, start, used := binary.BigEndian.Uint32(value[8:]), binary.BigEndian.Uint32(value[12:]), binary.BigEndian.Uint32(value[16:])
	front, back := int(value[20]), int(value[21])
	if int(size) != len(slots) || start >= size || used < 1 || used > size || front < 1 || front > packedEnds || back < 1 || back > packedEnds {
		return nil, errors.New("a packed log that is broken")
	}
	events := packedNumbers(value[packedSlots-front*packedNumber : packedSlots])
	for i := range used {
		events = append(events, slots[(start+i)%size])
	}
	return append(events, packedNumbers(value[packedHeader:packedHeader+back*packedNumber])...), nil
}

// packedLog returns a log of events, with so many slots more than it needs: -1 for
// one that is not long.
func packedLog(events []int64, spare int) []byte {
	if spare < 0 {
		b := make([]byte, 8)
		for _, at := range events {
			b = appendPacked(b, at)
		}
		return b
	}
	used := len(events) - packedEnds - 1
	size := used + spare
	b := make([]byte, packedSlots+size*packedNumber)
	b[0] = 1
	for i, n := range []int{size, spare, used} {
		binary.BigEndian.PutUint32(b[8+4*i:], uint32(n))
	}
	b[20], b[21] = packedEnds, 1
	appendPacked(b[:packedHeader], events[len(events)-1])
	for i, at := range events[:packedEnds] {
		appendPacked(b[:packedSlots-(packedEnds-i)*packedNumber], at)
	}
	for i, at := range events[packedEnds : len(events)-1] {
		appendPacked(b[:packedSlots+(spare+i)%size*packedNumber], at)
	}
	return b
}

// packedLen returns how many events a key holds.
func packedLen(tb testing.TB, client redis.Cmdable, key string) int64 {
	tb.Helper()
	value, err := client.Get(context.Background(), key).Bytes()
	if errors.Is(err, redis.Nil) {
		return 0
	}
	events, err2 := packedEvents(value)
	if err := errors.Join(err, err2); err != nil {
		tb.Fatalf("%q: %v", key, err)
	}
	for i := range events[1:] {
		if events[i] > events[i+1] {
			tb.Fatalf("events %d and %d are out of order", i, i+1)
		}
	}
	return int64(len(events))
}
