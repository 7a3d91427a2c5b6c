module github.com/rategen/rategen/examples/wiring

go 1.26.0

require (
	github.com/google/wire v0.7.0
	github.com/rategen/rategen v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/fx v1.24.0
	go.uber.org/mock v0.6.0
	go.yaml.in/yaml/v4 v4.0.0
	golang.org/x/mod v0.42.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dave/jennifer v1.7.1 // indirect
	github.com/google/subcommands v1.2.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/stretchr/objx v0.5.3 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/dig v1.19.0 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	go.uber.org/zap v1.26.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
)

tool (
	github.com/google/wire/cmd/wire
	github.com/rategen/rategen/cmd/rategen
	go.uber.org/mock/mockgen
)

replace github.com/rategen/rategen => ../..
