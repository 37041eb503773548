# Whom a client of a cluster believes, as its user keeps it in TOML. Keys are these names in snake_case.
@0xd1f04c2b7a9e6385;
using Cxx = import "/capnp/c++.capnp";
using Config = import "config.capnp";
using import "annotations.capnp".help;
using import "annotations.capnp".required;
using import "annotations.capnp".least;
using import "annotations.capnp".most;
using import "annotations.capnp".path;
using import "annotations.capnp".elements;
using import "annotations.capnp".public;
$Cxx.namespace("lethe::schema");

struct Trust {
  log @0 :Text $required $public $help("the log's key: NAME+KEYID+BASE64");
  witnesses @1 :List(Text) $elements(31) $public $help("keys of those who watch the log");
  quorum @2 :UInt32 $most(31) $help("how many of them must have signed a head");
  relays @3 :List(Text) $required $elements(16) $public $help("URLs of relays; the first that answers is asked");
  origin @4 :Text $required $public $help("the gateway's name in the tokens' challenge");
  issuer @5 :Text $required $public $help("URL of the issuer, where tokens are bought");
  issuerName @6 :Text $required $public $help("the issuer's name in the tokens' challenge");
  authorities @7 :Text $path $public $help("PEM file of who vouches for relay and issuer; empty: the system's");
  evidence @8 :List(Text) $required $elements(64) $public $help("kinds of evidence that a node may show; \"none\" accepts nodes that show nothing");
  wallet @9 :Text = "wallet" $path $public $help("where tokens are kept; its key and what is known of the log lie beside it");
  account @10 :Text = "account.secret" $path $public $help("file whose first line is the account's secret at the issuer");
  policy @11 :PolicyBounds $help("what the logged policy may say at most, or must at least");
}

struct PolicyBounds {
  name @0 :Text = "strict" $public $help("the policy's name; clients of an embedded cluster say so");
  candidatesMax @1 :UInt32 = 1 $least(1) $most(3) $help("k: nodes that can open one request");
  redrawsMax @2 :UInt32 = 2 $most(16) $help("r: new draws for one body");
  nodesMin @3 :UInt32 = 1 $least(1) $most(4096) $help("nodes in a roster");
  shareMaxPermille @4 :UInt32 = 1000 $least(1) $most(1000) $help("of the capacity, that one node or identity may have");
  rosterAgeMaxS @5 :UInt32 = 3600 $least(1) $most(86400) $help("how old a roster may be");
  buyersMin @7 :UInt32 = 0 $most(1000000000) $help("accounts that must have bought under a key of tokens whose epoch is over; tokens of one with fewer are not shown. 0: that there were fewer than the log's minimum is only said");
  shape @6 :Config.ShapeMode = size $help("how answers must be shaped at least; \"off\" accepts those that are not");
}
