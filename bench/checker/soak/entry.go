package main

import (
	"encoding/binary"
	"fmt"
	"io"
)

// An entry is what a process tells about a call, or about itself when a round is
// over. Times are in microseconds, by the clock that Redis and all processes of the
// machine have in common.
type entry struct {
	What    what
	Site    uint8 // 0: the standalone server, 1: the cluster
	Kind    uint8
	Process uint16
	Round   uint32
	Key     uint32 // of a call with a key of its own

	Begin, End int64
	// Cost is what was reserved, and Kept what the call cost in the end. Settled is
	// when that was settled, 0 if it did not differ or was not settled for sure. Of
	// permits it is when they had been returned.
	Cost, Kept uint8
	Settled    int64
	Fate       fate
	Source     uint8
	Blocked    bool
	Recalled   bool
	Limit      int64

	// An exact call has these as [judge.SharedRecord] describes them. The At of
	// permits is when their call began to return them.
	At, Wait, Left int64
}

// what says what an entry is.
type what uint8

const (
	called  what = iota // a call that is judged by the bounds of its limit
	exactly             // a call whose decision is judged exactly
	held                // permits
	over                // the round is over for this process; no call is missing
)

// A fate is what became of a call.
type fate uint8

const (
	admitted fate = iota
	denied
	unavailable
	strange // an error that no caller should see
)

// A report is what an entry says that is told when a round is over.
type report struct {
	Heap, Resident, Goroutines int64
}

func (e *entry) report() report { return report{e.At, e.Wait, e.Left} }

func (e *entry) setReport(r report) { e.At, e.Wait, e.Left = r.Heap, r.Resident, r.Goroutines }

// write writes an entry by one write, so that a process that is killed leaves
// whole ones.
func (e *entry) write(w io.Writer) error {
	data, err := binary.Append(nil, binary.LittleEndian, e)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// readEntries hands over entries until there are none.
func readEntries(r io.Reader, each func(entry)) error {
	buffer := make([]byte, binary.Size(entry{}))
	for {
		if _, err := io.ReadFull(r, buffer); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what a process tells: %w", err)
		}
		var e entry
		if _, err := binary.Decode(buffer, binary.LittleEndian, &e); err != nil {
			return err
		}
		each(e)
	}
}
