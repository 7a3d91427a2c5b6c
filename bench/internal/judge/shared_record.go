package judge

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"time"
)

// A SharedRecord is what became of a call that shared a batch. When a denial
// was is not known, but that it was between the call's start and its end, by
// the clock that Redis and all processes of the machine have in common.
type SharedRecord struct {
	Start, End int64 // in microseconds
	At         int64 // the time that the charge counts as; 0 if there was none
	Wait       time.Duration
	Left       int64
	Limit      uint16
	Cost       uint8
	Recalled   uint8 // 1 if the process denied the call by itself
}

// SharedSize is what a SharedRecord takes in a file.
var SharedSize = binary.Size(SharedRecord{})

// Append appends the record to b.
func (r *SharedRecord) Append(b []byte) []byte {
	for _, n := range []int64{r.Start, r.End, r.At, int64(r.Wait), r.Left} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = binary.LittleEndian.AppendUint16(b, r.Limit)
	return append(b, r.Cost, r.Recalled)
}

// Parse reads what Append has written.
func (r *SharedRecord) Parse(b []byte) {
	for i, n := range []*int64{&r.Start, &r.End, &r.At, (*int64)(&r.Wait), &r.Left} {
		*n = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	r.Limit = binary.LittleEndian.Uint16(b[40:])
	r.Cost, r.Recalled = b[42], b[43]
}

// ReadShared returns all records of a file after those it is given.
func ReadShared(records []SharedRecord, file string) ([]SharedRecord, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, b := bufio.NewReaderSize(f, 1<<20), make([]byte, SharedSize)
	for {
		if _, err := io.ReadFull(in, b); err == io.EOF {
			return records, nil
		} else if err != nil {
			return nil, err
		}
		var r SharedRecord
		r.Parse(b)
		records = append(records, r)
	}
}
