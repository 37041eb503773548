# A file of records, as `lethe trace save` writes it: numbers, and the names of hosts.
@0x9f3fb035b2cdeba0;
using Cxx = import "/capnp/c++.capnp";
using Control = import "control.capnp";
$Cxx.namespace("lethe::schema");

struct Recording {
  unixNs @0 :UInt64;  # when it was gathered
  processes @1 :List(Control.TraceRecords);
}
