// Package generator writes decorators that keep calls within the limits
// declared on an interface's methods.
//
// It reads the //ratelimit: directives of Go packages, checks their
// expressions with go/types in the scope of the source file, and writes for
// each file x.go with directives a file x_ratelimit.go. Most programs use it
// through the command cmd/rategen, whose documentation is the manual.
package generator

import (
	"go/token"
	"time"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/generator/internal/load"
	"github.com/rategen/rategen/generator/internal/model"
)

// Run generates the files of the packages that cfg names. Its error is a
// [Diagnostics] if the input is at fault; nothing is written then.
//
// These are the steps of every run. Each takes what the one before returned,
// and report gathers what is wrong with the input.
func Run(cfg Config) (result *Result, err error) {
	cfg, err = cfg.complete()
	if err != nil {
		return nil, err
	}
	report := diag.NewReporter(token.NewFileSet(), cfg.Dir)
	defer report.Recover(token.Position{Filename: cfg.Dir}, func() { result, err = nil, diagnosticsOf(report) })

	// From the configuration to the files that an earlier run found up to
	// date, if nothing has changed since (package cache).
	record := cfg.openRecord()
	if result := (&Result{}); record.Recall(result) {
		return result, nil
	}
	start := time.Now()

	// From patterns to packages, as the go command lists them, and from their
	// files to directives (packages load and directive).
	program := load.List(cfg.load(), report)
	program.Parse()
	outs := openOuts(program, report)

	// From directives to type-checked files, generated code there or not
	// (package load).
	files := program.Check()

	// From these to wrappers with their rules and limits, every expression
	// checked (packages model and expr).
	builder := &model.Builder{Report: report, Outs: outs, ImportWay: program.ImportWay, Policies: program.PolicyPackages()}
	wrapped := builder.Build(files)
	builder.Warn(wrapped)
	program.WarnPlaces()
	builder.CheckOutputs(wrapped)
	if report.HasErrors() {
		return nil, diagnosticsOf(report)
	}

	// From wrappers to Go code (package emit), and to disk (package output).
	outputs := emitFiles(wrapped, report)
	outputs = append(outputs, orphansOf(program, outs, outputs)...)
	if report.HasErrors() {
		return nil, diagnosticsOf(report)
	}
	result, err = writeFiles(cfg, outputs, report)
	if err != nil {
		return result, err
	}
	result.addOthers(cfg, program, report)

	// From up-to-date files to a record of them for the next run (package
	// cache).
	if result.upToDate() {
		record.Keep(start, program.Sources(), result)
	}
	return result, nil
}
