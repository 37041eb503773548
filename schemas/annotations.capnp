# What a field means beyond its type. Tools and tests read these; see tests/unit/schemas_*.
@0xc6a590587a865bf5;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("lethe::schema");

# For people: one line that the configuration's reference and its errors print.
annotation help @0xcdda29d0053cbd58 (struct, field, enum, enumerant) :Text;

# A configuration without this key is refused.
annotation required @0x801dd5a7298ef48f (field) :Void;
# A number's bounds, both inclusive.
annotation least @0xa0e674dc21a9e950 (field) :UInt64;
annotation most @0xc49b789301af388c (field) :UInt64;
# A number of bytes; may be written as "512 MiB".
annotation bytes @0xba8fb4e89b702fcc (field) :Void;
# A path, relative to the file that names it.
annotation path @0x9d447197bcb2f4cb (field) :Void;
# At most so many elements.
annotation elements @0x936695ca1788d171 (field) :UInt32;

# Text and data may cross a process only if they say which of these they are.
# Nothing that a user wrote, nor anything that derives from it: names, addresses, reasons, keys that are public.
annotation public @0xfaa8adf5999a2deb (field) :Void;
# Ciphertext that whoever carries it has no key for.
annotation sealed @0xa0143580bb6693ad (field) :Void;
