package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks whether to do something, unless -yes has said so.
func (o *operator) confirm(question string, args ...any) error {
	if o.yes {
		return nil
	}
	question = fmt.Sprintf(question, args...)
	if !o.asks {
		return failure{unconfirmed, "nothing is changed: there is no terminal to ask on; say -yes to " + question}
	}
	fmt.Fprintf(o.err, "%s? [y/N] ", strings.ToUpper(question[:1])+question[1:])
	answer, _ := bufio.NewReader(o.in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return failure{unconfirmed, "nothing is changed"}
}
