module github.com/rategen/rategen/examples/grpc

go 1.26.0

require (
	github.com/rategen/rategen v0.0.0
	github.com/rategen/rategen/runtime/rategrpc v0.0.0
	github.com/rategen/rategen/runtime/raterpc v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/grpc v1.85.0
	google.golang.org/grpc/examples v0.0.0-20260825154716-030ee8becb20
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dave/jennifer v1.7.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/tools v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

tool github.com/rategen/rategen/cmd/rategen

replace github.com/rategen/rategen => ../..

replace github.com/rategen/rategen/runtime/rategrpc => ../../runtime/rategrpc

replace github.com/rategen/rategen/runtime/raterpc => ../../runtime/raterpc
