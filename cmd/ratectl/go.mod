module github.com/rategen/rategen/cmd/ratectl

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/jackc/pgx/v5 v5.11.0
	github.com/rategen/rategen v0.0.0
	github.com/rategen/rategen/runtime/rateledger v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/urfave/cli/v3 v3.14.0
	golang.org/x/term v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cockroachdb/datadriven v1.0.3 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.2 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/sync v0.17.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.29.0 // indirect
)

replace github.com/rategen/rategen => ../..

replace github.com/rategen/rategen/runtime/rateledger => ../../runtime/rateledger
