// Package crossing composes the features of a limiter with each other at random, and
// judges what callers saw by one oracle. It has tests only.
//
//   - A program is what callers, operators and faults do, and when: program_test.go and
//     draw_test.go.
//   - A world is where it runs, with faults: memory, one Redis, a cluster, or a wire, which is
//     a Redis far away whose trips take as long as the program says.
//   - A history is what was seen: history_test.go and run_test.go. Its text is a document of
//     limiters: history_text_test.go.
//   - The oracle says what is wrong with it: oracle_*_test.go.
//   - What few rules have is drawn and judged in one file: cap_test.go, hold_test.go,
//     load_test.go, metering_test.go, edit_test.go, nobody_test.go,
//     register_test.go, surge_test.go, tenant_test.go and turns_test.go.
package crossing

import (
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A program is what happens to a limiter.
type program struct {
	Rules     []*runtime.Rule
	Cap       *runtime.Rule // of each process, or nil
	Processes int           // limiters on one store
	Polled    bool          // the limiters follow overrides
	Edited    bool          // which operators edit in a hash
	load      *load         // which limits that adapt follow
	Replicas  int           // that the limiters believe to be
	Roams     bool          // callers bring zones and anchors of their own
	Days      bool          // it goes on for days, or months
	Turns     bool          // calls of some processes wait for the same permits, and do nothing else
	Lasts     time.Duration // that is how long these last at most
	Closes    bool          // the first limiter is closed while calls run
	Begins    time.Time     // at least
	Trip      trip          // to a server that is far away
	OneClient bool          // which the stores of all processes have
	Hasty     bool          // calls have less time for Redis than a busy machine may need
	Steps     []step
}

// A step happens a while after the step before it has begun, whether or not that is over.
type step struct {
	Gap     time.Duration
	Process int
	Times   int // if above 1, it happens again
	Every   time.Duration
	Do      action
}

// An action is a call, a reset, a change of overrides, a step of the clock or a fault.
type action interface{ run(*process) }

// A use is one limit of a call.
type use struct {
	Rule, Key int
	Cost      int64
	Max       int64  // in place of the rule's, or 0
	Zone      string // that a period is of which this call begins, and its anchor; empty: the rule's
	Anchor    int
	Tenant    int   // of those who share the key
	Weight    int64 // of that, or 0: the rule divides nothing
}

// A call is made, and settled when it ends.
type call struct {
	Uses     []use
	Each     bool          // all uses by TakeEach, each a call of its own
	Beside   int           // limits of other keys, which TakeEach has besides
	Cancel   time.Duration // after which the caller leaves; 0: never
	Deadline bool          // the caller says so before
	Again    bool          // refused, it comes when its RetryAfter is over
	Early    bool          // and also just before
	Hasty    bool          // and also at once, and goes by what it is told then, from memory perhaps
	Next     int           // how often the caller comes again as soon as the call before is over
	Holds    time.Duration // how long it lasts
	Settle   settling
	Later    bool      // it is settled by SettleLater
	Wrong    wrong     // what is tried besides
	Exempt   bool      // no limit holds for it
	Meter    *metering // in place of Holds: it is charged while it runs, and then closed; nil: it is not
}

// A settling says at which cost a call is settled.
type settling uint8

const (
	not settling = iota // only what must be is
	same
	less
	more
	zero
	settlings
)

// A wrong is a mistake in settling.
type wrong uint8

const (
	none    wrong = iota
	foreign       // another limiter is asked to, before
	twice         // it is settled again
	wrongs
)

// A reset forgets a key.
type reset struct{ Rule, Key int }

// A change has overrides in force, in place of those before.
type change struct {
	Rules  map[int]rule.Override
	Off    bool // there are no limits
	Switch bool // the program says so itself
}

// A jump sets the clock of the store.
type jump struct{ By time.Duration }

// A forget has all servers forget the scripts, which is no fault: nobody may notice.
type forget struct {
	Amid *call // is under way then, and the next process loads what it needs; or nil
}

// A trouble is a fault of the store, for a time.
type trouble struct {
	Kind  fault
	Lasts time.Duration
	Busy  *call         // made often enough to be refused just before, or nil
	Every time.Duration // and again so often meanwhile
}

// A fault is a way in which a store fails.
type fault uint8

const (
	slow       fault = iota // answers come late
	frozen                  // no answers come
	down                    // it refuses
	lost                    // it decides, and answers are lost
	flushed                 // it forgets all keys
	forbidden               // it refuses keys of the rules that are in shadow mode
	moved                   // slots move to another node
	killed                  // it dies, and starts empty
	unscripted              // it forgets all scripts, and no limit is to notice: a [forget]
	faultKinds
)

// faultSteps are the faults as documents have them.
var faultSteps = [...]string{
	"store is late 3ms", "store is late 1h", "store fails", "store loses answers", "# all keys are lost", "# shadow keys are forbidden",
	"# slots move", "# the server is killed", "# all scripts are lost",
}
