package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// confirm asks whether to do something, unless -yes is given. An interrupt counts as no.
func (o *operator) confirm(ctx context.Context, question string, args ...any) error {
	if o.yes {
		return nil
	}
	question = visible(fmt.Sprintf(question, args...))
	if !o.asks {
		return failure{unconfirmed, "nothing is changed: there is no terminal to ask on; say -yes to " + question}
	}
	fmt.Fprintf(o.err, "%s? [y/N] ", strings.ToUpper(question[:1])+question[1:])
	lines, answers := bufio.NewReader(o.in), make(chan string, 1)
	go func() { // an interrupt does not end the read: it lasts as long as the program
		answer, _ := lines.ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answers:
		if (answer == "y" || answer == "yes") && ctx.Err() == nil {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(o.err)
	}
	return failure{unconfirmed, "nothing is changed"}
}
