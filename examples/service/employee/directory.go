package employee

import (
	"context"
	"sync/atomic"
)

// A Directory is an EmployeeService that stands for a database. It knows nothing
// of limits, and counts its reads.
type Directory struct {
	employees []Employee
	reads     atomic.Int64
}

var _ EmployeeService = (*Directory)(nil)

// NewDirectory returns a Directory of the given employees.
func NewDirectory(employees ...Employee) *Directory {
	return &Directory{employees: employees}
}

// GetByID implements EmployeeService.
func (d *Directory) GetByID(_ context.Context, id string) (*Employee, error) {
	return d.find(func(e Employee) bool { return e.ID == id })
}

// GetByEmail implements EmployeeService.
func (d *Directory) GetByEmail(_ context.Context, email string) (*Employee, error) {
	return d.find(func(e Employee) bool { return e.Email == email })
}

// Reads returns how often the directory was read.
func (d *Directory) Reads() int64 { return d.reads.Load() }

func (d *Directory) find(match func(Employee) bool) (*Employee, error) {
	d.reads.Add(1)
	for _, e := range d.employees {
		if match(e) {
			return &e, nil
		}
	}
	return nil, ErrNotFound
}
