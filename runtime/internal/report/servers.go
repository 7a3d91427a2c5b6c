package report

import (
	"log/slog"
	"sync"
)

// maxServers is how many servers are told apart at a time.
const maxServers = 1000

// servers has the numbers by which lines tell servers apart, since no line holds an address. A
// server has one number in all lines of the process, in the order in which they were met.
var servers struct {
	sync.Mutex
	numbers map[string]int64
	last    int64
}

// serverOf returns what a line says of a server, if that is known.
func serverOf(server string) []slog.Attr {
	if server == "" {
		return nil
	}
	servers.Lock()
	defer servers.Unlock()
	number, known := servers.numbers[server]
	if !known {
		if len(servers.numbers) >= maxServers || servers.numbers == nil {
			servers.numbers = make(map[string]int64) // those that have gone, too
		}
		servers.last++
		number = servers.last
		servers.numbers[server] = number
	}
	return []slog.Attr{slog.Int64("server", number)}
}
