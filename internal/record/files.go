package record

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Bounds of what is read together.
const (
	maxBlocks     = 1_000_000
	maxRecordings = 10_000
	maxAtOnce     = 256 // recordings of one moment
)

// Damage is what is wrong with records, and was left out or is missing.
type Damage struct {
	Skipped    int64 `json:"skipped_bytes"`    // that are no block
	Corrupt    int   `json:"corrupt_blocks"`   // with a wrong checksum or content
	Truncated  int   `json:"truncated_files"`  // that end within a block
	Unknown    int   `json:"unknown_blocks"`   // of another version
	Duplicates int   `json:"duplicate_blocks"` // that another file has, too
	Missing    int64 `json:"missing_blocks"`   // of which the numbers before and after are there
	Reordered  int   `json:"reordered_blocks"` // that stood after later ones
	Dropped    int64 `json:"dropped_events"`   // that the programs lost, since they were too many
	Steps      int   `json:"clock_steps_back"` // of a process's clock, by more than 100 ms
}

// A Recording is what one process has recorded.
type Recording struct {
	Name   string
	Secret string
	Share  float64
	// Offset is added to its times, in microseconds, so that they are those of the store.
	Offset int64
	blocks []place
}

// A place is where a block is.
type place struct {
	number uint64
	time   int64
	offset int64
	file   int32
	length int32
	drops  uint32 // events dropped, up to here
	steps  uint32 // of the clock
}

// Files are records that are read together.
type Files struct {
	Damage     Damage
	Recordings []*Recording
	Names      *Names
	files      []io.ReaderAt
	byName     map[string]*Recording
	blocks     int
}

// Open reads where the blocks of records are. The error is of reading, or says that there is more
// than can be read together; what is wrong with the records is in Damage.
func Open(files ...io.ReaderAt) (*Files, error) {
	f := &Files{Names: newNames(), files: files, byName: map[string]*Recording{}}
	for i, file := range files {
		if err := f.index(int32(i), file); err != nil {
			return nil, err
		}
	}
	for _, r := range f.Recordings {
		f.order(r)
	}
	return f, nil
}

// index finds the blocks of a file.
func (f *Files) index(number int32, file io.ReaderAt) error {
	in := bufio.NewReaderSize(io.NewSectionReader(file, 0, 1<<62), MaxBlock+headerSize)
	for at := int64(0); ; {
		header, err := in.Peek(headerSize)
		if len(header) < headerSize {
			if len(header) > 0 {
				f.Damage.Truncated++
			}
			return readError(err)
		}
		length := int(binary.LittleEndian.Uint32(header[4:]))
		if [4]byte(header) != magic || length > MaxBlock {
			n, err := f.resync(in)
			if err != nil {
				return err
			}
			at += n
			continue
		}
		sum := binary.LittleEndian.Uint32(header[8:])
		block, err := in.Peek(headerSize + length)
		if err != nil && readError(err) != nil {
			return err
		}
		if len(block) < headerSize+length || crc(block[headerSize:]) != sum {
			// Its length may be what is wrong, so others may begin within it.
			if len(block) < headerSize+length {
				f.Damage.Truncated++
			} else {
				f.Damage.Corrupt++
			}
			n, err := f.resync(in)
			if err != nil {
				return err
			}
			at += n
			continue
		}
		if err := f.add(number, at+headerSize, block[headerSize:]); err != nil {
			return err
		}
		at += int64(len(block))
		_, _ = in.Discard(len(block))
	}
}

// resync goes on to what may be the next block, and returns how many bytes it has passed over.
func (f *Files) resync(in *bufio.Reader) (n int64, err error) {
	defer func() { f.Damage.Skipped += n }()
	for {
		_, _ = in.Discard(1)
		n++
		ahead, err := in.Peek(len(magic))
		if len(ahead) < len(magic) {
			k, _ := in.Discard(len(ahead))
			return n + int64(k), readError(err)
		}
		if [4]byte(ahead) == magic {
			return n, nil
		}
	}
}

// readError returns the error of a reading that is not its end.
func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, bufio.ErrBufferFull) {
		return nil
	}
	return err
}

// add adds a block that a file has somewhere.
func (f *Files) add(file int32, at int64, payload []byte) error {
	m, _, err := readMeta(payload)
	if errors.Is(err, errCorrupt) {
		f.Damage.Corrupt++
		return nil
	}
	if err != nil {
		f.Damage.Unknown++
		return nil
	}
	r := f.byName[m.Recording]
	if r == nil {
		if len(f.Recordings) == maxRecordings {
			return TooMuch{fmt.Errorf("more than %d recordings: name fewer files", maxRecordings)}
		}
		r = &Recording{Name: m.Recording, Secret: m.Secret, Share: m.Share}
		f.byName[m.Recording], f.Recordings = r, append(f.Recordings, r)
	}
	if r.Secret != m.Secret || r.Share != m.Share {
		f.Damage.Corrupt++
		return nil
	}
	if f.blocks++; f.blocks > maxBlocks {
		return TooMuch{fmt.Errorf("more than %d blocks: name fewer files", maxBlocks)}
	}
	p := place{number: m.Block, time: m.Time, offset: at, file: file, length: int32(len(payload)),
		drops: uint32(min(m.Dropped, 1<<32-1)), steps: uint32(min(m.Steps, 1<<20))}
	r.blocks = append(r.blocks, p)
	return nil
}

// order puts the blocks of a recording in order, once each.
func (f *Files) order(r *Recording) {
	for i := 1; i < len(r.blocks); i++ {
		if r.blocks[i].number < r.blocks[i-1].number {
			f.Damage.Reordered++
		}
	}
	slices.SortStableFunc(r.blocks, func(a, b place) int { return cmp.Compare(a.number, b.number) })
	before := len(r.blocks)
	r.blocks = slices.CompactFunc(r.blocks, func(a, b place) bool { return a.number == b.number })
	f.Damage.Duplicates += before - len(r.blocks)
	for i := 1; i < len(r.blocks); i++ {
		f.Damage.Missing += int64(min(r.blocks[i].number-r.blocks[i-1].number-1, 1<<40))
	}
	last := r.blocks[len(r.blocks)-1]
	f.Damage.Dropped, f.Damage.Steps = f.Damage.Dropped+int64(last.drops), f.Damage.Steps+int(last.steps)
}
