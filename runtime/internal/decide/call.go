package decide

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Try is what belongs to no single charge of a try.
type Try struct {
	// Arrived is the instant at which it began.
	Arrived time.Duration
	// State is where the call is. In any but [Planned] it has waited: what was refused before says
	// nothing about it.
	State State
	// Flag is the number of the decision's in Flags, which is nil if it has none yet.
	Flag  uint16
	Flags *terms.Flags
}

// An Operation is what is asked about a call.
type Operation uint8

const (
	// Take decides it.
	Take Operation = iota
	// Peek says how it would be decided. Nobody is told what is wrong with it.
	Peek
	// Attempt decides it without a wait. Without room it is [ledger.ErrNoRoom], of which nobody is told.
	Attempt
)

// A Call is one call with any limits on its way, in memory that may be used again, so that a call
// allocates nothing.
type Call struct {
	Try
	Charges []Charge       // those of limits in shadow mode behind the others
	Tries   []terms.Charge // what was found about each
	// Operation is what is asked.
	Operation Operation
	// MayWait, of a call that waits elsewhere, has a refusal be [ledger.ErrNoRoom] if it is true. It may be nil.
	MayWait func() bool
	// WaitedBefore is how long it had waited there before.
	WaitedBefore time.Duration
	// Unsatisfiable are charges of limits in shadow mode that are left out since they never fit.
	Unsatisfiable []Charge

	arena       ledger.Arena   // of what decisions keep of calls with several limits
	keys        []byte         // of the charges
	storeCall   [1]terms.Call  // what the store is asked
	openCharges []terms.Charge // its charges, if leases have admitted some
	issuer      terms.FlagIssuer
	engine      *Engine           // that has planned it, or nil
	overrides   *plan.OverrideSet // that were in force then, or nil

	claims      []claim       // of permits, while it asks for them
	roomCounts  []uint32      // [ledger.Lines.RoomCount] of each charge when a try began, of a call that may wait
	place       *ledger.Turn  // in a line for room, or nil
	waitEnd     time.Duration // the instant until which it may be there
	permitPause time.Duration // before it last asked for permits
	waitStart   time.Duration // the instant at which it began to wait; 0: it has not waited
	rule        string        // the rule that kept it for longest then
}

// A Tried call knows what its limits have said.
type Tried Call

// A waiting call is in a line of this process, or in a queue.
type waiting Call
