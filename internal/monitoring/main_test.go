package main

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis has a line for every dial of a Redis that is away
	os.Exit(m.Run())
}
