package server

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/refusals"
	"github.com/rategen/rategen/runtime/rediswire"
)

// MaxRefused is how many callers Redis keeps of a minute.
const MaxRefused = 100

const (
	// processTurn is how long reports go into one of two hashes. Those who report more often
	// are in one of them at any time.
	processTurn = 2 * time.Minute
	processTime = time.Second
)

// processKeys returns the keys of the hashes with the reports of the processes of a namespace, and
// that of what they have refused.
// No key of a rule has their hash tag, since a brace in a part of it is escaped.
func processKeys(namespace string) [3]string {
	if namespace != "" {
		namespace += ":"
	}
	start := namespace + "rate_limit:{processes}:"
	return [3]string{start + "0", start + "1", start + "refused"}
}

// A Report is what a process tells of itself.
type Report struct {
	Process string
	// Text is what it has in force. It is empty if the process ends: then its last one goes.
	Text string
	// Refused are the callers that were refused since the last report, which are kept for Kept, with
	// their keys as Hidden returns them.
	Refused []refusals.Refusal
	Kept    time.Duration
	Hidden  func(key string) string
}

// ReportProcess writes the report of a process.
func ReportProcess(ctx context.Context, client rediswire.Client, namespace string, r Report) error {
	ctx, cancel := context.WithTimeout(ctx, processTime)
	defer cancel()
	keys := processKeys(namespace)
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	args := []string{"eval", lua.Processes(), "3", keys[0], keys[1], keys[2], seconds(processTurn), r.Process, r.Text,
		seconds(r.Kept), strconv.Itoa(MaxRefused)}
	most, others := refusals.Most(r.Refused, MaxRefused)
	for _, c := range most {
		caller := url.PathEscape(c.Rule) + "\t" + r.Hidden(c.Key)
		if c.Max >= 0 {
			caller += "\t" + strconv.FormatInt(c.Max, 10)
		}
		args = append(args, caller, strconv.FormatUint(c.Count, 10))
	}
	if others > 0 {
		args = append(args, "", strconv.FormatUint(others, 10))
	}
	command := []rediswire.Command{{Args: args, Key: rediswire.FirstKey}}
	client.Patient(processTime).Do(ctx, command)
	return private.Hide(command[0].Err)
}

// Processes returns the reports of the processes of a namespace. One may have two, of which one is
// older.
func Processes(ctx context.Context, client rediswire.Client, namespace string) (reports []string, err error) {
	commands := make([]rediswire.Command, 0, 2)
	keys := processKeys(namespace)
	for _, key := range keys[:2] {
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
