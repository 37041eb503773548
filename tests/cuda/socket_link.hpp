#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/owned_fd.hpp"

namespace lethe::emulated {

/// Two sockets to another rank: of packets, by which groups form and leave, and of what collectives
/// carry.
struct rank_link {
  owned_fd talk, data;
  bool there() const { return talk.get() >= 0; }
};

/// Both ends of what joins two ranks.
std::optional<std::array<rank_link, 2>> make_link();

struct packet {
  enum kind : uint32_t {
    hello,  // of rank `first`, with the data's socket
    color,  // `first`, and `second` is the key
    link,   // of the group that is split off; both sockets
    bye,    // nothing comes any more
  };
  kind what;
  int32_t first = 0, second = 0;
};

enum class told { yes, no_room, gone };
told tell(const owned_fd& talk, const packet& p, std::span<const int> with = {});

/// `packet` is null where there is nothing yet, or nobody any more.
struct heard {
  std::optional<emulated::packet> packet;
  std::array<owned_fd, 2> with;
  bool gone = false;
};
heard hear(const owned_fd& talk);

/// Sockets with a path, which reach from one network namespace to another. Below 0: errno says why.
owned_fd listen_on(const std::string& path, int most);
owned_fd call(const std::string& path);
owned_fd let_in(const owned_fd& listener);

}  // namespace lethe::emulated
