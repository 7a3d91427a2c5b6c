module github.com/rategen/rategen/examples/frameworks

go 1.26.0

require (
	github.com/DATA-DOG/go-sqlmock v1.5.2
	github.com/ThreeDotsLabs/watermill v1.5.1
	github.com/danielgtaylor/huma/v2 v2.37.2
	github.com/go-chi/chi/v5 v5.5.0
	github.com/go-kit/kit v0.13.0
	github.com/grpc-ecosystem/grpc-gateway/v2 v2.22.0
	github.com/hibiken/asynq v0.26.0
	github.com/mark3labs/mcp-go v1.2.1
	github.com/oapi-codegen/runtime v1.8.0
	github.com/rategen/rategen v0.0.0
	github.com/twitchtv/twirp v8.1.3+incompatible
	github.com/vektah/gqlparser/v2 v2.5.64
	go.temporal.io/api v1.63.5
	go.temporal.io/sdk v1.50.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/facebookgo/clock v0.0.0-20150410010913-600d898af40a // indirect
	github.com/go-kit/log v0.2.0 // indirect
	github.com/go-logfmt/logfmt v0.5.1 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/mock v1.6.0 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/grpc-ecosystem/go-grpc-middleware/v2 v2.3.2 // indirect
	github.com/lithammer/shortuuid/v3 v3.0.7 // indirect
	github.com/nexus-rpc/nexus-proto-annotations v0.1.0 // indirect
	github.com/nexus-rpc/sdk-go v0.7.0 // indirect
	github.com/oklog/ulid v1.3.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/riverqueue/river/riverdriver v0.51.2 // indirect
	github.com/riverqueue/river/rivershared v0.51.2 // indirect
	github.com/riverqueue/river/rivertype v0.51.2 // indirect
	github.com/robfig/cron v1.2.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/stretchr/objx v0.5.3 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	github.com/tidwall/gjson v1.20.0 // indirect
	github.com/tidwall/match v1.2.0 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	go.uber.org/dig v1.19.0 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	go.uber.org/zap v1.26.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/oauth2 v0.36.0 // indirect
)

require (
	github.com/apapsch/go-jsonmerge/v2 v2.0.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dave/jennifer v1.7.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/modelcontextprotocol/go-sdk v1.8.0
	github.com/rategen/rategen/runtime/rategrpc v0.0.0
	github.com/rategen/rategen/runtime/raterpc v0.0.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0
	github.com/riverqueue/river v0.51.2
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.10.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/fx v1.24.0
	go.uber.org/mock v0.6.0
	go.yaml.in/yaml/v4 v4.0.0
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)

tool (
	github.com/rategen/rategen/cmd/rategen
	go.uber.org/mock/mockgen
)

replace github.com/rategen/rategen => ../..

replace github.com/rategen/rategen/runtime/rategin => ../../runtime/rategin

replace github.com/rategen/rategen/runtime/rateecho => ../../runtime/rateecho

replace github.com/rategen/rategen/runtime/rateecho4 => ../../runtime/rateecho4

replace github.com/rategen/rategen/runtime/ratefasthttp => ../../runtime/ratefasthttp

replace github.com/rategen/rategen/runtime/ratefiber2 => ../../runtime/ratefiber2

replace github.com/rategen/rategen/runtime/rategrpc => ../../runtime/rategrpc

replace github.com/rategen/rategen/runtime/raterpc => ../../runtime/raterpc
