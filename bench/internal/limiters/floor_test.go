package limiters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/bench/internal/load"
)

// TestFloors wants both to get through, and the script to call what its name
// says once a call, no more.
func TestFloors(t *testing.T) {
	s := start(t)
	const calls = 3
	for _, test := range []struct {
		name     string
		commands []string
	}{
		{Floor, []string{"ping"}},
		{ScriptFloor, []string{"evalsha", "time", "get", "set"}},
		{OwnScript, []string{"evalsha", "time", "get"}},
	} {
		var take load.Take
		for _, l := range Peers() {
			if l.Name == test.name && l.Floor {
				var err error
				if take, err = l.New(s, Room); err != nil {
					t.Fatal(err)
				}
			}
		}
		if take == nil {
			t.Fatalf("%s is no floor", test.name)
		}
		if err := s.Client.ConfigResetStat(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		for range calls {
			if answer := take(t.Context(), "key"); answer != load.Admitted {
				t.Errorf("%s: answer %v", test.name, answer)
			}
		}
		stats, err := s.Client.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range test.commands {
			if want := fmt.Sprintf("cmdstat_%s:calls=%d,", command, calls); !strings.Contains(stats, want) {
				t.Errorf("%s: no %s in\n%s", test.name, want, stats)
			}
		}
	}
	value, err := s.Client.Get(t.Context(), "floor:key").Result()
	if err != nil || len(value) != 16 {
		t.Errorf("value %q, %v", value, err)
	}
	lasts, err := s.Client.PTTL(t.Context(), "floor:key").Result()
	if err != nil || lasts <= Room.Level.Window-time.Minute || lasts > Room.Level.Window {
		t.Errorf("it lasts for %v, %v", lasts, err)
	}
}
