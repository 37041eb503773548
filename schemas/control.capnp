# What the operator's console asks of a running cluster, over a socket that only the operator's user can open.
@0x835a8312a450b0ab;
using Cxx = import "/capnp/c++.capnp";
using Config = import "config.capnp";
using Messages = import "messages.capnp";
using import "annotations.capnp".public;
$Cxx.namespace("lethe::schema");

struct ControlAsk {
  union {
    status @0 :Void;
    scale @1 :UInt16;        # engines
    drain @2 :UInt16;        # this engine, for good
    apply :group {
      config @3 :Config.Config;
      look @6 :Bool;         # only tell what would change
    }
    down @4 :Down;
    trace @5 :TraceAsk;
    hostLeaves @7 :Text $public;  # its engines drain, then its process ends
  }
}

enum Down {
  drain @0;
  now @1;
}

struct ControlAnswer {
  union {
    done @0 :Void;
    refused @1 :Text $public;
    status @2 :Status;
    changes @3 :List(Text) $public;  # what `apply` will do
    trace @4 :List(TraceRecords);
  }
}

struct Status {
  cluster @0 :Text $public;
  profile @1 :Config.Profile;
  model @2 :Text $public;
  upMs @3 :UInt64;
  wanted @4 :UInt16;
  leaving @5 :Bool;
  hosts @6 :List(HostStatus);
  engines @7 :List(EngineStatus);
  listeners @8 :List(Listener);
  counts @9 :Messages.Counts;
  scaling @10 :ScalingStatus;
  measures @11 :Messages.Measures;
  services @12 :List(Messages.ServiceState);
  silentAfterMs @13 :UInt32;  # an engine that holds requests and says nothing for so long doesn't count as ready
}

struct ScalingStatus {
  least @0 :UInt16;
  most @1 :UInt16;             # 0: not by load
  now @2 :Text $public;        # what the load asks for
  changed @3 :Text $public;    # the last change, and why; empty: none yet
}

struct HostStatus {
  name @0 :Text $public;
  address @1 :Text $public;
  joined @2 :Bool;
  pid @3 :UInt32;
  cores @4 :UInt16;
  memory @5 :UInt64;
  leaving @6 :Bool;
}

struct EngineStatus {
  slot @0 :UInt16;
  host @1 :Text $public;
  state @2 :Messages.EngineState;
  load @3 :Messages.EngineLoad;
  restarts @4 :UInt16;
  retryMs @5 :UInt32;  # until the next start
  tensor @6 :UInt16;
  pipeline @7 :UInt16;
  others @8 :List(Text) $public;  # hosts of its ranks besides
  devices @9 :List(Text) $public;  # of its ranks, "south:cuda:1" where that host doesn't lead; none: on cores
  arithmetic @10 :Config.Arithmetic;
}

struct Listener {
  role @0 :Text $public;
  url @1 :Text $public;
}

struct TraceAsk {
  most @0 :UInt32;  # records; the newest stay, the others count as lost. 0: all that an answer holds
}

# Records of one process, oldest first.
struct TraceRecords {
  records @0 :List(Record);
  lost @1 :UInt64;  # overwritten before anyone asked
  pid @2 :UInt32;
  host @3 :Text $public;
  nowNs @4 :UInt64;     # the process's clock when it answered; 0: it didn't
  offsetNs @5 :Int64;   # added to its times they are the directory's, give or take errorNs
  errorNs @6 :UInt64;
  mode @7 :Config.TraceMode;

  struct Record {
    atNs @0 :UInt64;      # when it was taken in hand, on the receiver's clock
    trace @1 :UInt64;
    lamport @2 :UInt64;
    sender @3 :UInt64;
    receiver @4 :UInt64;
    type @5 :UInt64;      # the schema's id
    bytes @6 :UInt32;
    queuedNs @7 :Int64;   # since it was sent, on the sender's clock: across hosts it may be below 0
    handledNs @8 :UInt64;
  }
}
