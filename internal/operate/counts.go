package operate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime"
)

// An export is lines of JSON: a header, a line for each key, override and change of these, and how
// many there were, by which an import knows that it has all of them.
const exportVersion = 1

// A countsLine is any of these lines.
type countsLine struct {
	Export    *int   `json:"ratectl_export,omitempty"` // the version: of a header
	Namespace string `json:"namespace,omitempty"`

	Rule    string     `json:"rule,omitempty"`    // its name, or its prefix if others have the name
	Key     *string    `json:"key,omitempty"`     // as ratectl keys shows it
	Tag     string     `json:"tag,omitempty"`     // what ends the Redis key: how its rule counts
	Expires *time.Time `json:"expires,omitempty"` // by the clock of Redis; null: never

	// The value of the Redis key. Only the scripts understand it.
	String []byte   `json:"string,omitempty"`
	Sorted []string `json:"sorted,omitempty"` // of a sorted set: each member, and its score

	Override *string `json:"override,omitempty"` // a field of the hash with overrides, which Says something
	Says     string  `json:"says,omitempty"`
	Change   string  `json:"change,omitempty"` // in the history of that, the last one first

	Keys *int `json:"keys,omitempty"` // of the last line: how many lines there are beside it and the first

	redisKey string
	// An import sets these while it reads a file.
	number  int // of the line
	of      Rule
	tried   *runtime.Key // which nobody uses
	to      string       // the one of both that is written
	ends    time.Time
	outcome string // as writeKey replies it, or bad
}

// check returns why no key can hold these counts.
func (l *countsLine) check() error {
	if (len(l.String) > 0) == (len(l.Sorted) > 0) {
		return errors.New("a key has a string or a sorted set")
	}
	if len(l.Sorted)%2 != 0 {
		return errors.New("a member of the sorted set has no score")
	}
	for i := 1; i < len(l.Sorted); i += 2 {
		if score, err := strconv.ParseFloat(l.Sorted[i], 64); err != nil || math.IsNaN(score) {
			return fmt.Errorf("%.40q is no score", l.Sorted[i])
		}
	}
	return nil
}

// maxLine is the longest line that is read: a log of a million events takes 50 MB.
const maxLine = 256 << 20

// readCounts calls each with every other line of an export, and returns the header. Its errors name
// the line.
func readCounts(in io.Reader, each func(l *countsLine) error) (header countsLine, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	keys := 0
	for n := 1; ; n++ {
		if !lines.Scan() {
			err := lines.Err()
			if errors.Is(err, bufio.ErrTooLong) {
				return header, fmt.Errorf("line %d: it is longer than %d bytes", n, maxLine)
			}
			if err != nil {
				return header, fmt.Errorf("line %d: %w", n, err)
			}
			if n == 1 {
				return header, errors.New("it is empty: no export of ratectl's")
			}
			return header, fmt.Errorf("line %d: it ends without its last line: it was cut, or the export has failed", n)
		}
		l := countsLine{number: n}
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&l); err != nil {
			return header, fmt.Errorf("line %d: no line of an export: %w", n, err)
		}
		if _, err := decoder.Token(); err != io.EOF {
			return header, fmt.Errorf("line %d: there is more than one object in it", n)
		}
		switch {
		case n == 1 && l.Export == nil:
			return header, errors.New("line 1: no header: no export of ratectl's")
		case n == 1 && *l.Export != exportVersion:
			return header, fmt.Errorf("line 1: version %d of exports is not known here, but %d", *l.Export, exportVersion)
		case n == 1:
			header = l
		case l.Export != nil:
			return header, fmt.Errorf("line %d: a second header", n)
		case l.Keys != nil && *l.Keys != keys:
			return header, fmt.Errorf("line %d: it counts %d keys, and there are %d", n, *l.Keys, keys)
		case l.Keys != nil:
			if lines.Scan() || lines.Err() != nil {
				return header, fmt.Errorf("line %d: there is something behind the last line", n+1)
			}
			return header, nil
		default:
			keys++
			if err := each(&l); err != nil {
				return header, err
			}
		}
	}
}

// page is how many members of a sorted set are read or written at a time.
const page = 20_000

// readKey reads what is under a key: its text, or a page of its sorted set, last member
// first; for how long it lives, and the time. New members move others back, so those may be
// read twice, and none is left out.
const readKey = `
local left, time = redis.call('PTTL', KEYS[1]), redis.call('TIME')
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  value = redis.pcall('ZREVRANGE', KEYS[1], ARGV[1], ARGV[2], 'WITHSCORES')
  if value.err then
    return false
  end
end
return {left, time[1] * 1000 + math.floor(time[2] / 1000), value}`

// writeKey writes a key. If the first argument is keep, it writes no key that exists; if it is
// more, it adds to the sorted set. The second argument is when the key expires, in milliseconds; the
// third is what it holds, or nothing, to find out what a write would do.
const writeKey = `
local time = redis.call('TIME')
local left = ARGV[2] - (time[1] * 1000 + math.floor(time[2] / 1000))
if left <= 0 then
  return 'lapsed'
end
if ARGV[1] == 'keep' and redis.call('EXISTS', KEYS[1]) == 1 then
  return 'kept'
end
if ARGV[3] == 'nothing' then
  return 'imported'
end
left = string.format('%.0f', left)
if ARGV[3] == 'string' then
  redis.call('SET', KEYS[1], ARGV[4], 'PX', left)
  return 'imported'
end
if ARGV[1] ~= 'more' then
  redis.call('UNLINK', KEYS[1])
end
for i = 4, #ARGV, 5000 do
  redis.call('ZADD', KEYS[1], unpack(ARGV, i, math.min(i + 4999, #ARGV)))
end
redis.call('PEXPIRE', KEYS[1], left)
return 'imported'`

// fill takes over a reply of readKey, and reports whether there may be more. What no limiter writes it leaves out.
func (l *countsLine) fill(reply *redis.Cmd) (more bool, err error) {
	values, err := reply.Slice()
	if err != nil || len(values) != 3 {
		return false, err
	}
	left, _ := values[0].(int64)
	now, _ := values[1].(int64)
	if left >= 0 {
		l.Expires = new(time.UnixMilli(now + left).UTC())
	}
	switch value := values[2].(type) {
	case string:
		l.String = []byte(value)
	case []any:
		for _, v := range value {
			text, _ := v.(string)
			if !utf8.ValidString(text) {
				l.Sorted = nil
				return false, redis.Nil
			}
			l.Sorted = append(l.Sorted, text)
		}
		return len(value) == 2*page, nil
	}
	return false, nil // or it has gone
}

// writes returns the arguments of the scripts that write the counts, which expire at a time.
func (l *countsLine) writes(how string, at time.Time) (all [][]any) {
	expires := at.UnixMilli()
	if len(l.String) > 0 {
		return [][]any{{how, expires, "string", l.String}}
	}
	for members := l.Sorted; len(members) > 0; how = "more" {
		n := min(len(members), 2*page)
		args := []any{how, expires, "sorted"}
		for i := 0; i < n; i += 2 {
			args = append(args, members[i+1], members[i])
		}
		all, members = append(all, args), members[n:]
	}
	return all
}

func (l *countsLine) text() string {
	return fmt.Sprintf("%.100s of rule %s", printed.Text(*l.Key), l.Rule)
}
