package judge

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
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
	// Wait is the RetryAfter of a denied call, and the delay of an admitted
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

// RecordSize is what a record takes in a file.
var RecordSize = binary.Size(Record{})

// Append appends the record to b.
func (r *Record) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Order)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Clock))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.At))
	b = binary.LittleEndian.AppendUint32(b, r.Wait)
	b = binary.LittleEndian.AppendUint16(b, r.Limit)
	return append(b, r.Cost, r.Admitted)
}

// Parse reads what Append has written.
func (r *Record) Parse(b []byte) {
	r.Order = binary.LittleEndian.Uint64(b)
	r.Clock = int64(binary.LittleEndian.Uint64(b[8:]))
	r.At = int64(binary.LittleEndian.Uint64(b[16:]))
	r.Wait = binary.LittleEndian.Uint32(b[24:])
	r.Limit = binary.LittleEndian.Uint16(b[28:])
	r.Cost, r.Admitted = b[30], b[31]
}

// ReadRecords returns all records of a file after those it is given.
func ReadRecords(records []Record, file string) ([]Record, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, b := bufio.NewReaderSize(f, 1<<20), make([]byte, RecordSize)
	for {
		if _, err := io.ReadFull(in, b); err == io.EOF {
			return records, nil
		} else if err != nil {
			return nil, err
		}
		var r Record
		r.Parse(b)
		records = append(records, r)
	}
}
