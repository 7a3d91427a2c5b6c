package generator_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// The key that an explanation shows is the one that the runtime gives to its store.
func TestExplainedKey(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, filepath.Join(dir, "go.mod"), "module example.com/m\n\ngo 1.26.0\n")
	t.Setenv("GOFLAGS", scratch.Flags())
	t.Setenv("GOWORK", "off")
	rules := map[string]runtime.Rule{
		"":               {},
		"storage=packed": {Storage: runtime.StoragePacked},
		"algorithm=sliding-counter buckets=6x10 block=1h": {Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10), Block: time.Hour},
		"algorithm=sliding-counter buckets=6x10 lease=1s": {Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10), Lease: time.Second},
		"algorithm=token-bucket lease=1s":                 {Algorithm: runtime.TokenBucket, Lease: time.Second},
		"algorithm=token-bucket block=1h":                 {Algorithm: runtime.TokenBucket, Block: time.Hour},
		"algorithm=leaky-bucket wait=1s":                  {Algorithm: runtime.LeakyBucket, Wait: time.Second},
		"hold=#result":                                    {Hold: true},
	}
	for _, o := range generator.Options() {
		for value := range strings.SplitSeq(o.Value, "|") {
			if _, tested := rules[o.Name+"="+value]; o.Name == "storage" && value != "zset" && !tested {
				t.Errorf("no case has %s=%s", o.Name, value)
			}
		}
	}
	for a, name := range algorithm.Names {
		rules["algorithm="+name] = runtime.Rule{Algorithm: runtime.Algorithm(a)}
	}
	texts := []string{"all", "a:b", "100%", "{x}", "tab\t\x00\x7f", "é"}
	for options, r := range rules {
		// One explanation, which asks the go command, has a limit for each text.
		limits, parts := "", ""
		for i, text := range texts {
			limits += fmt.Sprintf("\t//ratelimit:window=10s max=100 prefix=p%d: key=part%d,#n %s\n", i, i, options)
			parts += fmt.Sprintf("const part%d = %q\n", i, text)
		}
		scratch.Write(t, filepath.Join(dir, "a.go"), "package m; import \"time\"\n\ntype A interface {\n"+limits+"\tDo(n int) (time.Duration, error)\n}\n\n"+parts)
		explanations, err := generator.Explain(generator.Config{Dir: dir}, "a.go", 4+len(texts))
		if err != nil || len(explanations) != len(texts) {
			t.Fatal(options, len(explanations), err)
		}
		for i, text := range texts {
			shown := ""
			for _, topic := range explanations[i].Topics {
				if m := regexp.MustCompile(`key is (.*)$`).FindStringSubmatch(topic.Text); m != nil && topic.Name == "key" {
					shown = m[1]
				}
			}
			r.Name, r.Prefix, r.Window, r.Max = "a", fmt.Sprintf("p%d:", i), 10*time.Second, 100
			used := bridge.LimiterOf(runtime.New(runtime.NewMemoryStore())).RedisKey(r.Limit(runtime.NewKey().AddString(text).AddInt(1001)))
			if shown != used {
				t.Errorf("%s: the explanation says %q, and the key is %q", options, shown, used)
			}
		}
	}
}
