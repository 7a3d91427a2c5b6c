package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/rule"
)

// escaped is what a part must read like, written for its reader.
func escaped(part string) string {
	var b strings.Builder
	for _, c := range []byte(part) {
		if c < 0x20 || c == 0x7f || strings.IndexByte("%:{}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// TestKey builds keys of all lengths, and copies of them that go on by themselves.
func TestKey(t *testing.T) {
	t.Parallel()
	type fork struct {
		key     Key
		want    []string
		invalid bool
	}
	part := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9]{0,120}`),
		rapid.StringMatching(`[a:%{}\x00\x7f]{0,40}`),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		forks := []*fork{{key: *NewKey()}}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			f := rapid.SampledFrom(forks).Draw(t, "fork")
			switch rapid.SampledFrom([]string{"string", "bytes", "int", "uint", "bool", "invalid", "copy"}).Draw(t, "step") {
			case "string":
				s := part.Draw(t, "part")
				f.key.AddString(s)
				f.want = append(f.want, escaped(s))
			case "bytes":
				s := []byte(part.Draw(t, "part"))
				f.key.AddBytes(s)
				f.want = append(f.want, escaped(string(s)))
				clear(s) // the key has a copy
			case "int":
				n := rapid.Int64().Draw(t, "part")
				f.key.AddInt(n)
				f.want = append(f.want, strconv.FormatInt(n, 10))
			case "uint":
				n := rapid.Uint64().Draw(t, "part")
				f.key.AddUint(n)
				f.want = append(f.want, strconv.FormatUint(n, 10))
			case "bool":
				b := rapid.Bool().Draw(t, "part")
				f.key.AddBool(b)
				f.want = append(f.want, strconv.FormatBool(b))
			case "invalid":
				f.key.AddInvalid("nil")
				f.want, f.invalid = append(f.want, "%invalid"), true
			case "copy":
				forks = append(forks, &fork{f.key, slices.Clone(f.want), f.invalid})
			}
		}
		for _, f := range forks {
			if got, want := f.key.String(), strings.Join(f.want, ":"); got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			limit := new(Rule).Limit(&f.key)
			if err := rule.Engine.PartsOf(&limit).Err(); errors.Is(err, ErrInvalidKey) != f.invalid {
				t.Errorf("invalid is %v: got %v", f.invalid, err)
			}
		}
	})
}

// TestKeyAllocates shows how long a key may be before it takes memory.
func TestKeyAllocates(t *testing.T) {
	rule := &Rule{Prefix: "p:"}
	var limit Limit
	for n, want := range map[int]float64{0: 0, keytext.Inline: 0, keytext.Inline + 1: 2} {
		part := strings.Repeat("x", n)
		if got := testing.AllocsPerRun(100, func() { limit = rule.Limit(NewKey().AddString(part)) }); got != want {
			t.Errorf("%d bytes: %v allocations, want %v", n, got, want)
		}
		if limit.Key.String() != part {
			t.Errorf("%d bytes: got %q", n, limit.Key.String())
		}
	}
}
