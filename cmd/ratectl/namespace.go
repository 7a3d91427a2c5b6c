package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// noKeys returns an error that says under which other namespaces a rule has keys.
func (o *operator) noKeys(ctx context.Context, d declared) error {
	var mu sync.Mutex
	seen := make(map[string]bool)
	err := o.masters(ctx, func(ctx context.Context, server *redis.Client) error {
		for cursor := uint64(0); ; {
			keys, next, err := server.Scan(ctx, cursor, "*"+literally.Replace(d.Prefix)+"*", surveyBatch).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			for _, key := range keys {
				if before, _, _ := strings.Cut(key, d.Prefix); before != o.namespace+":" && len(seen) < 10 {
					seen[strings.TrimSuffix(before, ":")] = true
				}
			}
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	if err != nil {
		return o.explained(err)
	}
	where := "there is none in any other either: no call is counted now"
	if len(seen) > 0 {
		where = "there are some in " + namespaces(slices.Sorted(maps.Keys(seen))...)
	}
	return nothingf("no key of rule %s in %s: %s", d.Name, namespaces(o.namespace), where)
}

// namespaces names namespaces.
func namespaces(names ...string) string {
	for i, name := range names {
		names[i] = `the namespace "` + printable(name) + `"`
		if name == "" {
			names[i] = "no namespace"
		}
	}
	return strings.Join(names, ", ")
}

// masters calls do for every server that holds keys.
func (o *operator) masters(ctx context.Context, do func(context.Context, *redis.Client) error) error {
	switch c := o.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *redis.Client:
		return do(ctx, c)
	}
	return nil // connect makes no other client
}

// literally escapes what has a meaning in a pattern of SCAN.
var literally = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
