# What actors tell each other. Messages describe: nothing here is content in the clear.
@0xd3f2d005d66e3a95;
using Cxx = import "/capnp/c++.capnp";
using Config = import "config.capnp";
using import "annotations.capnp".public;
using import "annotations.capnp".sealed;
$Cxx.namespace("lethe::schema");

# --- a request ---------------------------------------------------------------------------------

# face, gateway -> scheduler: who should answer?
struct Place {
  request @0 :UInt64;
  node @1 :Data $public;  # the key that the client drew; empty: whoever has room
}

# scheduler -> face
struct Placed {
  request @0 :UInt64;
  union {
    at :group {
      engine @1 :UInt16;
      epoch @2 :UInt32;
      node @3 :Data $public;  # the engine's public keys: the request is sealed to them
    }
    refused :group {
      reason @4 :Refusal;
      retryAfterS @5 :UInt16;
    }
  }
}

enum Refusal {
  notReady @0;  # no engine serves yet, or any more
  full @1;      # all queues are
  leaving @2;   # the cluster goes down
  unknownNode @3;  # nobody serves with that key, or any more
}

# face, gateway -> scheduler -> engine
struct Submit {
  request @0 :UInt64;
  engine @1 :UInt16;
  epoch @2 :UInt32;
  sealed @3 :Data $sealed;
  token @4 :Data $public;  # spent for it; empty: sealed by the face
}

# request -> face: the next piece of the answer
struct Answer {
  request @0 :UInt64;
  number @1 :UInt32;
  last @2 :Bool;
  sealed @3 :Data $sealed;
}

# face -> request: so many pieces have reached the client
struct Credit {
  request @0 :UInt64;
  pieces @1 :UInt32;
}

# face -> scheduler -> request's engine: nobody reads on
struct Cancel {
  request @0 :UInt64;
}

# request -> engine -> scheduler: it ended, and every arena of it is wiped
struct Release {
  request @0 :UInt64;
  engine @1 :UInt16;
  epoch @2 :UInt32;
  outcome @3 :Outcome;
  took @4 :Took;  # to the engine: what it took; to the scheduler: what many took since they were last told, or nothing
}

# What requests took, together.
struct Took {
  promptTokens @0 :UInt64;
  answerTokens @1 :UInt64;
  arenas @2 :UInt64;
  bytesWiped @3 :UInt64;
  measures @4 :Measures;
}

# Counts under fixed bounds, which are the code's (runtime/base/histogram.hpp).
struct Histogram {
  counts @0 :List(UInt64);
  sum @1 :UInt64;
}

enum Outcome {
  served @0;
  refused @1;    # the request was wrong
  cancelled @2;
  failed @3;
}

# scheduler -> face: its engine is gone, or doesn't know it
struct Lost {
  request @0 :UInt64;
  reason @1 :LossReason;
  refusal @2 :Data $public;  # signed by the node that refused; empty: it didn't
}

enum LossReason {
  engineLost @0;
  engineFull @1;
  stale @2;  # sealed to an engine that has been replaced
  badSeal @3;  # it does not open, was seen before, or its token is not valid
}

# --- engines -----------------------------------------------------------------------------------

# All that an engine's process must know.
struct EngineSpec {
  slot @0 :UInt16;
  epoch @1 :UInt32;
  model @2 :Config.Model;
  engines @3 :Config.Engines;
  batching @4 :Config.Batching;
  threads @5 :UInt16;  # of one rank, as placed
  profile @6 :Config.Profile;
  trace @7 :Config.Trace;
  health @8 :Config.Health;
  shape @9 :Config.Shape;  # of answers to who seals for a roster's key
  optimizations @10 :List(Text) $public;  # of the policy's table, as the file names them
  places @11 :List(RankPlace);  # of its ranks, stage by stage; the first leads
}

struct RankPlace {
  host @0 :Text $public;
  address @1 :Text $public;  # where the other ranks reach it
  device @2 :Text $public;  # none: it computes on cores
}

enum Phase {
  waiting @0;   # for its host, or for its turn after a failure
  starting @1;
  loading @2;
  ready @3;
  draining @4;
  gone @5;
  failed @6;
  parked @7;    # failed too often; someone must look
}

# engine -> directory, and on to the scheduler
struct EngineState {
  slot @0 :UInt16;
  epoch @1 :UInt32;
  phase @2 :Phase;
  done @3 :UInt64;  # bytes of weights, while loading
  total @4 :UInt64;
  node @5 :Data $public;
  capacity @6 :UInt32;  # requests at once, running and waiting
  pid @7 :UInt32;
  reason @8 :Text $public;  # of a failure; never content
  arenas @9 :UInt32;        # alive; zero when it is gone
  model @10 :Text $public;  # what clients call it
  context @11 :UInt32;
  door @12 :UInt16;  # where its ranks come in, if they are processes; zero: not yet
}

# scheduler -> engine: you are in; tell me of ends and load
struct Adopted {
  slot @0 :UInt16;
  epoch @1 :UInt32;
}

# engine -> scheduler and directory, several times a second
struct EngineLoad {
  slot @0 :UInt16;
  epoch @1 :UInt32;
  running @2 :UInt32;
  queued @3 :UInt32;
  pages @4 :UInt32;
  pagesReserved @5 :UInt32;  # outside the lab in tenths of all, rounded up
  prefilled @6 :UInt64;      # outside the lab these three are as they were when `took` was last told
  decoded @7 :UInt64;
  pagesWiped @8 :UInt64;
  arenas @9 :UInt32;
  requests @10 :UInt32;      # between submit and release
  residentBytes @11 :UInt64;  # outside the lab rounded up
  stalledMs @12 :UInt32;     # requests run, and no step has ended for so long
  silentMs @13 :UInt32;      # by the scheduler's clock: it holds requests here, and has heard nothing for so long
}

# --- rosters -----------------------------------------------------------------------------------

# gateway -> directory: rosters are wanted, and these keys sign tokens
struct TokenKeys {
  keys @0 :List(Data) $public;  # as published
  epochS @1 :UInt32;            # of a roster
  graceS @2 :UInt32;
  roster @3 :UInt32;            # the last one that was published
}

# directory -> engine: a roster begins; make a key for it
struct BeginEpoch {
  slot @0 :UInt16;
  epoch @1 :UInt32;
  roster @2 :UInt32;
  graceS @3 :UInt32;  # the last roster's key still opens for so long
  tokenKeys @4 :List(Data) $public;
}

# engine -> directory and scheduler: its key of that roster
struct NodeKey {
  slot @0 :UInt16;
  epoch @1 :UInt32;
  roster @2 :UInt32;
  node @3 :Data $public;
}

# directory -> gateway: this is the next roster
struct Publish {
  roster @0 :UInt32;
  nodes @1 :List(Node);

  struct Node {
    slot @0 :UInt16;
    node @1 :Data $public;
    capacity @2 :UInt32;
    model @3 :Text $public;
  }
}

# gateway -> directory, for its status; an issuer's and a relay's own
struct ServiceState {
  role @0 :Text $public;
  note @1 :Text $public;
  counts @2 :List(NamedCount);
}

struct NamedCount {
  name @0 :Text $public;
  number @1 :UInt64;
}

# directory -> scheduler: place nothing there any more; scheduler -> engine, when nothing is left: go
struct Drain {
  slot @0 :UInt16;
  epoch @1 :UInt32;
}

# --- hosts -------------------------------------------------------------------------------------

# supervisor -> directory
struct Join {
  host @0 :Text $public;
  pid @1 :UInt32;
  cores @2 :UInt16;
  memory @3 :UInt64;
  program @4 :Data $public;  # digest of what runs there
}

# directory -> supervisor
struct Joined {
  refused @0 :JoinRefusal;
}

enum JoinRefusal {
  none @0;          # it is in
  unknownHost @1;   # the leader's file doesn't name it
  otherProcess @2;  # serves in its name
  noMessage @3;     # question or answer was none
  otherProgram @4;  # its answers may have other bits than ours
}

# directory -> supervisor
struct StartEngine {
  spec @0 :EngineSpec;
}

# directory -> supervisor of a host that has ranks of an engine elsewhere: start them
struct StartRanks {
  spec @0 :EngineSpec;
  door @1 :UInt16;  # of the engine, at its first rank's address
}

# rank -> the process of its engine, over a connection that only the two have
struct RankAsk {
  union {
    join :group {  # first of all; behind the answer comes the epoch's secret
      slot @0 :UInt16;
      epoch @1 :UInt32;
      rank @2 :UInt16;
    }
    set :group {  # addresses, each once
      key @3 :Text $public;
      value @4 :Data $public;
    }
    get :group {
      key @5 :Text $public;
      waitMs @6 :UInt32;  # at most
    }
    ends @7 :Text $public;  # this rank does, and why; nobody answers
  }
}

struct RankAnswer {
  value @0 :Data $public;
  why @1 :Text $public;  # there is none; empty: there is
}

# directory -> supervisor: end it now, or its ranks there; what it ran is lost
struct KillEngine {
  slot @0 :UInt16;
  epoch @1 :UInt32;
}

# supervisor -> directory: the process or actor of an engine ended, or of its ranks there
struct EngineEnded {
  slot @0 :UInt16;
  epoch @1 :UInt32;
  reason @2 :Text $public;
}

# directory -> supervisor: finish
struct Leave {
  now @0 :Bool;
}

# directory -> scheduler: how full is everything?
struct LoadsAsk {
}

struct Loads {
  loads @0 :List(EngineLoad);
  counts @1 :Counts;
  measures @2 :Measures;
}

# Of all requests that were served since the cluster came up; the order is the code's (runtime/cluster/measures.hpp).
struct Measures {
  times @0 :List(Histogram);
  lengths @1 :List(Histogram);
}

# Since the cluster came up.
struct Counts {
  admitted @0 :UInt64;
  served @1 :UInt64;
  refused @2 :UInt64;
  cancelled @3 :UInt64;
  failed @4 :UInt64;
  turnedAway @5 :UInt64;
  promptTokens @6 :UInt64;
  answerTokens @7 :UInt64;
  arenasWiped @8 :UInt64;
  bytesWiped @9 :UInt64;
}
