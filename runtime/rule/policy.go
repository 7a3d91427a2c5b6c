package rule

// A Mode says whether a limit refuses calls.
type Mode uint8

const (
	// ModeEnforce refuses calls that the limit has no room for.
	ModeEnforce Mode = iota
	// ModeShadow counts calls but refuses none, to try a limit on real traffic. A call that the
	// limit has no room for goes on uncounted, as if it was refused. A shadow limit never delays
	// or refuses a call, whatever its Wait and failure policy, its key, and its numbers are,
	// and changes nothing for the other limits of the call, whatever fails. If its key is in
	// another slot of a cluster than theirs the call may wait a millisecond longer for it.
	//
	// It counts and judges the calls that the other limits admit. Of a call that these refuse it
	// says nothing but observe.VerdictNotCharged.
	ModeShadow
	// ModeSoft is [ModeShadow] but for one thing: a call that the limit has no room for knows
	// it, by runtime.Exceeded, and may do less than others.
	ModeSoft
)

// Refuses reports whether a limit in the mode refuses calls. One that does not only counts them.
func (m Mode) Refuses() bool { return m != ModeShadow && m != ModeSoft }

// String returns the mode as the directive spells it.
func (m Mode) String() string { return spelled("Mode", uint8(m), "enforce", "shadow", "soft") }

// A FailurePolicy decides calls that the store does not, since Redis is down, say: [FailOpen],
// [FailClosed] or [FailLocal].
type FailurePolicy uint8

const (
	// FailDefault leaves the choice to the limiter, see runtime.WithFailurePolicy.
	FailDefault FailurePolicy = iota
	// FailOpen lets the call through.
	FailOpen
	// FailClosed refuses the call with runtime.ErrUnavailable. For a limit in [ModeShadow] mode it is
	// FailOpen.
	FailClosed
	// FailLocal lets this process decide alone, with a runtime.MemoryStore of the limiter's own. With
	// n replicas up to n times Max may pass, unless runtime.WithReplicas gives each its share.
	FailLocal
)

// String returns the policy as the directive spells it.
func (p FailurePolicy) String() string {
	return spelled("FailurePolicy", uint8(p), "default", "open", "closed", "local")
}

// An InvalidKeyPolicy decides calls whose key could not be built, see [Key.AddInvalid]. That is
// the program's doing and not the store's, so it is no matter of a [FailurePolicy].
type InvalidKeyPolicy uint8

const (
	// InvalidShare has calls share one budget whose keys lack the same parts and are equal
	// else. The log tells once for each rule that there are such calls. A call whose max could
	// not be evaluated either is refused with runtime.ErrInvalidKey, since no budget is known.
	InvalidShare InvalidKeyPolicy = iota
	// InvalidRefuse refuses the call with runtime.ErrInvalidKey. For a limit in [ModeShadow] mode it
	// is InvalidAdmit.
	InvalidRefuse
	// InvalidAdmit lets the call through, and counts it nowhere.
	InvalidAdmit
)

// String returns the policy as the directive spells it.
func (p InvalidKeyPolicy) String() string {
	return spelled("InvalidKeyPolicy", uint8(p), "share", "refuse", "admit")
}
