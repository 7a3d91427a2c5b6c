package server

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rediswire"
)

// similarNamespaces notes that a namespace is in use, and returns others of the last minutes whose
// names differ from it in case or blanks alone.
func similarNamespaces(ctx context.Context, client rediswire.Client, namespace string, now time.Time) (others []string, err error) {
	plain := strings.ToLower(strings.TrimSpace(namespace))
	if plain == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, processTime)
	defer cancel()
	turn := now.Unix() / int64(processTurn/time.Second)
	key := func(turn int64) string {
		return "rate_limit:{processes}:namespaces:" + plain + ":" + strconv.FormatInt(turn, 10)
	}
	commands := []rediswire.Command{
		{Args: []string{"hset", key(turn), namespace, ""}, Key: 1},
		{Args: []string{"expire", key(turn), strconv.Itoa(int(2 * processTurn / time.Second))}, Key: 1},
		{Args: []string{"hkeys", key(turn)}, Key: 1},
		{Args: []string{"hkeys", key(turn - 1)}, Key: 1},
	}
	client.Patient(processTime).Do(ctx, commands)
	if err := rediswire.First(commands); err != nil {
		return nil, private.Hide(err)
	}
	for _, c := range commands[2:] {
		names, _ := c.Value.([]any)
		for _, name := range names {
			if name, ok := name.(string); ok && name != namespace && !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	return others, nil
}
