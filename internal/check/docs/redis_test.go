package docs_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/override"
)

// Commands of redis-cli in the documentation write overrides: each leaves a hash that
// can be read, and one that writes changes what is read.
func TestRedisCommands(t *testing.T) {
	run := 0
	for path, p := range pages(t) {
		client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		defer func() { _ = client.Close() }()
		for _, b := range p.Blocks {
			if b.Language != "sh" && b.Language != "bash" {
				continue
			}
			for line := range strings.Lines(b.Text) {
				line = strings.TrimSpace(line)
				rest, ok := strings.CutPrefix(line, "redis-cli ")
				if !ok {
					continue
				}
				run++
				words, err := shellWords(rest)
				if err == nil && len(words) < 3 {
					err = fmt.Errorf("a command on a hash has a key and a field")
				}
				if err != nil {
					t.Errorf("%s: %s: %v", path, line, err)
					continue
				}
				var args []any
				for _, word := range words {
					args = append(args, word)
				}
				changed, err := client.Do(t.Context(), args...).Int()
				if err != nil || changed == 0 {
					t.Errorf("%s: %s: Redis answers %v, %v", path, line, changed, err)
				}
				if _, err := override.Redis(client, words[1]).Overrides(t.Context()); err != nil {
					t.Errorf("%s: %s: the overrides cannot be read: %v", path, line, err)
				}
			}
		}
	}
	if run < 5 {
		t.Errorf("%d commands", run)
	}
}

// shellWords returns the words of a command, as a shell cuts it.
func shellWords(command string) ([]string, error) {
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+command).Output()
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), err
}
