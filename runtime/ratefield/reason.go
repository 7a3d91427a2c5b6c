package ratefield

// The reasons of refusals, for programs: of the details of gRPC and Connect, and where a
// framework's errors have a reason.
const (
	// ReasonLimited: waiting helps.
	ReasonLimited = "RATE_LIMIT_EXCEEDED"
	// ReasonNever: the call costs more than its limit ever admits.
	ReasonNever = "COST_EXCEEDS_RATE_LIMIT"
	// ReasonUnavailable: the limiter could not decide.
	ReasonUnavailable = "RATE_LIMITER_UNAVAILABLE"
	// ReasonCapacity: a limit on the service's own calls is reached, see [Outgoing].
	ReasonCapacity = "TEMPORARY_REDUCED_CAPACITY"
	// ReasonInvalid: the limit itself, or its key, is wrong.
	ReasonInvalid = "RATE_LIMIT_INVALID"
	// ReasonNetwork: the client's network is not served.
	ReasonNetwork = "NETWORK_REFUSED"
)
