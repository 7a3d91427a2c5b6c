/*
Rategen writes rate limits for the methods of Go interfaces.

Usage:

	rategen [-check] [-v] [-json] [-tags list] [-out dir [-pkg name]] [packages]
	rategen list [-json] [-tags list] [packages]
	rategen explain [-json] [-tags list] file.go:line

A directive above a method says how often it may be called:

	//go:generate go tool rategen

	type EmployeeService interface {
		// GetByID returns the employee with the given id.
		//
		//ratelimit:key=#id window=10s max=5
		GetByID(ctx context.Context, id string) (*Employee, error)
	}

For each file x.go with directives rategen writes x_ratelimit.go next to it,
with a type that wraps the interface and a constructor:

	limiter := runtime.New(runtime.NewRedisStore(client))
	var svc EmployeeService = NewRateLimitedEmployeeService(plain, limiter)

The wrapper asks the limiter, and so Redis, before it passes a call on. A call
over the limit returns an error that is runtime.ErrLimited. Commit the
generated file, and let rategen -check ./... guard it in your tests.

# Packages

Packages are named as for the go command, ./... included. Without any, rategen
works on the package of the current directory, as go generate needs it. It never
writes outside of the main module, whatever a pattern such as all reaches. It reads
test files as well. It skips files that build constraints exclude, and names
them: set GOOS, GOARCH or -tags to generate for them. What is generated from them
stays as it is, and -check fails if it has never been generated. The output is the same
in every build: a rule refers to the Go constants that its directive names, and names are
not those of other builds or tests.

All files of a run are written, or none. One that is replaced keeps its mode, and the
comments that somebody has put before its header, such as a licence. An -overlay in
GOFLAGS is not read.

# Flags

	-check  write nothing; name the files that are stale or missing
	-v      name each generated file and its status
	-json   print errors, warnings and stale files to standard output as JSON
	-tags   build tags, separated by commas
	-out    directory of another package to write the wrappers to, as in the
	        package's go:generate line
	-pkg    name of that package; by default that of its files or directory
	-version
	        print the version of rategen
	-h      print this manual

A run that finds all files up to date writes a record to the user's cache
directory. Until something changes that the files depend on, the next run takes
milliseconds. RATEGEN_CACHE names another directory for these records;
RATEGEN_CACHE=off turns them off.

The exit code is 0 on success, 1 if the input has errors or -check found a file
that is not up to date, and 2 if the command line is wrong. A run with an error
writes nothing.

Errors and warnings read file:line:column: message. With -json each is an object
on a line of its own, with the fields file, line, column, endLine, endColumn,
severity (error, warning or note), message, code (of a warning), text (the piece of
source in question) and, where the remedy is mechanical, fix: its newText replaces the text
from its line and column to its endLine and endColumn. Columns count bytes from 1.

# Directives

A directive is a line that starts with //ratelimit: in the comment directly
above a method. Options follow, written name=value and separated by blanks. A
value that contains blanks is a Go string, "…" or `…`. Several lines on a method
are several limits: a call must pass all of them, and is charged by all or by
none.

A directive above the interface itself is one limit shared by all its methods,
embedded ones too. A method without an error result cannot be refused a call,
unless it has the option deny or is an HTTP handler. Leave it out with the option
except, or with //ratelimit:off above it.
Directives on an embedded interface belong to the wrapper of that interface
only.

Methods of a type that is not an interface may have directives too:

	//ratelimit:key=#id max=5
	func (s *Service) Get(ctx context.Context, id string) (*Item, error) { … }

The interface of its exported methods, ServiceInterface, is then generated
along with the wrapper, RateLimitedService, into the file that belongs to the
file with the type's declaration. Methods that come from embedded fields belong to
it, but for those of the standard library's structs and those that the generated code
cannot name. If a struct embeds pb.UnimplementedGreeterServer, its wrapper is a
pb.GreeterServer. The type's own methods may stand in several files of the package. One that does not exist in every build of the
type, or is limited in some builds only, is an error.

A policy is a limit that directives use by name, in this package or in another:

	//ratelimit:policy name=api window=1m max=600 storage=packed

	//ratelimit:use=api key=#tenant

The policy stands on a line outside of all declarations, and has the options that
are not about one method. All limits that use it count together, for each key: their
rule is named <package>.api. A directive that gives a prefix of its own counts apart,
and may change the numbers of the policy. In another file use=limits.api is the
policy of the package that the file imports as limits, by its code or by a line
//ratelimit:import.

A line

	//ratelimit:defaults fail=closed storage=packed

holds for all directives and policies of its package that do not say otherwise. A
default that does not go with what a directive gives is left out, which rategen explain
says.

The options are:

  - key=PART,PART...: comma-separated Go expressions; each distinct value has
    its own count: #id is the parameter id, #0 the first (default: one budget
    for all callers)
  - window=DURATION|PERIOD: the time that max refers to, 1ms to 366d, or a Go
    constant such as config.Window; for fixed-window also day, week, month or
    year; for concurrency, how long permits survive their process (default:
    60s, for concurrency 30s)
  - keep=INTEGER: how many past periods of the calendar, 1 to 60, keep their
    counts, for Usage (default: none)
  - ledger=on|hash: keep what is used of a period of the calendar in Postgres:
    by key, or by the SHA-256 of a secret one (default: off)
  - tz=ZONE: time zone of a period of the calendar, such as Europe/Berlin, or a
    Go string expression such as #user.Zone (default: UTC)
  - anchor=DAY: where a period of the calendar begins: a day of the month such
    as 15, in a shorter month its last; a weekday such as sunday; the month and
    day of a year, 04-01; or a Go integer expression such as #plan.BillingDay
    (default: the 1st, monday, 01-01)
  - max=INTEGER: calls admitted in a window, or in flight: 1 to 1,000,000 for
    sliding-log and concurrency, 2⁵³-1 for fixed-window, 10¹² for others, or a
    Go integer expression such as #plan.PerMinute (default: 100)
  - rate=MAX/WINDOW: short for max and window: rate=5/10s is max=5 window=10s,
    100/s is 100 in 1s (default: max and window)
  - algorithm=NAME: how calls are counted: sliding-log, which is exact,
    sliding-counter, fixed-window, token-bucket, leaky-bucket or concurrency,
    which counts calls in flight (default: sliding-log; fixed-window for a
    period of the calendar)
  - storage=zset|packed: how Redis stores a sliding-log: zset is readable by
    hand, packed is smallest and fastest (default: zset)
  - resolution=DURATION: times in a sliding-log are rounded down to a multiple
    of this (default: exact)
  - buckets=N|NxM|auto: how a sliding-counter divides its window: 60 equal
    buckets, 6x10 layered ones, or auto, as wide as the traffic allows
    (default: 60)
  - burst=INTEGER: calls that a token-bucket or leaky-bucket admits at once, or
    that may wait in its queue, 1 to 10¹² (default: max, or as many as wait
    lets in)
  - share=PART,PART...: as key: who divides a token-bucket or leaky-bucket
    (default: first come, first served)
  - weight=INTEGER: how much its share gets beside others: 1 to 1,000,000, or a
    Go integer expression such as #plan.Weight (default: 1)
  - headroom=INTEGER: how much of the burst is for light shares: at most half
    of it, and max (default: a quarter)
  - cost=INTEGER: how many calls this one counts as: 1 to 250 for sliding-log
    and concurrency, or a Go integer expression such as len(#items) (default:
    1)
  - when=CONDITION: Go boolean expression; the limit applies if it is true
    (default: always applied)
  - prefix=TEXT: start of the Redis key (default:
    rate_limit:<package>.<Interface>.<Method>:)
  - name=TEXT: the rule's name in errors, logs and metrics (default:
    <package>.<Interface>.<Method>)
  - message=TEXT: error text of a refused call; {retry_after} in it is the time
    to wait (default: rate limit exceeded)
  - fail=open|closed|local: without an answer of Redis, open admits the call,
    closed refuses it, local counts in this process (default: the limiter's
    policy, open)
  - invalid=share|refuse|admit: for calls whose key cannot be built, as where
    #user is nil in #user.ID: share one count, refuse, or admit (default:
    share)
  - wait=DURATION: how long a call may wait for its turn, at most until its
    context's deadline; a leaky-bucket then spaces calls evenly (default: 0s)
  - block=DURATION: how long a refused caller stays refused; further tries do
    not extend it (default: 0s, until there is room)
  - lease=DURATION: for very hot keys: each process reserves calls and admits
    them locally for this long (default: 0s, Redis decides every call)
  - mode=enforce|soft|shadow: enforce refuses calls; shadow only counts and
    reports them; soft also reports them to the method (default: enforce)
  - adaptive=SIGNAL,SIGNAL...: cpu, memory, latency or several: the max follows
    the load of the process, from 0.5 to 1.5 times max (default: fixed)
  - refund=CONDITION: Go boolean expression over parameters and results such as
    #err: true refunds the charge when the call returns (default: charges stay)
  - settle=INTEGER: real cost, which replaces cost: a Go integer expression
    over parameters and results, such as #result.Usage.Total; negative if
    unknown (default: cost stays)
  - reserve=DURATION: for fixed-window with settle, refund or meter: how long,
    at least some seconds, a running call stays charged after its process dies
    (default: charges stay)
  - debt=refuse|carry|forgive: if settle charges more than is left: refuse
    calls until the window or period ends, carry the debt to the next, or
    forgive it (default: refuse of fixed-window, carry of others)
  - meter=INTEGER: for streams: what each message costs, a Go integer
    expression over parameters and #message, or for a reader #bytes (default:
    messages cost nothing)
  - hold=DURATION: for outgoing calls: how long all replicas refuse calls on
    this key, or have them wait, after this call returns; a Go time.Duration
    expression over parameters and results, such as retryAfter(#err) (default:
    nothing is held back)
  - deny=CALL: Go call whose results the method returns when this limit refuses
    it; #err is the refusal (default: the error, or an HTTP answer)
  - ctx=CONTEXT: the call's context, a Go expression such as
    #c.Request().Context() (default: a parameter that is one, or has a method
    Context())
  - usage=on|ENDING: on adds a method GetByIDUsage for GetByID that returns
    what is left; another suffix, such as Left, replaces Usage (default: no
    such method)
  - type=NAME: name of the wrapper, given on one line of an interface (default:
    RateLimited<Interface>)
  - except=METHOD,METHOD...: on an interface's line: methods without this limit
    (default: none left out)
  - only=METHOD,METHOD...: on an interface's line: the only methods with this
    limit (default: all methods)
  - replace=all|NAME: on a method's line: this limit replaces all limits of its
    interface, or the one with that name (default: added to them)
  - use=POLICY: a limit that a line //ratelimit:policy name=POLICY … declares,
    also in another package: use=limits.api (default: a limit of its own)

The name and the default prefix of a method's second limit end in #2, those of
the third in #3. The default prefix contains the package's name but not its path:
use runtime.WithNamespace where programs share a Redis.

A call's context is the first parameter of type context.Context. Without one it is
that of the first parameter with a method Context() context.Context, or the first
parameter that is a context by its methods. Ctx names another; that of a method's
own directive goes before that of the whole interface. If something on the way to
the context is nil, or the context itself, the call goes on without one.

Type is needed where the name of the wrapper is taken.

# Expressions

The options key, max, cost, when, refund, settle, hold, deny and ctx take Go
expressions. They are checked when the code is generated, as if they stood in the
source file: its imports and everything in its package can be used. #id is the
parameter id of the method, #0 its first parameter, and #s the receiver s of a
struct's method if it is a pointer, which the constructor then takes. In refund,
settle and hold #err is the last result, if it is an error, #session the result that
the method names session, and #result or #result0 the first, #result1 the second. In
deny #err is the refusal. Quotes around a whole value are not part of it: write
key=`"all"` for the text all as a key. A line

	//ratelimit:import "strings"

makes a package available to the directives of a file that does not import it
otherwise; //ratelimit:import name "path" gives it another name.

A part of a key is written by its MarshalText method if it is an
encoding.TextMarshaler, and by its String method if it is a fmt.Stringer. Any
other part must be a string, an integer, a boolean, a []byte, a type over one of
these, or a pointer to one.

An expression has the value that it has in Go and calls what it calls there, in
the same order: the right of && and || is evaluated only if the left does not
decide.

A nil pointer, interface or function on the way, as in #req.User.ID, does not
panic, and neither does an index out of range. The key is then invalid, and the
failure policy decides. The same is true of max, cost and when, except that a when
that cannot be evaluated counts as true. Comparing with nil first, as in

	when="#user != nil && #user.Free"

avoids that. In refund an operand of && or || that cannot be evaluated counts as
false. If settle cannot be evaluated the cost stays as it was reserved, without a
hold that can be nothing is held back, and if deny cannot, the method returns the
error. Methods are not called on nil pointers,
except that one called Get… is called on the nil result of another call. What a
function that is called does is its own affair: its panics go on.

Function literals, channel receives, type assertions, slice expressions, and
divisions, shifts, indexes, conversions and comparisons that may panic are
refused: write a function and call it.

# When a call is over or refused

The charge comes before the call. When the call has returned, refund gives it
back, or settle corrects it. The caller does not wait for that, but for the trip of
a hold, which has all processes hold back calls of the key. So calls at the
same time never exceed the max, and some of them may be refused although all would
have been refunded in the end. If a call or an expression panics the charge stays
and the panic goes on.

With algorithm=concurrency a call holds a permit until the method returns or
panics. A method that returns a channel, an iterator or a stream holds it no
longer than that.

A refused call returns zero values and the error, or what deny gives. One deny
answers for all limits of a method; that on a method goes before that on its
interface. A method whose parameters begin with (w http.ResponseWriter,
r *http.Request) and which has no results is answered by ratehttp.Deny without
one.

# Another package

With -out the wrappers are written to the package in another directory of the
module, as in

	//go:generate go tool rategen -out ../limits

This line of the package says where its wrappers go, and every command obeys it:
rategen ./... and rategen -check ./... need no flag. The flag alone works too, with
a warning that no other command knows it. All lines of a package, and the flags,
must agree. The directory belongs to the same module, or to one of the workspace.
Wrappers that an earlier run has written next to the interfaces are removed, and so are
those in other packages of the run whose package writes them elsewhere now, or is gone.

The files have the same names as next to the interfaces, and everything else
works as there: -check works, rategen never replaces a file that it has not
written, and it removes files whose source is gone. Several packages may write to
one directory. A file or a name that two of them would have is an error. The
interfaces must be exported, and so must everything that their methods and the
directives' expressions name. A package cannot have its wrappers in a package that
it imports.

# Warnings

A warning does not fail a run. It points at a limit that is correct but perhaps
not meant, and ends in a code:

  - shared_name: Two rules have one name and differ in max, window or another term. A
    program that has both panics when it constructs the second wrapper. Give each a name
    of its own, unless they belong to different programs.

  - large_log: A log in a sorted set has more than 128 events. Redis then needs about
    130 bytes for each, and about 20 for each of up to 128. Write storage=packed, or
    storage=zset if you mean that.

  - dear_call: A call costs 30 or more of a log in a sorted set, which stores an event for
    each. Redis then takes as long as for eight calls or more. Write storage=packed, or
    storage=zset if you mean that. There is no warning about a cost that is no constant.

  - metered_log: Messages may cost more than a sliding-log stores at once, 250 events. A
    dearer one is charged in parts, with a request to Redis for each. Write
    algorithm=token-bucket, or algorithm=sliding-log if you mean that.

  - no_key: All callers share the limits of a method that has a parameter called id,
    ip, user, userID, tenant, account or the like. Write a key, or key=`"all"` if you
    mean that. There is no warning if another limit of the method has a key.

  - nilable_key: Some calls have no key, since a pointer on the way to it may be nil, or
    an index out of range: so may #user of key=#user.ID. Such calls share one budget.
    Write invalid=refuse or invalid=admit, or invalid=share if you mean that, in a
    directive, a policy or the package's defaults. A condition when="#user != nil" in
    front has no such calls. There is no warning about the request, message or record
    that a framework hands to a method, nor about what brings the context.

  - key_with_port: A key ends in the remote address of a request or a connection,
    which has a port: each connection then has a budget of its own. Write a key such
    as ratehttp.ClientIP(#r.Context()), or string(#r.RemoteAddr) if you mean that. A
    netip.AddrPort and a net.Addr have a port as well.

  - key_of_time: A key is a time, or reads the clock, so each call has a budget of its
    own. Write what calls that count together have in common, such as the day, or a
    conversion if you mean that.

  - embedded_limits: An interface or a struct embeds what is limited, whose limits hold for
    its own wrapper only. Declare the methods with the directives that are to hold, or with
    none if you mean that. A struct may embed the wrapper.

  - no_context: A call may wait and has no context, so it waits on after its caller
    has gone. Give the method a context, or write ctx=context.Background() if you mean
    that, which needs an import of context. There is no warning about calls that do not
    wait, but of them, too, adapters of HTTP and gRPC see no decision: clients get no
    RateLimit fields, and 429 only if the handler answers so. rategen explain says that,
    and docs/frameworks.md, under methods without a context, what to do.

  - short_line: A leaky-bucket has a burst that its wait cannot fill a line of: calls
    are refused at once although their turn would come within the wait. Leave burst
    out or raise it, or shorten the wait if you mean that.

  - short_block: A block is shorter than a twentieth of the time that a refused call waits
    for room anyway, so it hardly changes anything. Write a longer one, or remove it.

  - short_lapse: Permits of concurrency, or charges with a reserve, lapse before a renewal
    that takes as long as a limiter waits for Redis, 50ms, so calls lose them while they
    run. Write some seconds.

  - early_permit: A method with algorithm=concurrency returns what is used later, such as an
    io.ReadCloser, a channel, rows or an *http.Response, so its permits are back before the
    work is done. Limit a method that does the work, keep the permits until a reader is
    closed by Meter.Reader of package runtime, or write cost=1 if you mean that.

  - idle_lease: A limit is too small for a lease. A process charges ahead an eighth of what
    is left at most, and enough for four calls at least: with calls of cost 1 a max of 33 is
    the least, or a burst of 33 and what drains in the lease. Raise it, or remove the lease.

  - soft_unasked: A method of a struct with a limit in soft mode does not use its context.
    Call runtime.Exceeded with it, or pass it on, or write mode=shadow. Methods of an
    interface are not looked into.

  - hidden_methods: An interface embeds one of another package that is extended there,
    as llms.Model is by llms.ReasoningModel. Callers that ask for the extension do not
    find it in the wrapper. Embed the extension, or ask the value that you wrap; list the
    methods in place of embedding the interface if you mean that.

  - not_wrapped: A method that has no limit of its own returns what is limited,
    without the limits, such as WithTx(tx) *Queries or another limited interface, alone, in
    a slice or a sequence, or to a callback. Wrap the result, or write
    //ratelimit:off above the method if you mean that. Where another tool has
    generated the method, limit an interface of your own without it.

  - unused_policy: Nothing uses a policy of a package that has limits. A package of
    policies alone is there for others; rategen list shows what uses each.

  - uneven_keys: Limits use one policy, and their keys have different numbers of parts, so
    they never count together. Write keys of as many parts, or give one that is to count
    apart a prefix and a name.

  - unknown_out: The flag -out says where wrappers go, and no line of the package
    does. Write the //go:generate line that the warning names.

  - generated_file: A directive stands in a file that another tool has generated, and
    is lost when that runs again. Write it above an interface of your own that embeds
    the generated one, or where the file is generated from. There is no warning about
    a file of sqlc, which takes over the comments of queries, and none if the
    directive stands in the file that a line "// source:" names.

  - not_wired: Nothing calls a constructor that only its package can call, or a limited
    method of a struct is passed on, to a router, say, and not that of the wrapper. Call
    the constructor where the service is made, and pass on its methods. Only rategen-vet
    looks into functions. It says nothing of calls on the unwrapped type.

# Without generating

The command rategen list prints a table of all rules: the place, name, limit and
key of each, and of each policy what uses it. On a terminal it cuts long cells with an ellipsis, so that the table fits 80
columns. With -json each rule is an object on a line of its own, with every
option and nothing cut.

The command rategen explain says in words what a directive means: what is admitted,
the Redis key of an example, what is refused and returned then, what changes when the
call is over, what Redis holds, and what happens when it gives no answer:

	rategen explain employee.go:13

The line is that of a directive or a policy, or one of a method or its comment, all of
whose limits are explained then. A column may follow. Values of the example are made up, and
runtime.WithNamespace puts its name and a colon before the key. With -json each
directive is an object as of rategen list, which has a field explanation.

The command rategen-vet finds the same errors and warnings, for CI and for
editors, and fixes what is mechanical, with line ends of LF:

	go tool rategen-vet [-fix] [packages]

Linters can run the analyzer in package generator/analyzer.
*/
package main
