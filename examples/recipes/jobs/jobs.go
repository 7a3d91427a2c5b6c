// Package jobs runs jobs, so many at a time over all workers.
package jobs

import "context"

//go:generate go tool rategen

// A Job is something to do for a tenant.
type Job struct {
	Tenant string
	ID     string
}

// Worker is the service.
type Worker interface {
	// Run runs a job to its end.
	//
	//ratelimit:algorithm=concurrency max=4 wait=10m fail=closed name=jobs.all
	//ratelimit:key=#job.Tenant algorithm=concurrency max=3 wait=10m fail=closed name=jobs.tenant
	Run(ctx context.Context, job Job) error
}
