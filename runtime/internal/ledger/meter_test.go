package ledger_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/ledger"
)

// A portion is never less than what is needed, and else bounded by what the limit has left, by
// what it takes at once, and by what is used in less than a second.
func TestPortion(t *testing.T) {
	for _, test := range []struct {
		size, room, need, most int64
		free                   bool
		age                    time.Duration
		want                   int64
	}{
		{size: 10, room: 1e6, need: 1, most: 1e6, age: 750 * time.Millisecond, want: 10},
		{size: 10, room: 1e6, need: 1, most: 1e6, age: 250 * time.Millisecond, want: 30},
		{size: 10, room: 1e6, need: 1, most: 1e6, age: 0, want: 80},
		{size: 10, room: 1e6, need: 1, most: 1e6, age: 7500 * time.Millisecond, want: 1},
		{size: 10, room: 80, need: 3, most: 1e6, age: 0, want: 10},
		{size: 10, room: 16, need: 3, most: 1e6, age: 0, want: 3},
		{size: 10, room: 0, need: 3, most: 1e6, age: 0, want: 3},
		{size: 10, room: 1e6, need: 3, most: 20, age: 0, want: 20},
		{size: 10, room: 1e6, need: 30, most: 0, age: 0, want: 30},
		{size: 10, room: 0, need: 3, most: 1e6, age: 0, free: true, want: 80},
		{size: 10, room: 80, need: 3, most: 1e6, age: 0, free: true, want: 10},
		{size: spec.MaxAmount, room: math.MaxInt64, need: 1, most: math.MaxInt64, age: 0, want: spec.MaxAmount},
		{size: 0, room: 1e6, need: 7, most: 1e6, age: 0, want: 7},
	} {
		var a ledger.Advance
		a.Add(test.size, test.room, time.Hour)
		a.Drop()
		if got := a.Portion(test.need, test.most, test.free, time.Hour+test.age); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}

var errOver = errors.New("over")

// However bytes come and whatever a byte costs, a reader ends at the last one that is paid.
func TestReader(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		text := make([]byte, random.IntN(300))
		for i := range text {
			text[i] = byte(random.IntN(256))
		}
		budget, unit := random.IntN(400), 1+random.IntN(8)
		var source io.Reader = bytes.NewReader(text)
		for _, wrap := range []func(io.Reader) io.Reader{iotest.DataErrReader, iotest.HalfReader, iotest.OneByteReader} {
			if random.IntN(2) == 0 {
				source = wrap(source)
			}
		}
		ends, left := 0, budget
		r := &ledger.MeterReader{From: source, End: func() { ends++ }, Pay: func(n int, try bool) error {
			if cost := (n + unit - 1) / unit; cost <= left {
				left -= cost
				return nil
			}
			if try == (n == 1) {
				t.Fatalf("%d bytes, try %v", n, try)
			}
			return errOver
		}}
		var got []byte
		var err error
		for err == nil {
			p := make([]byte, random.IntN(100))
			var n int
			n, err = r.Read(p)
			got = append(got, p[:n]...)
			clear(p) // the caller's
			if err == nil && ends != 0 {
				t.Fatal("it ends before its last byte")
			}
		}
		if !bytes.HasPrefix(text, got) || ends != 1 {
			t.Fatalf("read %q of %q, ended %d times", got, text, ends)
		}
		rest := left
		left = len(text) // which is not asked for any more
		if n, again := r.Read(make([]byte, 9)); n != 0 || again != err {
			t.Fatalf("after %v it reads %d, %v", err, n, again)
		}
		switch err {
		case io.EOF:
			if len(got) != len(text) {
				t.Fatalf("read %d of %d", len(got), len(text))
			}
		case errOver:
			if rest != 0 {
				t.Fatalf("%d units are left after %d of %d bytes, %d for one", rest, len(got), len(text), unit)
			}
		default:
			t.Fatal(err)
		}
		if r.Close() != nil || ends != 1 {
			t.Fatal("it ends twice")
		}
	}
}

// A failure of the source comes after the bytes before it, and closing closes the source.
func TestReaderPassesOn(t *testing.T) {
	ends := 0
	unread := &ledger.MeterReader{From: new(closer), End: func() { ends++ }}
	if err := unread.Close(); err != io.ErrClosedPipe || ends != 1 {
		t.Errorf("closing what was not read gives %v, and it ends %d times", err, ends)
	}
	source := &closer{Reader: io.MultiReader(bytes.NewReader([]byte("abc")), iotest.ErrReader(errOver))}
	ends = 0
	r := &ledger.MeterReader{From: source, End: func() { ends++ }, Pay: func(int, bool) error { return nil }}
	got, err := io.ReadAll(r)
	if string(got) != "abc" || err != errOver || ends != 1 {
		t.Errorf("%q, %v, ended %d times", got, err, ends)
	}
	if err := r.Close(); err != io.ErrClosedPipe || ends != 1 {
		t.Errorf("closing gives %v", err)
	}
}

type closer struct{ io.Reader }

func (*closer) Close() error { return io.ErrClosedPipe }
