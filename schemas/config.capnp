# A cluster, as its operator writes it in TOML. Keys are these names in snake_case; defaults are what a file leaves out.
@0xa58ddf813d708a5c;
using Cxx = import "/capnp/c++.capnp";
using import "annotations.capnp".help;
using import "annotations.capnp".required;
using import "annotations.capnp".least;
using import "annotations.capnp".most;
using import "annotations.capnp".bytes;
using import "annotations.capnp".path;
using import "annotations.capnp".elements;
using import "annotations.capnp".public;
$Cxx.namespace("lethe::schema");

struct Config {
  name @0 :Text = "lethe" $public $help("what the cluster is called in logs and rosters");
  profile @1 :Profile = strict $help("which promises are kept: strict, session or lab");
  model @2 :Model $help("what is served; needed unless the file is an issuer's, a relay's or a witness's");
  hosts @3 :List(Host) $elements(256) $help("machines; none: this one, with all its cores");
  engines @4 :Engines $help("replicas of the model, and how each is cut");
  batching @5 :Batching $help("how requests share an engine");
  listen @6 :Listen $help("where clients come in");
  tls @7 :Tls $help("keys between hosts; needed as soon as there are two");
  health @8 :Health $help("when something counts as lost, and what follows");
  scaling @9 :Scaling $help("engines by load; off unless most is set");
  trace @10 :Trace $help("records of messages");
  gateway @11 :Gateway $help("the private path: where sealed requests come in, and what is published");
  issuer @12 :Issuer $help("signs blinded tokens for accounts; in a file of its own");
  relay @13 :Relay $help("passes sealed bytes on to a gateway; in a file of its own");
  witness @14 :Witness $help("cosigns heads of logs that only grew; in a file of its own");
  shape @15 :Shape $help("how answers of the private path leave: chunks of one size, on a tick");
  optimizations @16 :List(Text) $elements(64) $public $help("wanted by name; `lethe config policy` lists them, and which a profile takes");
}

enum Profile {
  strict @0 $help("all five promises; the only one that may attest");
  session @1 $help("as strict, and open to reuse under a key that only the client holds, which is not built yet; two nodes may be drawn");
  lab @2 $help("everything allowed, nothing promised: to measure and to debug");
}

struct Model {
  path @0 :Text $required $path $public $help("Hugging Face folder or GGUF file, on every host that runs engines");
  name @1 :Text $public $help("what clients call it; default: the folder's or file's name");
  context @2 :UInt32 $most(16777216) $help("longest prompt + answer in tokens; 0: the model's");
  quantize @3 :Text $public $help("convert a float model while loading: q8_0, q4_0, ...");
}

struct Host {
  name @0 :Text $required $public $help("unique; what --host and placement say");
  address @1 :Text = "127.0.0.1" $public $help("where the other hosts reach it");
  port @2 :UInt16 $help("for the other hosts; needed with two or more");
  cores @3 :UInt16 $most(1024) $help("processor cores for engines; 0: all of this machine");
  devices @4 :List(Text) $elements(64) $public $help("GPUs for engines, as cuda:0; none: engines run on cores");
  memory @5 :UInt64 $bytes $help("for weights, keys and values; 0: three quarters of this machine's");
  deviceMemory @6 :UInt64 $bytes $help("of one of its devices; needed with them");
}

struct Engines {
  count @0 :UInt16 = 1 $least(1) $most(256) $help("replicas");
  tensor @1 :UInt16 = 1 $least(1) $most(64) $help("ranks that share each layer");
  pipeline @2 :UInt16 = 1 $least(1) $most(64) $help("stages that share the layers");
  threads @3 :UInt16 $most(256) $help("cores of one rank; 0: the host's cores, shared out evenly");
  placement @4 :Placement = packed $help("packed fills a host before the next; spread goes round; exact takes ranks as listed");
  ranks @5 :List(Text) $elements(4096) $public $help("for exact: HOST or HOST:DEVICE of every rank, engine by engine, stage by stage");
  processes @6 :Processes = shared $help("shared: one process a host; separate: each engine its own; ranks: each rank its own, too");
  links @7 :Links = sealed $help("between ranks that are processes: sealed, or in the clear where nobody else is on the line (lab only)");
  arithmetic @8 :Arithmetic = exact $help("exact: the same bits on all cores and devices; tensor: a device's tensor cores for float weights and attention, a processor's tiles (AMX) for weights, keys and values of bf16, within bfloat16's rounding of them; pairs: the same of a processor with AVX512_BF16, with bits of its own");
}

enum Arithmetic {
  exact @0;
  tensor @1;
  pairs @2;
}

enum Links {
  sealed @0;
  clear @1;
}

enum Placement {
  packed @0;
  spread @1;
  exact @2;
}

enum Processes {
  shared @0;
  separate @1;
  ranks @2;
}

struct Batching {
  pageTokens @0 :UInt16 $most(64) $help("tokens in a key/value page; 0: 16 of f32, 32 of bf16, 64 of int8");
  stepTokens @1 :UInt32 = 512 $least(1) $most(65536) $help("tokens of all requests in a step");
  chunkTokens @2 :UInt32 = 256 $least(1) $most(65536) $help("prompt tokens of one request in a step");
  running @3 :UInt16 = 64 $least(1) $most(4096) $help("sequences at once in an engine");
  queue @4 :UInt32 = 1024 $most(1048576) $help("requests that may wait for one engine beyond `running`; 0: none waits");
  defaultMaxTokens @5 :UInt32 = 256 $least(1) $most(16777216) $help("for a request that names no limit");
  kvMemory @6 :UInt64 $bytes $help("keys and values of one rank; 0: what one longest request needs, at least 256 MiB");
  kv @7 :KvType = f32 $help("keys and values as f32, bf16 or int8");
}

enum KvType {
  f32 @0;
  bf16 @1;
  int8 @2;
}

struct Listen {
  api @0 :Text $public $help("ADDRESS:PORT of the plain OpenAI interface; lab only, loopback only");
  metrics @1 :Text $public $help("ADDRESS:PORT of /metrics, /livez and /readyz");
  apiKeys @2 :Text $path $public $help("file with one key a line; clients of the api must send one as a Bearer token");
}

struct Tls {
  folder @0 :Text $path $public $help("holds ca.crt, HOST.crt and HOST.key; `lethe keys init` makes them");
}

struct Health {
  heartbeatMs @0 :UInt32 = 200 $least(10) $most(60000) $help("between signs of life");
  lostAfterMs @1 :UInt32 = 1000 $least(50) $most(600000) $help("of silence, and a peer is lost");
  restartMs @2 :UInt32 = 100 $least(1) $most(600000) $help("before the first restart; doubles with each failure");
  restartMaxMs @3 :UInt32 = 10000 $least(1) $most(3600000) $help("longest wait between restarts");
  restarts @4 :UInt16 = 5 $most(1000) $help("failures within ten minutes before an engine is parked");
  drainMs @5 :UInt32 = 30000 $most(3600000) $help("for running requests to finish when an engine leaves");
  rankMs @6 :UInt32 = 30000 $least(100) $most(3600000) $help("for what a rank in another process computes in a step; longer, and its engine begins anew");
}

struct Scaling {
  least @0 :UInt16 $most(256) $help("engines at least; 0: engines.count");
  most @1 :UInt16 $most(256) $help("engines at most, those included that drain; 0: no scaling by load");
  queued @2 :UInt32 = 8 $least(1) $most(1048576) $help("requests waiting per engine that ask for one more");
  pages @3 :UInt16 = 80 $least(1) $most(100) $help("percent of pages reserved that ask for one more");
  holdMs @4 :UInt32 = 10000 $least(100) $most(3600000) $help("a load must last so long before an engine is added");
  queuedLow @5 :UInt32 = 0 $most(1048575) $help("one engine goes if then at most so many requests per engine wait");
  pagesLow @6 :UInt16 = 40 $most(99) $help("one engine goes if then at most so many percent of pages are reserved");
  idleMs @7 :UInt32 = 60000 $least(100) $most(86400000) $help("so little load must last so long before an engine goes");
}

struct Trace {
  mode @0 :TraceMode = allowed $help("which messages leave a record");
  records @1 :UInt32 = 65536 $least(256) $most(16777216) $help("kept per thread; the oldest go first");
}

enum TraceMode {
  off @0 $help("none");
  allowed @1 $help("those that say nothing of a single token");
  all @2 $help("every one; lab only");
}

struct Gateway {
  listen @0 :Text $public $help("ADDRESS:PORT for relays; none: no private path");
  folder @1 :Text $path $public $help("holds the log, its key and the spent tokens");
  issuer @2 :Text $public $help("the issuer's URL, as https://issuer.example:8100");
  issuerAuthorities @3 :Text $path $public $help("PEM file of who vouches for the issuer's certificate; none: the system's");
  issuerSecret @4 :Text $path $public $help("file with the secret that gateway and issuer share, for change");
  certificate @5 :Text $path $public $help("PEM; none: plain HTTP, behind something that ends TLS");
  key @6 :Text $path $public $help("PEM, of the certificate");
  origin @7 :Text $public $help("name in tokens' challenges, the same for gateways that share redis; default: the cluster's name");
  epochS @8 :UInt32 = 600 $least(5) $most(86400) $help("seconds of a roster epoch");
  graceS @9 :UInt32 = 60 $least(1) $most(3600) $help("seconds that keys of the last epoch still open");
  minimumNodes @10 :UInt16 = 1 $least(1) $most(256) $help("nodes below which clients refuse a roster (logged policy)");
  issuerName @11 :Text = "issuer" $public $help("the issuer's name in tokens' challenges, as its file has it");
  redis @12 :Text $public $help("URL of a Redis that keeps spent tokens for several gateways; none: the folder");
  witnesses @13 :List(Text) $elements(16) $public $help("\"URL KEY\" of each witness that others run; its operator has the KEY from `lethe keys public`");
  witnessAuthorities @14 :Text $path $public $help("PEM file of who vouches for the witnesses' certificates; none: the system's");
  tokenBatch @15 :UInt16 = 64 $least(1) $most(256) $help("tokens of one purchase (logged policy), as [issuer] batch has it");
  candidates @16 :UInt16 = 1 $least(1) $most(2) $help("nodes that a request is sealed to (logged policy); 2 promises less, but survives the loss of one");
  log @17 :Text $public $help("the log's name, which no other log has; default: the origin");
}

struct Shape {
  mode @0 :ShapeMode = sizeTick $help("what is hidden of an answer's lengths and times (logged policy)");
  chunk @1 :UInt32 = 2048 $bytes $least(256) $most(8192) $help("of plaintext in every chunk of an answer (logged policy)");
  tickMs @2 :UInt32 = 50 $least(1) $most(1000) $help("between chunks of size_tick (logged policy)");
}

enum ShapeMode {
  off @0 $help("chunks as large as what there was to say, when there was: to measure; clients must accept it by name");
  size @1 $help("chunks of one size, when there is something to say; as many as the next power of two");
  sizeTick @2 $help("exactly one such chunk a tick, whether there is something to say or not");
}

struct Issuer {
  listen @0 :Text $public $help("ADDRESS:PORT of purchases and change");
  folder @1 :Text $path $public $help("holds keys, accounts and changed tokens");
  name @2 :Text = "issuer" $public $help("the issuer's name in tokens' challenges");
  secret @3 :Text $path $public $help("file with the secret that gateway and issuer share, for change; made if missing");
  certificate @4 :Text $path $public $help("PEM; none: plain HTTP, behind something that ends TLS");
  key @5 :Text $path $public $help("PEM, of the certificate");
  epochS @6 :UInt32 = 604800 $least(86400) $most(31536000) $help("seconds of a token epoch");
  batch @7 :UInt16 = 64 $least(1) $most(256) $help("tokens of one purchase, the same for everyone");
  origins @8 :List(Text) $elements(16) $public $help("of web pages that may ask from a browser (CORS), as https://chat.example; none: no page of others");
}

struct Relay {
  listen @0 :Text $public $help("ADDRESS:PORT for clients");
  gateway @1 :Text $public $help("the gateway's URL, as https://gateway.example:8200/");
  authorities @2 :Text $path $public $help("PEM file of who vouches for the gateway's certificate; none: the system's");
  certificate @3 :Text $path $public $help("PEM; none: plain HTTP, behind something that ends TLS");
  key @4 :Text $path $public $help("PEM, of the certificate");
  connections @5 :UInt32 = 1024 $least(1) $most(65536) $help("of clients at once");
  origins @6 :List(Text) $elements(16) $public $help("of web pages that may ask from a browser (CORS), as https://chat.example; none: no page of others");
}

struct Witness {
  listen @0 :Text $public $help("ADDRESS:PORT for logs that ask for a cosignature");
  folder @1 :Text $path $public $help("holds its key and the largest head that it saw of each log");
  name @2 :Text = "witness" $public $help("what its signature lines are called; no two witnesses of a log have the same");
  logs @3 :List(Text) $elements(256) $public $help("public keys of the logs that it cosigns, as `lethe keys public` of a cluster has them: NAME+ID+KEY");
  certificate @4 :Text $path $public $help("PEM; none: plain HTTP, behind something that ends TLS");
  key @5 :Text $path $public $help("PEM, of the certificate");
}
