package diag

// A Code names a kind of warning. It ends the line of a warning, and begins what the
// manual, cmd/rategen/doc.go, says about it.
type Code string

// codes are all of them.
var codes []Code

func code(name Code) Code {
	codes = append(codes, name)
	return name
}

// The kinds of warnings.
var (
	SharedName     = code("shared_name")
	LargeLog       = code("large_log")
	DearCall       = code("dear_call")
	MeteredLog     = code("metered_log")
	NoKey          = code("no_key")
	NilableKey     = code("nilable_key")
	KeyWithPort    = code("key_with_port")
	KeyOfTime      = code("key_of_time")
	EmbeddedLimits = code("embedded_limits")
	NoContext      = code("no_context")
	ShortLine      = code("short_line")
	ShortBlock     = code("short_block")
	ShortLapse     = code("short_lapse")
	EarlyPermit    = code("early_permit")
	IdleLease      = code("idle_lease")
	SoftUnasked    = code("soft_unasked")
	HiddenMethods  = code("hidden_methods")
	NotWrapped     = code("not_wrapped")
	UnusedPolicy   = code("unused_policy")
	UnevenKeys     = code("uneven_keys")
	UnknownOut     = code("unknown_out")
	GeneratedFile  = code("generated_file")
	NotWired       = code("not_wired")
)
