package server

import (
	"context"
	"strconv"
	"time"

	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rediswire"
)

const (
	// processTurn is how long reports go into one of two hashes. Those who report more often
	// are in one of them at any time.
	processTurn = 2 * time.Minute
	processTime = time.Second
)

// processKeys returns the keys of the hashes with the reports of the processes of a namespace.
// No key of a rule has their hash tag, since a brace in a part of it is escaped.
func processKeys(namespace string) [2]string {
	if namespace != "" {
		namespace += ":"
	}
	start := namespace + "rate_limit:{processes}:"
	return [2]string{start + "0", start + "1"}
}

// ReportProcess writes the report of a process, or takes it away if it is empty.
func ReportProcess(ctx context.Context, client rediswire.Client, namespace, process, report string) error {
	ctx, cancel := context.WithTimeout(ctx, processTime)
	defer cancel()
	keys := processKeys(namespace)
	command := []rediswire.Command{{
		Args: []string{"eval", lua.Processes(), "2", keys[0], keys[1], strconv.Itoa(int(processTurn / time.Second)), process, report},
		Key:  rediswire.FirstKey,
	}}
	client.Patient(processTime).Do(ctx, command)
	return private.Hide(command[0].Err)
}

// Processes returns the reports of the processes of a namespace. One may have two, of which one is
// older.
func Processes(ctx context.Context, client rediswire.Client, namespace string) (reports []string, err error) {
	commands := make([]rediswire.Command, 0, 2)
	for _, key := range processKeys(namespace) {
		commands = append(commands, rediswire.Command{Args: []string{"hvals", key}, Key: 1})
	}
	client.Do(ctx, commands)
	if err := rediswire.First(commands); err != nil {
		return nil, private.Hide(err)
	}
	for _, c := range commands {
		values, _ := c.Value.([]any)
		for _, value := range values {
			if report, ok := value.(string); ok {
				reports = append(reports, report)
			}
		}
	}
	return reports, nil
}
