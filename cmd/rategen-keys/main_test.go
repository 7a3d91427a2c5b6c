package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/redistest"
)

func TestRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	client := server.Client(t)
	for i := range 5 {
		client.Set(ctx, fmt.Sprint("orders:a:", i), 1, time.Hour)
		client.Set(ctx, fmt.Sprint("orders:b:", i), 1, 0)
	}
	url := "redis://" + server.Addr
	for _, test := range []struct {
		args   []string
		code   int
		stdout string // with every number of bytes as 0
		stderr string // a part of it
	}{
		{[]string{"-url", url, "orders:", "orders:b:"}, 0, `
keys bytes endless healed prefix
5 0 0 0 "orders:"
5 0 5 0 "orders:b:"
`, ""},
		{[]string{"-url", url, "-json", "-heal", "48h", "orders:"}, 0, `
{"prefix":"orders:","keys":10,"bytes":0,"endless":5,"healed":5}
`, ""},
		{[]string{"-url", url, "-json", "-timeout", "1m", "orders:"}, 0, `
{"prefix":"orders:","keys":10,"bytes":0,"endless":0,"healed":0}
`, ""},
		{[]string{"-url", "redis://127.0.0.1:1", "orders:"}, 1, `
keys bytes endless healed prefix
0 0 0 0 "orders:"
`, "list keys"},
		{[]string{"-url", "http://localhost", "orders:"}, 2, "", "invalid URL scheme"},
		{[]string{"-url", "redis://me:hunter/2@localhost", "orders:"}, 2, "", "-url is no URL"},
		{[]string{"-url", "redis://me:hunter%2@localhost", "orders:"}, 2, "", "-url is no URL"},
		{[]string{"-cluster", "-url", "redis://me:hunter/2@localhost", "orders:"}, 2, "", "-url is no URL"},
		{[]string{"-url", url, "-heal", "48h", "orders:", ""}, 1, `
keys bytes endless healed prefix
0 0 0 0 "orders:"
0 0 0 0 ""
`, "without a prefix every key"},
		{[]string{"-url", url}, 2, "", "usage"},
		{[]string{"-unknown"}, 2, "", "unknown"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(ctx, test.args, &stdout, &stderr)
		if code != test.code {
			t.Errorf("%q: exit code %d, want %d", test.args, code, test.code)
		}
		if diff := cmp.Diff(strings.TrimPrefix(test.stdout, "\n"), withoutBytes(t, stdout.String())); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.args, diff)
		}
		if strings.Contains(stderr.String(), "hunter") {
			t.Errorf("%q: standard error is %q, with a password", test.args, &stderr)
		}
		if !strings.Contains(stderr.String(), test.stderr) || test.stderr == "" && stderr.Len() > 0 {
			t.Errorf("%q: standard error is %q, want %q", test.args, &stderr, test.stderr)
		}
	}
	if left := client.TTL(ctx, "orders:b:1").Val(); left < 47*time.Hour {
		t.Errorf("a healed key lives on for %v", left)
	}
	if left := client.TTL(ctx, "orders:a:1").Val(); left > time.Hour {
		t.Errorf("a key that needed nothing lives on for %v", left)
	}
}

// withoutBytes replaces the numbers of bytes, which a server decides, and
// blanks in a row.
func withoutBytes(t *testing.T, text string) string {
	var out strings.Builder
	for row := range strings.Lines(text) {
		before, after, isJSON := strings.Cut(row, `"bytes":`)
		if isJSON {
			_, after, _ = strings.Cut(after, ",")
			row = before + `"bytes":0,` + after
		} else if f := strings.Fields(row); len(f) == 5 {
			if f[0] != "keys" && f[0] != "0" {
				if f[1] == "0" {
					t.Errorf("no bytes in %q", row)
				}
				f[1] = "0"
			}
			row = strings.Join(f, " ") + "\n"
		}
		out.WriteString(row)
	}
	return out.String()
}

// TestRunCluster counts on all masters.
func TestRunCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	for i := range 50 {
		client.Set(ctx, fmt.Sprint("orders:", i), 1, 0)
	}
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"-cluster", "-json", "-url", "redis://" + cluster.Nodes[1].Addr, "orders:"}, &stdout, &stderr)
	want := `{"prefix":"orders:","keys":50,"bytes":0,"endless":50,"healed":0}` + "\n"
	if got := withoutBytes(t, stdout.String()); code != 0 || got != want {
		t.Errorf("exit code %d, %q, %q; want %q", code, got, &stderr, want)
	}
}
