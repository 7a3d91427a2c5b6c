module github.com/rategen/rategen/generator/golangci

go 1.26.0

require (
	github.com/golangci/plugin-module-register v0.1.2
	github.com/rategen/rategen v0.0.0
	golang.org/x/tools v0.32.0
)

require (
	github.com/dave/jennifer v1.2.0 // indirect
	golang.org/x/mod v0.24.0 // indirect
	golang.org/x/sync v0.13.0 // indirect
)

replace github.com/rategen/rategen => ../..
