package main

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) {
	redis.SetLogger(discard{}) // it has a line for every dial of a Redis that is away
	os.Exit(m.Run())
}

type discard struct{}

func (discard) Printf(context.Context, string, ...any) {}
