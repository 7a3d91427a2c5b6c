package judge

import (
	"encoding/binary"
	"os"
	"time"
)

// A Record is what became of one call.
type Record struct {
	// Order sorts all calls of a run as Redis executed them: the number of the
	// batch, and the call's place in it.
	Order uint64
	// Clock is the time of Redis during the batch, in microseconds.
	Clock int64
	// At is the time that the charge counts as, 0 if there was none.
	At int64
	// Wait is the RetryAfter of a refused call, and the delay of an admitted
	// one, in microseconds.
	Wait  uint32
	Limit uint16
	Cost  uint8
	// Admitted is 1 if the call was.
	Admitted uint8
}

// MaxBatch is the most calls that one batch has. With the two that tell the time they
// are as much as the runtime puts into one script, whatever they cost: 128 calls of cost
// 1, and half of that at a cost of 5 to a sorted set.
const MaxBatch = 62

// span is how far apart the orders of batches are.
const span = 128

// OrderOf returns the order of the call at a place in a batch.
func OrderOf(batch int64, place int) uint64 { return uint64(batch)*span + uint64(place) }

// Batch returns the number of the batch.
func (r *Record) Batch() int64 { return int64(r.Order / span) }

// A SharedRecord is what became of a call that shared a batch. When a refusal
// was is not known, but that it was between the call's start and its end, by
// the clock that Redis and all processes of the machine have in common.
type SharedRecord struct {
	Start, End int64 // in microseconds
	At         int64 // the time that the charge counts as; 0 if there was none
	Wait       time.Duration
	Left       int64
	Limit      uint16
	Cost       uint8
	Recalled   uint8 // 1 if the process decided the call by itself
}

// Append appends a record of either kind to b.
func Append[R any](b []byte, r *R) []byte {
	b, _ = binary.Append(b, binary.LittleEndian, r) // its size is fixed
	return b
}

// Parse returns what Append has written, after the records that it is given. A part of a
// record, of a process that was killed, is none.
func Parse[R any](records []R, b []byte) []R {
	for size := binary.Size(new(R)); len(b) >= size; b = b[size:] {
		var r R
		_, _ = binary.Decode(b, binary.LittleEndian, &r)
		records = append(records, r)
	}
	return records
}

// Read returns all records of some files.
func Read[R any](files ...string) (records []R, err error) {
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		records = Parse(records, b)
	}
	return records, nil
}
