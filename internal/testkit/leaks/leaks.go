// Package leaks has the tests of a package end without goroutines that they have left.
package leaks

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// Main runs tests, and ends the program.
func Main(tests interface{ Run() int }) {
	code := tests.Run()
	if code == 0 {
		if err := left(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// left returns the goroutines that are left. Those that are about to end may need a while on a busy
// machine, and goleak waits for half a second.
func left() (err error) {
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		// After many refused dials go-redis tries again once a second, and sees only at the end of
		// that second that its client was closed.
		if err = goleak.Find(goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")); err == nil {
			return nil
		}
	}
	return err
}
