// Package record is the format of what package raterecord records: blocks, each of which can be
// read without the others. A block has a checksum, says which recording it is a part of, and has
// the rules and the callers that its events are about.
//
//	block    = "RRB1" length(4) crc32c(4) payload
//	payload  = length meta(JSON) event...
//	event    = 1 time waited label flags count limit...    a call
//	         | 2 time count settled...                     a settlement
//
// Numbers are varints, times the difference to the event before in microseconds. What a block
// names for the first time, a rule, a caller or a label, stands there in full, after the number 0;
// later it is a number from 1 on.
package record

import (
	"hash/crc32"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	rules "github.com/rategen/rategen/runtime/rule"
)

// Version is the version of the format.
const Version = 1

// Bounds of what a reader accepts, whoever has written it.
const (
	MaxBlock   = 1 << 18 // bytes of a payload
	fullBlock  = 1 << 16 // from which on a writer begins another one
	headerSize = 12
	maxRule    = 1 << 12 // bytes of a rule's text
	maxLabel   = 64
	maxMeta    = 1 << 10
)

var (
	magic      = [4]byte{'R', 'R', 'B', '1'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// A Meta is what a block says of itself.
type Meta struct {
	Version int `json:"version"`
	// Recording is the name of the recording, which is that of one process.
	Recording string `json:"recording"`
	// Block numbers the blocks of a recording from 1 on.
	Block uint64 `json:"block"`
	// Time is that of the first event, in microseconds since 1970.
	Time int64 `json:"time"`
	// Secret is equal for callers that were named by equal secrets.
	Secret string `json:"secret"`
	// Share is how many of the callers are recorded.
	Share float64 `json:"share"`
	// Dropped is how many events the recording has lost so far.
	Dropped uint64 `json:"dropped,omitempty"`
	// Steps is how often its clock was set back so far, by more than 100 ms.
	Steps uint64 `json:"steps,omitempty"`
}

// A Caller is the keyed hash of a caller's key.
type Caller [16]byte

// Everybody is the caller of a rule without a key.
var Everybody Caller

// A RuleState is a rule as it was in force.
type RuleState struct {
	// Rule has its overrides and the zone and anchor of the call; Declared has none.
	Rule, Declared *runtime.Rule
}

// Divides reports whether the calls of a state of a rule say of which share they are.
func (s *RuleState) Divides() bool { return s.Declared.Headroom != 0 }

// The kinds of events.
const (
	kindCall       = 1
	kindSettlement = 2
)

// An Event is a call or, if Settles is true, a settlement.
type Event struct {
	Settles bool
	// Time is when it was decided, by the clock of the process, in microseconds since 1970.
	Time int64
	// Waited is how long the call had waited, in microseconds.
	Waited int64
	// Label is what the program said of the call, or empty.
	Label string
	// Partial says that the call had limits that are not recorded.
	Partial bool
	Limits  []Limit
}

// A Limit is one limit of a call or of a settlement, as package runtime tells it.
type Limit struct {
	// Rule and Caller are numbers that the reader has given them.
	Rule, Caller uint32
	Verdict      observe.Verdict
	Source       rules.Source
	Cost, Max    int64
	Share        uint32 // a caller's number; Weight is 0 where there is none
	Weight       int64
	Wait         int64 // for which the call could still wait, in microseconds
	Charged      int64 // when, by the store; 0: nothing was
	Settled      int64
}

// The flags of a limit.
const (
	flagMax     = 1 << iota // the max is not that of the rule
	flagWait                // the call could wait
	flagCharged             // it was charged
	flagShare               // it is of a share
)

func crc(payload []byte) uint32 { return crc32.Checksum(payload, castagnoli) }
