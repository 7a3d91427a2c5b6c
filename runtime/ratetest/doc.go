// Package ratetest helps to test code that is rate-limited: without Redis, without
// sleeping, and with limits that count exactly.
//
// [New] returns a limiter for a test. Give its [runtime.Limiter] to the code under
// test, move time with [Limiter.Advance], script answers with [Limiter.Next], and
// assert decisions with [Limiter.Check]:
//
//	limiter := ratetest.New(t)
//	greeter := NewRateLimitedGreeter(plainGreeter{}, limiter.Limiter)
//
//	// … call greeter four times …
//	limiter.Check("hello.Greeter.Greet").Admitted(3).Refused(1)
//
//	limiter.Advance(10 * time.Second)
//	// … call it again …
//	limiter.Check("hello.Greeter.Greet").Admitted(4)
//
// [Unlimited] is for tests in which limits do not matter. Package ratetestredis has a
// Redis within the process, for code that makes its own store.
//
// # Time
//
// In a bubble of testing/synctest the limiter uses the clock of the bubble.
// Advance then sleeps in the bubble, and calls that wait for their turn take no real
// time:
//
//	synctest.Test(t, func(t *testing.T) {
//		limiter := ratetest.New(t)
//		begin := limiter.Now()
//		// … make calls that wait …
//		if took := limiter.Now().Sub(begin); took != 30*time.Second {
//			t.Errorf("the calls took %v", took)
//		}
//	})
//
// Outside of a bubble the limiter has a clock of its own. It begins in the year 2100
// and stands still until Advance moves it, so that a result does not depend on how
// fast the test runs. These fail the test there:
//
//   - A call that has to wait for its turn. Nothing would wake it, so it is decided without the wait. Such
//     a test belongs in a bubble.
//   - A [Slow] answer, which cannot be scripted.
//   - A decision that another clock has made, and that is settled or refunded here: in a bubble, too.
//
// # Findings
//
// A test fails at its end if no call reached the limiter, or if the limiter has
// findings, see [runtime.Limiter.Findings]. [Limiter.Accept] accepts one.
//
// # Other clocks
//
// Outside of a bubble, scalers, the polling of overrides and the deadlines of contexts
// use the clock of the machine.
//
// A permit of a concurrency limit does not lapse while its call runs, however far
// Advance moves the clock.
package ratetest
