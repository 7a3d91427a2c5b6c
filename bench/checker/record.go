package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
)

// A record is what became of one call.
type record struct {
	// Order sorts all calls of a run as Redis executed them: the number of the
	// batch, and the call's place in it.
	Order uint64
	// Clock is the time of Redis during the batch, in microseconds.
	Clock int64
	// At is the time that the charge counts as, 0 if there was none.
	At int64
	// Wait is the RetryAfter of a denied call, and the delay of an admitted
	// one, in microseconds.
	Wait  uint32
	Limit uint16
	Cost  uint8
	// Admitted is 1 if the call was.
	Admitted uint8
}

// maxBatch is the most calls that one batch has. With the two that tell the time
// it is what the store sends to Redis at once.
const maxBatch = 126

// span is how far apart the orders of batches are.
const span = 128

func orderOf(batch int64, place int) uint64 { return uint64(batch)*span + uint64(place) }

func (r *record) batch() int64 { return int64(r.Order / span) }

// recordSize is what a record takes in a file.
var recordSize = binary.Size(record{})

func (r *record) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Order)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Clock))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.At))
	b = binary.LittleEndian.AppendUint32(b, r.Wait)
	b = binary.LittleEndian.AppendUint16(b, r.Limit)
	return append(b, r.Cost, r.Admitted)
}

func (r *record) parse(b []byte) {
	r.Order = binary.LittleEndian.Uint64(b)
	r.Clock = int64(binary.LittleEndian.Uint64(b[8:]))
	r.At = int64(binary.LittleEndian.Uint64(b[16:]))
	r.Wait = binary.LittleEndian.Uint32(b[24:])
	r.Limit = binary.LittleEndian.Uint16(b[28:])
	r.Cost, r.Admitted = b[30], b[31]
}

// readRecords returns all records of a file after those it is given.
func readRecords(records []record, file string) ([]record, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, b := bufio.NewReaderSize(f, 1<<20), make([]byte, recordSize)
	for {
		if _, err := io.ReadFull(in, b); err == io.EOF {
			return records, nil
		} else if err != nil {
			return nil, err
		}
		var r record
		r.parse(b)
		records = append(records, r)
	}
}
