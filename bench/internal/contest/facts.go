package contest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// Facts returns what there is to know about the machine, and what was left out.
func (p Plan) Facts(ctx context.Context, client *redis.Client) ([]string, error) {
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return nil, err
	}
	cpus, _ := os.ReadFile("/proc/cpuinfo") // no fact where there is none
	facts := []string{
		fmt.Sprintf("Machine: %d cores for this program and redis-server together, GOMAXPROCS=%d, %s, load average before %s", runtime.NumCPU(), runtime.GOMAXPROCS(0), model(string(cpus)), Busy()),
		fmt.Sprintf("Versions: %s %s/%s, %s, %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, redistest.Product(info), versions()),
	}
	if !p.Part.Whole() {
		facts = append(facts, p.Part.String())
	}
	return facts, nil
}

// model returns the name of the processor from the text of /proc/cpuinfo.
func model(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// Busy returns the load average of the last minute: what others do on the
// machine is in all numbers.
func Busy() string {
	load, _ := os.ReadFile("/proc/loadavg") // no fact where there is none
	minute, _, _ := strings.Cut(string(load), " ")
	return cmp.Or(minute, "unknown")
}

// versions returns which versions of the limiters this program is built with.
func versions() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown modules"
	}
	var all []string
	for _, prefix := range []string{
		"github.com/redis/go-redis/", "github.com/redis/rueidis", "github.com/go-redis/redis_rate/", "github.com/throttled/", "github.com/ulule/",
		"github.com/sethvargo/", "github.com/gomodule/redigo", "golang.org/x/time",
	} {
		for _, module := range build.Deps {
			if strings.HasPrefix(module.Path, prefix) {
				all = append(all, strings.TrimPrefix(module.Path, "github.com/")+" "+module.Version)
			}
		}
	}
	return strings.Join(all, ", ")
}
