package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	rules "github.com/rategen/rategen/runtime/rule"
)

var rule = &runtime.Rule{Name: "orders", Window: time.Minute, Max: 10}

// blocks returns so many blocks of a recording, of two calls each, a second apart.
func blocks(tb testing.TB, recording string, n int, begins int64) (all [][]byte) {
	tb.Helper()
	text, err := RuleText(rule, rule, "", 0)
	limittest.OK(tb, err)
	w := NewWriter(Meta{Recording: recording, Secret: "s", Share: 1})
	for i := range n {
		for k := range 2 {
			ev := &Event{Time: begins + int64(i)*1e6 + int64(k)*1000, Label: "gold", Waited: int64(k)}
			l := NamedLimit{RuleText: string(text), RuleMax: 10, Caller: Caller{byte(i), byte(k)}}
			l.Cost, l.Max, l.Charged, l.Verdict, l.Source = int64(i), 10+int64(k), ev.Time*int64(k), observe.Verdict(k), rules.SourceStore
			w.Add(ev, []NamedLimit{l})
		}
		block, events := w.Take(uint64(i), 0)
		if events != 2 {
			tb.Fatalf("%d events", events)
		}
		all = append(all, bytes.Clone(block))
	}
	return all
}

// events returns the times of all events, and what was wrong.
func events(tb testing.TB, files ...[]byte) (times []int64, d Damage) {
	tb.Helper()
	var readers []io.ReaderAt
	for _, f := range files {
		readers = append(readers, bytes.NewReader(f))
	}
	f, err := Open(readers...)
	limittest.OK(tb, err)
	if _, err := f.Survey(); err != nil {
		tb.Fatal(err)
	}
	limittest.OK(tb, f.Events(func(ev *Event) error { times = append(times, ev.Time); return nil }))
	return times, f.Damage
}

const start = 1_780_000_000_000_000

// What is wrong with records is left out, counted, and hides nothing else.
func TestDamage(t *testing.T) {
	b := blocks(t, "a", 4, start)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	broken := bytes.Clone(b[1])
	broken[len(broken)-1] ^= 1
	longer := bytes.Clone(b[1])
	longer[4] ^= 64 // its length
	other := bytes.ReplaceAll(b[1], []byte(`"version":1`), []byte(`"version":7`))
	resum(other)
	for name, c := range map[string]struct {
		files  [][]byte
		events int
		want   Damage
	}{
		"whole":         {[][]byte{join(b...)}, 8, Damage{Dropped: 3}},
		"truncated":     {[][]byte{join(b[0], b[1], b[2][:20])}, 4, Damage{Dropped: 1, Truncated: 1, Skipped: 20}},
		"cut header":    {[][]byte{join(b[0], b[1][:7])}, 2, Damage{Truncated: 1}},
		"corrupt":       {[][]byte{join(b[0], broken, b[2], b[3])}, 6, Damage{Dropped: 3, Corrupt: 1, Missing: 1, Skipped: int64(len(broken))}},
		"wrong length":  {[][]byte{join(b[0], longer, b[2], b[3])}, 6, Damage{Dropped: 3, Corrupt: 1, Missing: 1, Skipped: int64(len(longer))}},
		"text between":  {[][]byte{join(b[0], []byte("RRB hello RR"), b[1], b[2], b[3])}, 8, Damage{Dropped: 3, Skipped: 12}},
		"other version": {[][]byte{join(b[0], other, b[2], b[3])}, 6, Damage{Dropped: 3, Unknown: 1, Missing: 1}},
		"twice":         {[][]byte{join(b...), join(b[1], b[2])}, 8, Damage{Dropped: 3, Duplicates: 2, Reordered: 1}},
		"reordered":     {[][]byte{join(b[2], b[3]), join(b[0], b[1])}, 8, Damage{Dropped: 3, Reordered: 1}},
		"missing":       {[][]byte{join(b[0], b[3])}, 4, Damage{Dropped: 3, Missing: 2}},
		"nothing":       {[][]byte{nil}, 0, Damage{}},
	} {
		times, got := events(t, c.files...)
		if len(times) != c.events {
			t.Errorf("%s: %d events, want %d", name, len(times), c.events)
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		for i := 1; i < len(times); i++ {
			if times[i] < times[i-1] {
				t.Errorf("%s: not in order: %v", name, times)
			}
		}
	}
}

// resum gives a block the checksum of what it has.
func resum(block []byte) {
	binary.LittleEndian.PutUint32(block[8:], crc(block[headerSize:]))
}

// Records of processes whose clocks are apart are put in the order of the store.
func TestSkew(t *testing.T) {
	text, _ := RuleText(rule, rule, "", 0)
	var files []io.ReaderAt
	for p := range 8 {
		skew := int64(p-4) * 3e6
		w := NewWriter(Meta{Recording: fmt.Sprint("process ", p), Secret: "s", Share: 1})
		for i := range int64(100) {
			at := start + (i*8+int64(p))*1000
			l := NamedLimit{RuleText: string(text), RuleMax: 10, Caller: Caller{1}}
			l.Cost, l.Max, l.Source, l.Charged = 1, 10, rules.SourceStore, at
			w.Add(&Event{Time: at + skew}, []NamedLimit{l})
		}
		block, _ := w.Take(0, 0)
		files = append(files, bytes.NewReader(bytes.Clone(block)))
	}
	f, err := Open(files...)
	limittest.OK(t, err)
	if _, err := f.Survey(); err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	if err := f.Events(func(ev *Event) error {
		if want := start + n*1000; ev.Time != want || ev.Limits[0].Charged != want {
			t.Fatalf("event %d: %d, want %d", n, ev.Time, want)
		}
		n++
		return nil
	}); err != nil || n != 800 {
		t.Fatal(n, err)
	}
}

// A rule is read as it was written.
func TestRuleText(t *testing.T) {
	for _, r := range []runtime.Rule{
		*rule,
		{Name: "b", Prefix: "p:", Window: time.Hour, Max: 5, Algorithm: runtime.SlidingCounter, Buckets: rules.LayeredBuckets(6, 10), Block: time.Minute},
		{Name: "c", Period: rules.Month, Zone: "Europe/Berlin", Anchor: 15, Max: 1 << 50, Algorithm: runtime.FixedWindow, Keep: 3, Debt: rules.DebtCarry},
		{Name: "d", Window: time.Second, Max: 5, Burst: 9, Algorithm: runtime.LeakyBucket, Wait: time.Second, Mode: runtime.ModeSoft},
		{Name: "e", Window: time.Second, Max: 5, Storage: runtime.StoragePacked, Resolution: time.Millisecond, Hold: true},
		{Prefix: "p:", Window: time.Second, Max: 5, Algorithm: runtime.Concurrency, Mode: runtime.ModeShadow},
		{Name: "g", Period: rules.Year, Anchor: 229, Max: 7, Algorithm: runtime.FixedWindow, Reserve: time.Hour},
	} {
		text, err := RuleText(&r, &r, "", 0)
		limittest.OK(t, err)
		if s, err := parseRule(text); err != nil || *s.Rule != r || s.Declared != s.Rule {
			t.Errorf("%s: %+v, %v", text, s.Rule, err)
		}
	}
	for _, text := range []string{
		`{"name":"x","any_key":true,"algorithm":"sliding-log","mode":"enforce","max":"-1","window":"1s"}`,
		`{"name":"x","any_key":true,"algorithm":"sliding-log","mode":"enforce","max":"one","window":"1s"}`,
		`{"name":"x","any_key":true,"algorithm":"fixed-window","mode":"enforce","max":"1","window":"month","tz":"Europe/Nowhere"}`,
		`{"name":"x","any_key":true,"algorithm":"fixed-window","mode":"enforce","max":"1","window":"month","anchor":"32"}`,
	} {
		if s, err := parseRule([]byte(text)); err == nil {
			t.Errorf("a rule that nobody can declare is read: %s: %+v", text, s.Rule)
		}
	}
}

// Records that name more than is kept end a reading: nothing is left out in silence.
func TestTooMuch(t *testing.T) {
	names := newNames()
	for i := range MaxRules {
		if _, err := names.rule(fmt.Appendf(nil, `{"name":"%d","any_key":true,"algorithm":"sliding-log","mode":"enforce","max":"1","window":"1s"}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := names.rule([]byte(`{"name":"more","any_key":true,"algorithm":"sliding-log","mode":"enforce","max":"1","window":"1s"}`))
	if too := (TooMuch{}); !errors.As(err, &too) || !strings.Contains(err.Error(), "10000") {
		t.Error(err)
	}
	var files []io.ReaderAt
	for i := range maxAtOnce + 1 {
		files = append(files, bytes.NewReader(blocks(t, fmt.Sprint(i), 1, start)[0]))
	}
	f, err := Open(files...)
	limittest.OK(t, err)
	if _, err := f.Survey(); !errors.As(err, new(TooMuch)) {
		t.Error(err)
	}
}

// FuzzRead reads anything, with a right checksum and without.
func FuzzRead(f *testing.F) {
	b := blocks(f, "a", 3, start)
	f.Add(bytes.Join(b, nil), false)
	f.Add(b[0][headerSize:], true)
	f.Add([]byte("RRB1"), false)
	f.Fuzz(func(t *testing.T, data []byte, sum bool) {
		if sum && len(data) <= MaxBlock {
			block := append(append([]byte{}, magic[:]...), make([]byte, 8)...)
			binary.LittleEndian.PutUint32(block[4:], uint32(len(data)))
			data = append(block, data...)
			resum(data)
		}
		file, err := Open(bytes.NewReader(data))
		limittest.OK(t, err)
		s, err := file.Survey()
		limittest.OK(t, err)
		n := int64(0)
		if err := file.Events(func(ev *Event) error {
			for _, l := range ev.Limits {
				_, _ = file.Names.Rules[l.Rule], file.Names.Callers[l.Caller]
				if l.Cost < 0 || l.Max < 0 || l.Wait < 0 || l.Settled < 0 {
					t.Fatalf("%+v", l)
				}
			}
			n++
			return nil
		}); err != nil || n != s.Calls+s.Settlements {
			t.Fatalf("%d events, then %d: %v", s.Calls+s.Settlements, n, err)
		}
	})
}
