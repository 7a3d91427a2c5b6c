package server

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A RefusedMinute is how often calls with a key of a rule were refused in a minute. Without a rule
// it is of all keys of the minute that are not told.
type RefusedMinute struct {
	Start     time.Time
	Rule, Key string
	Max       int64 // of the calls, if they brought their own, or else below 0
	Count     int64
	Shadow    bool // the limit was in shadow mode, and refused nobody
}

// Refused returns what processes of a namespace have refused, from the minute of a time on, in the
// order of time.
func Refused(ctx context.Context, client rediswire.Client, namespace string, since time.Time) ([]RefusedMinute, error) {
	var all []RefusedMinute
	from := strconv.FormatInt(since.Unix()/60, 10)
	args := []string{"zrangebyscore", processPrefix(namespace) + "refused", from, "+inf"}
	commands := []rediswire.Command{{Args: args, Key: 1}}
	client.Do(ctx, commands)
	if err := rediswire.First(commands); err != nil {
		return nil, private.Hide(err)
	}
	minutes, _ := commands[0].Value.([]any)
	for _, minute := range minutes {
		text, _ := minute.(string)
		number, lines, _ := strings.Cut(text, "\n")
		at, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue // none of ours
		}
		for line := range strings.Lines(lines) {
			caller, count, _ := cutLast(strings.TrimSuffix(line, "\n"), "\t")
			rule, key, _ := strings.Cut(caller, "\t")
			key, most, brought := strings.Cut(key, "\t")
			rule, shadow := strings.CutPrefix(rule, "!")
			name, _ := url.PathUnescape(rule)
			n, err := strconv.ParseInt(count, 10, 64)
			m := int64(-1)
			if brought && err == nil {
				m, err = strconv.ParseInt(most, 10, 64)
			}
			if err == nil {
				all = append(all, RefusedMinute{time.Unix(60*at, 0), name, key, m, n, shadow})
			}
		}
	}
	return all, nil
}

// cutLast is [strings.Cut] at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
