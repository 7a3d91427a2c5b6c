// Package redis has Redis decide calls.
//
// # Servers
//
// A [Router] takes calls to the servers that their keys are on. On a single server that is
// one batcher. On a cluster or a ring there is one for each server, so that one which does
// not respond holds up nobody else's calls. A call whose keys lie in several slots is charged
// in parts, one in each slot, and what was charged is given back if another part has no room.
//
// # Batches
//
// Concurrent calls of a process share trips to a server. Up to two callers send a batch
// each. More wait while batches are under way, and when one returns they are sent together.
// Callers who call again as soon as they are told come along.
//
// A return, by which a call gives back what it was charged, goes with the next batch, ahead of
// what that takes. If there is none within a millisecond it goes by itself. See [Router.Return].
//
// Heavy callers, whose calls are more work than four charges, are sent in portions: those of a
// process have no more queued and under way than keeps Redis busy. Other callers overtake the rest,
// but not one that gives back what they may take.
//
// # Time and failure
//
// A caller's budget is the timeout, and runs from its arrival. It covers the wait for a batch,
// a connection and the answer. A caller whose budget or context is over leaves; its batch
// goes on.
//
// A batch's budget runs from when it is sent. An answer that comes within the timeout is a
// success, whoever still waits for it. After that the batch is overdue, which is one failure,
// and others no longer wait for it to return. It keeps its connection for half a second at
// least, since a connection to a distant Redis takes several round trips to make.
//
// Two shared batches may be under way at any time: while Redis works on one, the reply of the
// other and the next request are on the wire. When a caller has waited for a tenth of the
// timeout one more is sent for it: just one if Redis is near, which then takes unusually long,
// and as many as the connections allow if it is far away, where more batches at a time cost it
// nothing. While Redis fails there is one at a time, so that batches without an answer do not
// use up the connections.
//
// # Circuit breakers
//
// A breaker keeps calls from waiting for a Redis that is not there. A batch is one piece of
// evidence, however many callers wait for it. It succeeds when its answer comes within the
// timeout, and fails when it does not or when the connection breaks. The breaker opens when at
// least three batches in a row have failed and Redis has been silent for 200 ms, or for the
// timeout if that is longer; silence begins when the first of them was sent. Answers that come
// too late double that time: a Redis that is far away may just be making connections. So no
// stall shorter than that opens the breaker, and a Redis that is frozen does, whatever the
// deadlines of callers are.
//
// While the breaker is open one call every 200 ms, give or take a quarter, passes as a probe.
// Its success closes the breaker.
package redis
