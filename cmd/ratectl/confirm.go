package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// A changing command asks before it changes something, and notes what it does in the history.
type changing struct {
	session
	yes, dry bool
	why      string
}

func (c *changing) yesFlag() cli.Flag {
	return yesNo(&c.yes, "yes", "do not ask for confirmation")
}

// tryFlags are those of every change.
func (c *changing) tryFlags() []cli.Flag {
	return []cli.Flag{
		yesNo(&c.dry, "n", "change nothing: print what would be changed"),
		text(&c.why, "m", "`reason` of the change, for the history; who makes it is in RATECTL_WHO or USER"),
	}
}

// confirm asks whether to do something, unless that is settled by -yes. An interrupt counts as no.
func (c *changing) confirm(ctx context.Context, question string, args ...any) error {
	if c.yes {
		return nil
	}
	question = visible(fmt.Sprintf(question, args...))
	if !c.asks {
		return failure{unconfirmed, "nothing is changed: there is no terminal to ask on; say -yes to " + question}
	}
	fmt.Fprintf(c.err, "%s? [y/N] ", strings.ToUpper(question[:1])+question[1:])
	lines, answers := bufio.NewReader(c.in), make(chan string, 1)
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
		fmt.Fprintln(c.err)
	}
	return failure{unconfirmed, "nothing is changed"}
}

// author returns the author of a change, for the history.
func (s *session) author() string {
	who := cmp.Or(s.getenv("RATECTL_WHO"), s.getenv("USER"))
	if who == "" && s.Hash != "" {
		s.logger().Print("the history does not say who this is: set RATECTL_WHO")
	}
	return who
}
