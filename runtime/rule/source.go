package rule

// A Source says who made a runtime.Decision.
type Source uint8

const (
	// SourceNone means that no count was read: the limiter is switched off, no limit applies,
	// every cost is 0 and no key can be blocked, or the call can never be admitted.
	SourceNone Source = iota
	// SourceStore means that the limiter's store decided.
	SourceStore
	// SourceRecalled means that an earlier refusal by the store is still in force. The store was
	// not asked again.
	SourceRecalled
	// SourceLocal means that the store gave no answer and this process decided alone.
	SourceLocal
	// SourceFailure means that nothing could decide, and the failure policy did.
	SourceFailure
	// SourceProcess means that the process's own cap refused the call before the store was
	// asked, see runtime.WithProcessCap.
	SourceProcess
	// SourceLease means that this process decided by a lease, which the store has charged
	// before, see [Rule.Lease].
	SourceLease
)

// String returns the source in lower case.
func (s Source) String() string {
	return spelled("Source", uint8(s), "none", "store", "recalled", "local", "failure", "process", "lease")
}
