package contest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// usage is what a Redis has done since it started.
type usage struct {
	cpu      time.Duration
	scripts  int64
	commands int64 // scripts and what they call included
}

// since returns what was done after an earlier look.
func (u usage) since(before usage) usage {
	return usage{u.cpu - before.cpu, u.scripts - before.scripts, u.commands - before.commands}
}

// usageOf looks at a Redis.
func usageOf(ctx context.Context, client *redis.Client) (usage, error) {
	var info string
	for _, section := range []string{"cpu", "commandstats"} { // Redis 6.2 takes one at a time
		text, err := client.Info(ctx, section).Result()
		if err != nil {
			return usage{}, err
		}
		info += text
	}
	return parseUsage(info)
}

// parseUsage reads the sections cpu and commandstats of INFO. What connections
// and this program itself say to Redis is left out.
func parseUsage(info string) (u usage, err error) {
	for line := range strings.Lines(info) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return usage{}, fmt.Errorf("info: %s: %w", name, err)
			}
			u.cpu += time.Duration(seconds * float64(time.Second))
		}
		command, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok {
			continue
		}
		value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		calls, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("info: %s: %w", name, err)
		}
		command, _, _ = strings.Cut(command, "|")
		switch command {
		case "info", "hello", "client", "config", "script", "command", "flushall", "scan", "memory":
			continue
		case "eval", "evalsha", "fcall":
			u.scripts += calls
		}
		u.commands += calls
	}
	return u, nil
}
