# What a serving process says while it runs: these events, and numbers. There is no field for text: all words that ever
# appear are here, but for names of the operator's own file: {cluster}, {model}, {host}.
@0xe3c1b0a2d97f4816;
using Cxx = import "/capnp/c++.capnp";
using import "annotations.capnp".help;
$Cxx.namespace("lethe::schema");

# Braces take the numbers in order. {} is one as it is, {host} a host's place in the file, {bytes} a size, {errno} the
# system's word for an error; {part}, {fault} and {end} are enumerants of below. {cluster} and {model} take none.
enum Event {
  ready @0 $help("ready: {} of {} engines serve {model}");
  issuerReady @1 $help("ready: {cluster} serves as issuer");
  relayReady @2 $help("ready: {cluster} serves as relay");
  witnessReady @3 $help("ready: {cluster} serves as witness");
  engineAwaitsHost @4 $help("engine {} on {host}: waiting for its host");
  engineAwaitsTurn @5 $help("engine {} on {host}: waiting: {end}");
  engineStarts @6 $help("engine {} on {host}: starting");
  engineLoads @7 $help("engine {} on {host}: loading");
  engineReady @8 $help("engine {} on {host}: ready");
  engineDrains @9 $help("engine {} on {host}: draining");
  engineGone @10 $help("engine {} on {host}: gone");
  engineFailed @11 $help("engine {} on {host}: failed: {end}");
  engineParked @12 $help("engine {} on {host}: parked: {end}");
  engineLoaded @13 $help("engine {}: {bytes} of {bytes} loaded");
  someParked @14 $help("{} engines are parked; lethe status says why");
  detached @15 $help("detached, process {}");
  drains @16 $help("draining; again to end at once");
  endsAtOnce @17 $help("ending at once");
  down @18 $help("down; every arena is wiped");
  serviceDown @19 $help("down");
  notTaken @20 $help("the order to leave was not taken; again to end at once");
  noStatus @21 $help("the status is no message");
  outputLost @22 $help("standard output can't be written: {errno}");
  joined @23 $help("joined, led by {host}");
  notJoined @24 $help("not joined: {fault}");
  leaderLost @25 $help("lost the leader, {host}");
  broke @26 $help("the {part}: {end}; every open request was told. Start this host again: lethe up");
  engineCannotRun @27 $help("engine: cannot run; lethe status says why");
  uncaught @28 $help("ended by an exception that nobody caught");
  loaderWasSet @29 $help("{} variables of the loader were set (LD_PRELOAD and its like): what they had loaded runs inside, and sees what this process sees");
  notFiltered @30 $help("system calls can't be filtered: {errno}");
  notLocked @31 $help("{bytes} of heaps and stacks, where keys are, are not locked: raise the limit (ulimit -l, LimitMEMLOCK= in a unit), or switch swap off");
  notEnded @32 $help("something here does not end; ended with the process");
}

enum Part {
  scheduler @0 $help("scheduler");
  directory @1 $help("directory");
  face @2 $help("face");
  gateway @3 $help("gateway");
}

# Why a host is not let in.
enum Fault {
  none @0 $help("no reason");
  addressUnknown @1 $help("there is no such address");
  notReached @2 $help("nobody listens, or packets are lost on the way");
  hungUp @3 $help("hung up on: a key of another authority, or the leader's file does not name this host");
  unverified @4 $help("tls: the peer would not be verified; no connection is made");
  unknownHost @5 $help("the leader's file does not name this host; lethe apply one that does");
  otherProcess @6 $help("another process serves as host {host}");
  noMessage @7 $help("leader and host don't understand each other");
  otherProgram @8 $help("the leader runs another build of lethe: answers could tell by their bits where they were made; give all hosts the same file");
}

# How a part of ours ended, where a reason begins so; what an exception says may quote anything.
enum End {
  other @0 $help("lethe status says why");
  left @1 $help("it left");
  killed @2 $help("it was killed");
  unreachable @3 $help("its process is gone or does not answer");
  broke @4 $help("it broke");
  brokeBadAlloc @5 $help("it broke: std::bad_alloc");
  brokeKj @6 $help("it broke: kj::Exception");
  signal @7 $help("its process was ended by signal");
  status @8 $help("its process ended with status");
  hostLost @9 $help("its host was lost");
  hostLeft @10 $help("its host left");
  supervisor @11 $help("its supervisor: it ended");
  supervisorBroke @12 $help("its supervisor: it broke");
  supervisorBrokeBadAlloc @13 $help("its supervisor: it broke: std::bad_alloc");
  late @14 $help("it was not ready in time");
  ranks @15 $help("its ranks failed");
}

struct TelemetryRecord {
  atMs @0 :UInt64;      # since the process began to serve
  event @1 :Event;
  numbers @2 :List(UInt64);
}
