package override

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	_ "github.com/rategen/rategen/internal/testkit/seed" // rapid begins there
	"github.com/rategen/rategen/runtime"
)

// No name of a rule and no key can be taken for others in a field.
func TestFieldOfHostileNames(t *testing.T) {
	t.Parallel()
	hostile := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\["\],\\*:{}% ]{0,8}`), rapid.SampledFrom([]string{
		"a", `["a"]`, `["a","b"]`, `a","b`, `\`, "\x00", "*", "",
	}))
	rapid.Check(t, func(t *rapid.T) {
		want := []string{hostile.Draw(t, "rule"), hostile.Draw(t, "key")}
		if want[0] == All {
			t.Skip()
		}
		for n := 1; n <= 2; n++ {
			field, err := json.Marshal(want[:n])
			if err != nil {
				t.Fatal(err)
			}
			target := Target{Rule: want[0]}
			if n == 2 {
				target = ofKeys(want[0], want[1])
				shares := ofShares(want[0], want[1])
				if got, err := targetOf(fieldOf(shares)); err != nil || got != shares {
					t.Errorf("got %+v, %v, want %+v", got, err, shares)
				}
			}
			for _, field := range []string{string(field), fieldOf(target)} {
				if got, err := targetOf(field); err != nil || got != target {
					t.Errorf("%s: got %+v, %v, want %+v", field, got, err, target)
				}
			}
		}
	})
}

// 100,000 keys, in a quick run a tenth of them, come from a file and from a hash, and are
// read once while they are the same.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	n := effort.Choose(10_000, 100_000)
	fields, list := make(map[string]string, n), make([]string, n)
	for i := range n {
		key := fmt.Sprintf("tenant-%08d:*", i)
		fields[fmt.Sprintf(`["r",%q]`, key)] = fmt.Sprintf(`{"max":%d}`, i%1000)
		list[i] = fmt.Sprintf(`%q: {"max": %d}`, key, i%1000)
	}
	path := filepath.Join(t.TempDir(), "limits.json")
	limittest.OK(t, os.WriteFile(path, []byte(`{"rules": {"r": {"keys": {`+strings.Join(list, ",\n")+`}}}}`), 0o600))
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, ReadTimeout: 5 * time.Minute, WriteTimeout: 5 * time.Minute})
	defer client.Close()
	ctx := context.Background()
	limittest.OK(t, client.HSet(ctx, "limits", fields).Err())
	var read []runtime.Overrides
	for _, source := range []runtime.OverrideSource{File(path), Redis(client, "limits")} {
		o, err := look(source)
		if err != nil || len(o.Rules["r"].Keys) != n {
			t.Fatalf("%d keys, %v", len(o.Rules["r"].Keys), err)
		}
		read = append(read, o)
		again, err := look(source)
		if err != nil || fmt.Sprintf("%p", again.Rules) != fmt.Sprintf("%p", o.Rules) {
			t.Errorf("what is the same is read again: %v", err)
		}
	}
	if !reflect.DeepEqual(read[0].Rules, read[1].Rules) {
		t.Error("the file and the hash differ")
	}
	client.HSet(ctx, "limits", `["r","tenant-00000007:*"]`, `{"max":5000}`)
	o, err := look(Redis(client, "limits"))
	if err != nil || *o.Rules["r"].Keys["tenant-00000007:*"].Max != 5000 {
		t.Errorf("after a change: %v", err)
	}
}
