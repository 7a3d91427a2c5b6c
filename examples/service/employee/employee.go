// Package employee looks up employees. Directives on its interface limit how often
// each caller may do so; go generate writes the decorator that enforces them.
package employee

import (
	"context"
	"errors"
)

//go:generate go tool rategen

//ratelimit:import "github.com/rategen/rategen/runtime/ratehttp"

// An Employee is one person of the company.
type Employee struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

// ErrNotFound is returned for an employee that does not exist.
var ErrNotFound = errors.New("no such employee")

// An EmployeeService looks up employees.
type EmployeeService interface {
	// GetByID returns the employee with the given id, or ErrNotFound.
	//
	//ratelimit:key=#id window=10s max=5 prefix=rate_limit:emp: message="查询太快啦，喝杯茶再来"
	GetByID(ctx context.Context, id string) (*Employee, error)

	// GetByEmail returns the employee with the given address, or ErrNotFound.
	// Addresses can be guessed, so the limit is for each client and not for each
	// address.
	//
	//ratelimit:key=ratehttp.ClientIP(#ctx)
	GetByEmail(ctx context.Context, email string) (*Employee, error)
}
