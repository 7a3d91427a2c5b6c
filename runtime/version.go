package runtime

// Generated code names the runtime version it was written for. When the runtime is older the
// name does not exist, and the build fails there instead of a limit misbehaving later: update
// with
//
//	go get github.com/rategen/rategen
const (
	IsAtLeastVersion0_1_0 = true
)
