package server

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rediswire"
)

// Refused returns what processes of a namespace have refused, from the minute of a time on, in the
// order of time.
func Refused(ctx context.Context, client rediswire.Client, namespace string, since time.Time) ([]bridge.RefusedMinute, error) {
	var all []bridge.RefusedMinute
	from := strconv.FormatInt(since.Unix()/60, 10)
	args := []string{"zrangebyscore", processPrefix(namespace) + "refused", from, "+inf"}
	commands := []rediswire.Command{{Args: args, Key: 1}}
	client.Do(ctx, commands)
	if err := rediswire.First(commands); err != nil {
		return nil, fmt.Errorf("read what was refused: %w", private.Hide(err))
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
				all = append(all, bridge.RefusedMinute{Start: time.Unix(60*at, 0), Rule: name, Key: key, Max: m, Count: n, Shadow: shadow})
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
